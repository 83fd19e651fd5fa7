// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inference of result types: what all ops share. Types never carry an encoding here; a dynamic size
// is ShapedType::kDynamic and matches every size.
#ifndef SHARDC_DIALECTS_ATEN_INFERENCE_H
#define SHARDC_DIALECTS_ATEN_INFERENCE_H

#include "dialects/aten/TypePromotion.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace shardc::aten {

using Shape = llvm::SmallVector<int64_t>;

/// Whether a value of one type may stand for one of the other: same rank and element type, sizes
/// equal where both are static. Encodings are not looked at.
bool areCompatibleTypes(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// One inference of one op: collects result types, and reports errors at the op's location (or not
/// at all, where there is none).
class Inference {
public:
  Inference(mlir::MLIRContext *context, std::optional<mlir::Location> location,
            llvm::StringRef opName, llvm::SmallVectorImpl<mlir::Type> &types)
      : context(context), location(location), opName(opName), types(types) {}

  mlir::MLIRContext *getContext() const { return context; }

  /// Adds one result.
  llvm::LogicalResult result(llvm::ArrayRef<int64_t> shape, mlir::Type elementType);

  template <typename... Args> llvm::LogicalResult error(Args &&...args) {
    return mlir::emitOptionalError(location, "'", opName, "' op ", std::forward<Args>(args)...);
  }

  /// A dim of a tensor of this rank; a 0-dim tensor counts as one of one dim, as in PyTorch.
  llvm::LogicalResult checkDim(int64_t dim, int64_t rank, llvm::StringRef name);
  /// Likewise, and no dim twice.
  llvm::LogicalResult checkDims(llvm::ArrayRef<int64_t> dims, int64_t rank, llvm::StringRef name);

  /// The shape that all broadcast to.
  llvm::FailureOr<Shape> broadcast(llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes);
  /// The size that both are; fails where they differ. `what` completes "... differ: A and B".
  llvm::FailureOr<int64_t> same(int64_t lhs, int64_t rhs, llvm::StringRef what);
  /// The type in which these tensors meet.
  llvm::FailureOr<mlir::Type> promote(mlir::ValueRange tensors);
  /// The common element type of tensors that are not promoted.
  llvm::FailureOr<mlir::Type> sameElementType(mlir::ValueRange tensors);

private:
  mlir::MLIRContext *context;
  std::optional<mlir::Location> location;
  llvm::StringRef opName;
  llvm::SmallVectorImpl<mlir::Type> &types;
};

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
inline mlir::Type elementTypeOf(mlir::Value value) { return typeOf(value).getElementType(); }

/// Elementwise over all operands: broadcast shape, and the promoted element type...
llvm::LogicalResult inferElementwise(Inference &inference, mlir::ValueRange operands);
/// ... made a float type...
llvm::LogicalResult inferElementwiseFloat(Inference &inference, mlir::ValueRange operands);
/// ... or bool.
llvm::LogicalResult inferElementwiseBool(Inference &inference, mlir::ValueRange operands);

// The same for adaptors, by the names that `inferBy` in the op definitions uses.
template <typename Adaptor> llvm::LogicalResult inferPromoted(Inference &inference, Adaptor op) {
  return inferElementwise(inference, op.getOperands());
}
template <typename Adaptor>
llvm::LogicalResult inferPromotedFloat(Inference &inference, Adaptor op) {
  return inferElementwiseFloat(inference, op.getOperands());
}
template <typename Adaptor> llvm::LogicalResult inferPredicate(Inference &inference, Adaptor op) {
  return inferElementwiseBool(inference, op.getOperands());
}
template <typename Adaptor> llvm::LogicalResult inferSoftmax(Inference &inference, Adaptor op) {
  mlir::RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDim(op.getDim(), type.getRank(), "dim")))
    return mlir::failure();
  std::optional<mlir::Type> dtype = op.getDtype();
  return inference.result(type.getShape(), toFloatType(dtype.value_or(type.getElementType())));
}

/// Infers the result types of `op` again from its operands and refines the present ones: a dynamic
/// dim becomes static where inference knows its size, an encoding stays. Ops without inference are
/// left alone. Fails with a diagnostic where the two contradict each other.
llvm::LogicalResult inferAndSetTypes(mlir::Operation *op);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_INFERENCE_H
