// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inference of what an op's results are: what all ops share. Sizes are those of types, of a whole
// program in symbols, or of a run (dialects/interfaces/SizeAlgebra.h). Types never carry an
// encoding here; a size that is no number matches every size.
#ifndef SHARDC_DIALECTS_ATEN_INFERENCE_H
#define SHARDC_DIALECTS_ATEN_INFERENCE_H

#include "dialects/aten/TypePromotion.h"
#include "dialects/interfaces/SizeAlgebra.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

#include <optional>

namespace shardc::aten {

/// Sizes, of whatever kind those are with which an op is inferred.
using Shape = llvm::SmallVector<Dim>;

/// Whether a value of one type may stand for one of the other: same rank and element type, sizes
/// equal where both are static. Encodings are not looked at.
bool areCompatibleTypes(mlir::TypeRange lhs, mlir::TypeRange rhs);

/// One inference of one op, over one kind of sizes: collects what its results are, and reports
/// errors at the op's location (or not at all, where there is none).
class Inference {
public:
  Inference(mlir::MLIRContext *context, std::optional<mlir::Location> location,
            llvm::StringRef opName, SizeAlgebra &sizes)
      : sizes(sizes), context(context), location(location), opName(opName) {}

  mlir::MLIRContext *getContext() const { return context; }

  /// Arithmetic on sizes.
  SizeAlgebra &sizes;
  /// Those of an operand, and of what one attribute and index operand together give (a SymInt or a
  /// list of them).
  Shape sizesOf(mlir::Value tensor) { return sizes.sizesOf(tensor); }
  Dim given(int64_t value, mlir::Value operand) {
    return operand ? sizes.valueOf(operand) : Dim(value);
  }
  Shape given(llvm::ArrayRef<int64_t> values, mlir::ValueRange operands);

  /// Adds one result.
  llvm::LogicalResult result(llvm::ArrayRef<Dim> shape, mlir::Type elementType);
  void result(mlir::Type type) { results.push_back({{}, type}); }
  /// What was added, as types: sizes that are no numbers are dynamic.
  void appendTypes(llvm::SmallVectorImpl<mlir::Type> &types) const;
  /// Likewise, as sizes; none for what is no tensor.
  llvm::SmallVector<Shape> resultSizes() const;

  template <typename... Args> llvm::LogicalResult error(Args &&...args) {
    return mlir::emitOptionalError(location, "'", opName, "' op ", std::forward<Args>(args)...);
  }

  /// A dim of a tensor of this rank; a 0-dim tensor counts as one of one dim, as in PyTorch.
  llvm::LogicalResult checkDim(int64_t dim, int64_t rank, llvm::StringRef name);
  /// Likewise, and no dim twice.
  llvm::LogicalResult checkDims(llvm::ArrayRef<int64_t> dims, int64_t rank, llvm::StringRef name);

  /// A SymInt: an index operand is there exactly if the static value is dynamic. In lists, one for
  /// each dynamic entry, and no entry is negative.
  llvm::LogicalResult checkDynamic(int64_t value, mlir::Value operand, llvm::StringRef name);
  llvm::LogicalResult checkDynamicList(llvm::ArrayRef<int64_t> values, mlir::ValueRange operands,
                                       llvm::StringRef name);

  /// The shape that all broadcast to.
  llvm::FailureOr<Shape> broadcast(llvm::ArrayRef<llvm::ArrayRef<Dim>> shapes);
  /// That of these tensors.
  llvm::FailureOr<Shape> broadcast(mlir::ValueRange tensors);
  /// The size that both are; fails where they differ. `what` completes "... differ: A and B".
  llvm::FailureOr<Dim> same(Dim lhs, Dim rhs, llvm::StringRef what);
  /// The type in which these tensors meet.
  llvm::FailureOr<mlir::Type> promote(mlir::ValueRange tensors);
  /// The common element type of tensors that are not promoted.
  llvm::FailureOr<mlir::Type> sameElementType(mlir::ValueRange tensors);

private:
  mlir::MLIRContext *context;
  std::optional<mlir::Location> location;
  llvm::StringRef opName;
  struct Result {
    std::optional<Shape> shape; ///< of a tensor, whose element type is `type`
    mlir::Type type;
  };
  llvm::SmallVector<Result, 1> results;
};

/// As many dims, and no two numbers that differ.
bool areCompatible(llvm::ArrayRef<Dim> lhs, llvm::ArrayRef<Dim> rhs);

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
template <typename Adaptor> llvm::LogicalResult inferComparison(Inference &inference, Adaptor op) {
  if (failed(inference.promote(op.getOperands())))
    return mlir::failure();
  return inferElementwiseBool(inference, op.getOperands());
}
template <typename Adaptor> llvm::LogicalResult inferTriangle(Inference &inference, Adaptor op) {
  mlir::RankedTensorType type = typeOf(op.getSelf());
  if (type.getRank() < 2)
    return inference.error("needs a tensor of at least two dims");
  return inference.result(inference.sizesOf(op.getSelf()), type.getElementType());
}
template <typename Adaptor> llvm::LogicalResult inferSoftmax(Inference &inference, Adaptor op) {
  mlir::RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDim(op.getDim(), type.getRank(), "dim")))
    return mlir::failure();
  std::optional<mlir::Type> dtype = op.getDtype();
  return inference.result(inference.sizesOf(op.getSelf()),
                          toFloatType(dtype.value_or(type.getElementType())));
}

/// i64 for bools and integers, unless `dtype` says otherwise.
mlir::Type sumType(mlir::Type type, std::optional<mlir::Type> dtype);

/// Reduction over `dims` (none or empty: all). The second form refuses to reduce no elements.
llvm::LogicalResult inferReduction(Inference &inference, mlir::Value self,
                                   std::optional<llvm::ArrayRef<int64_t>> dims, bool keepdim,
                                   mlir::Type elementType);
llvm::LogicalResult inferExtremumOf(Inference &inference, mlir::Value self,
                                    std::optional<llvm::ArrayRef<int64_t>> dims, bool keepdim,
                                    mlir::Type elementType);

template <typename Adaptor> llvm::LogicalResult inferSumLike(Inference &inference, Adaptor op) {
  return inferReduction(inference, op.getSelf(), op.getDim(), op.getKeepdim(),
                        sumType(elementTypeOf(op.getSelf()), op.getDtype()));
}
template <typename Adaptor>
llvm::LogicalResult inferCastReductionSame(Inference &inference, Adaptor op) {
  return inferReduction(inference, op.getSelf(), op.getDim(), op.getKeepdim(),
                        op.getDtype().value_or(elementTypeOf(op.getSelf())));
}
template <typename Adaptor> llvm::LogicalResult inferMean(Inference &inference, Adaptor op) {
  if (!mlir::isa<mlir::FloatType>(op.getDtype().value_or(elementTypeOf(op.getSelf()))))
    return inference.error("has no mean of integers or bools: give a float dtype");
  return inferCastReductionSame(inference, op);
}
template <typename Adaptor>
llvm::LogicalResult inferReductionSame(Inference &inference, Adaptor op) {
  return inferReduction(inference, op.getSelf(), op.getDim(), op.getKeepdim(),
                        elementTypeOf(op.getSelf()));
}
template <typename Adaptor>
llvm::LogicalResult inferReductionFloat(Inference &inference, Adaptor op) {
  return inferReduction(inference, op.getSelf(), op.getDim(), op.getKeepdim(),
                        toFloatType(elementTypeOf(op.getSelf())));
}
template <typename Adaptor> llvm::LogicalResult inferAnyAll(Inference &inference, Adaptor op) {
  // PyTorch keeps uint8, which once was its bool.
  mlir::Type type = elementTypeOf(op.getSelf());
  bool isByte = type.isUnsignedInteger(8);
  return inferReduction(inference, op.getSelf(), op.getDim(), op.getKeepdim(),
                        isByte ? type : mlir::IntegerType::get(inference.getContext(), 1));
}
template <typename Adaptor>
llvm::LogicalResult inferArgReduction(Inference &inference, Adaptor op) {
  int64_t dim = op.getDim().value_or(0);
  return inferExtremumOf(inference, op.getSelf(),
                         op.getDim() ? std::optional<llvm::ArrayRef<int64_t>>(dim) : std::nullopt,
                         op.getKeepdim(), mlir::IntegerType::get(inference.getContext(), 64));
}

/// The sizes of an op's results (ResultSizesOpInterface) as constants and index values built at
/// `builder`, from `aten.sym_size` of its operands: ReifyRankedShapedTypeOpInterface.
llvm::LogicalResult reifyShapes(mlir::Operation *op, mlir::OpBuilder &builder,
                                mlir::ReifiedRankedShapedTypeDims &shapes);

/// Infers the result types of `op` again from its operands and refines the present ones: a dynamic
/// dim becomes static where inference knows its size, an encoding stays. Ops without inference are
/// left alone. Fails with a diagnostic where the two contradict each other.
llvm::LogicalResult inferAndSetTypes(mlir::Operation *op);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_INFERENCE_H
