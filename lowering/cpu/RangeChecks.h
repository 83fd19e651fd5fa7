// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CPU_RANGECHECKS_H
#define SHARDC_LOWERING_CPU_RANGECHECKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace shardc::cpu {

/// Turns every `exec.check_range` of a kernel into loops over its indices, built where `builder`
/// is. A position outside of its range is recorded as the run's failure, which is reported when the
/// run ends; the builder goes on in the block that runs only where there is none, so that nothing
/// is read or written at such a position.
void emitRangeChecks(mlir::func::FuncOp kernel, mlir::OpBuilder &builder);

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_RANGECHECKS_H
