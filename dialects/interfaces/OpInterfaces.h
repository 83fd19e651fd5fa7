// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The op interfaces of OpInterfaces.td and their default implementations.
#ifndef SHARDC_DIALECTS_INTERFACES_OPINTERFACES_H
#define SHARDC_DIALECTS_INTERFACES_OPINTERFACES_H

#include "dialects/interfaces/KernelForm.h"
#include "dialects/interfaces/LocalizeContext.h"
#include "dialects/interfaces/SizeAlgebra.h"
#include "dialects/interfaces/TensorView.h"
#include "dialects/sharding/ShardingRule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

#include <optional>

namespace shardc {

/// Elements in a tensor; nothing if it is not a ranked tensor of static shape.
std::optional<double> numElements(mlir::Type type);
/// Bytes of a tensor's dense storage (i1 takes a byte); nothing as above.
std::optional<double> numBytes(mlir::Type type);

/// One operation for each element of all results.
std::optional<double> elementwiseFlops(mlir::Operation *op);
/// Bytes of all tensor operands and results; an operand used twice counts once.
std::optional<double> operandAndResultBytes(mlir::Operation *op);

/// The same op on `operands`, with local result types and the same attributes.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> localizeAsSameOp(mlir::Operation *op,
                                                                 mlir::OpBuilder &builder,
                                                                 mlir::ValueRange operands,
                                                                 LocalizeContext &context);

} // namespace shardc

#include "dialects/interfaces/OpInterfaces.h.inc"

#endif // SHARDC_DIALECTS_INTERFACES_OPINTERFACES_H
