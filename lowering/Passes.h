// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes the targets, passes and pipelines under lowering/ known to a tool.

#ifndef SHARDC_LOWERING_PASSES_H
#define SHARDC_LOWERING_PASSES_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace shardc {

/// Makes the targets of this build known (lowering/target/Backend.h); plugins may add more. Before
/// anything is compiled; to call it again does nothing.
void registerTargets();

void registerLoweringPasses();

/// Dialects of lowered programs that no stage before them uses.
void registerLoweringDialects(mlir::DialectRegistry &registry);

} // namespace shardc

#endif // SHARDC_LOWERING_PASSES_H
