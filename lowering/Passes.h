// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One call that makes every pass and pipeline under lowering/ known to a tool.

#ifndef SHARDC_LOWERING_PASSES_H
#define SHARDC_LOWERING_PASSES_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace shardc {

void registerLoweringPasses();

/// Dialects of lowered programs that no stage before them uses.
void registerLoweringDialects(mlir::DialectRegistry &registry);

} // namespace shardc

#endif // SHARDC_LOWERING_PASSES_H
