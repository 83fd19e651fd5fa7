// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One call that makes every pass and pipeline of the project known to a tool.

#ifndef SHARDC_PASSES_PASSES_H
#define SHARDC_PASSES_PASSES_H

namespace shardc {

/// Registers all passes and named pipelines under `passes/`, in dependency order.
void registerAllPasses();

} // namespace shardc

#endif // SHARDC_PASSES_PASSES_H
