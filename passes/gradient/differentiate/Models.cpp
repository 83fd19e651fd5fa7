// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/gradient/differentiate/Models.h"
#include "passes/gradient/differentiate/Grouped.h"

#include "passes/gradient/CotangentType.h"

#include "dialects/dist/Dist.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace shardc;

OpFoldResult Derivation::size(Value value, int64_t dim) {
  int64_t size = aten::shapeOf(value)[dim];
  if (!ShapedType::isDynamic(size))
    return builder.getIndexAttr(size);
  return aten::SymSizeOp::create(builder, emit.getLoc(), builder.getIndexType(), value, dim)
      .getResult();
}

SmallVector<OpFoldResult> Derivation::sizes(Value value) {
  SmallVector<OpFoldResult> all;
  for (int64_t dim = 0, rank = aten::typeOf(value).getRank(); dim < rank; ++dim)
    all.push_back(size(value, dim));
  return all;
}

Expr Derivation::scalar(OpFoldResult size, Type elementType) {
  if (std::optional<int64_t> number = getConstantIntValue(size))
    return of(emit.integer(*number, elementType));
  return of(emit.ofIndex(cast<Value>(size), elementType));
}

Expr Derivation::count(Value value, ArrayRef<int64_t> dims, Type elementType) {
  int64_t fixed = 1;
  Expr product;
  for (int64_t dim : dims) {
    OpFoldResult length = size(value, dim);
    if (std::optional<int64_t> number = getConstantIntValue(length)) {
      fixed *= *number;
      continue;
    }
    Expr factor = scalar(length, elementType);
    product = product ? product * factor : factor;
  }
  Expr number = of(emit.integer(fixed, elementType));
  return !product ? number : fixed == 1 ? product : product * number;
}

Expr Derivation::positions(OpFoldResult length, int64_t dim, int64_t rank, Type elementType) {
  Value start = arith::ConstantIndexOp::create(builder, emit.getLoc(), 0);
  Value end = getValueOrCreateConstantIndexOp(builder, emit.getLoc(), length);
  SmallVector<OpFoldResult> shape(rank, builder.getIndexAttr(1));
  if (rank > 0)
    shape[dim] = length;
  return of(emit.view(emit.range(start, end, /*step=*/1, elementType), shape));
}

Expr Derivation::spread(Expr x, int64_t dim, int64_t step) {
  if (step == 1)
    return x;
  SmallVector<OpFoldResult> shape = sizes(x.value);
  if (std::optional<int64_t> length = getConstantIntValue(shape[dim]))
    shape[dim] = builder.getIndexAttr(*length * step);
  else
    shape[dim] = builder.createOrFold<arith::MulIOp>(
        emit.getLoc(), cast<Value>(shape[dim]),
        arith::ConstantIndexOp::create(builder, emit.getLoc(), step));
  return view(pad(unsqueeze(x, dim + 1), dim + 1, 0, step - 1), shape);
}

SmallVector<int64_t> shardc::dimRange(int64_t begin, int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(begin, std::max(begin, end)));
}

SmallVector<int64_t> shardc::allOrThese(std::optional<ArrayRef<int64_t>> dims, int64_t rank) {
  if (!dims || dims->empty() || rank == 0)
    return dimRange(0, rank);
  SmallVector<int64_t> sorted(*dims);
  llvm::sort(sorted);
  return sorted;
}

Expr shardc::restoreDims(Expr reduced, ArrayRef<int64_t> dims, bool keepdim) {
  if (!keepdim)
    for (int64_t dim : dims)
      reduced = unsqueeze(reduced, dim);
  return reduced;
}

namespace {

/// The identity on the global value: the cotangent goes back to the layout that the operand has
/// (G2). Where that is partial, what becomes of it is decided later (G3).
struct RedistributeGradient : GradientModel<RedistributeGradient, dist::RedistributeOp> {
  static LogicalResult run(Derivation &d, dist::RedistributeOp op) {
    if (!d.grad())
      return success();
    auto back = dist::RedistributeOp::create(
        d.builder, d.emit.getLoc(), cotangentType(cast<RankedTensorType>(op.getInput().getType())),
        d.grad().value,
        /*backward=*/true);
    d.add(0, d.of(back.getResult()));
    return success();
  }
};

/// A wish about the layout of the forward's value; that of its cotangent follows from it.
struct ConstrainGradient : GradientModel<ConstrainGradient, dist::ConstrainOp> {
  static LogicalResult run(Derivation &d, dist::ConstrainOp) {
    d.add(0, d.grad());
    return success();
  }
};

} // namespace

void shardc::registerDifferentiateModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, aten::AtenDialect *) {
    attachAttentionGradients(context);
    attachContractionGradients(context);
    attachCustomOpGradients(context);
    attachElementwiseGradients(context);
    attachGroupedGradients(context);
    attachFourierGradients(context);
    attachIndexingGradients(context);
    attachNeighborhoodGradients(context);
    attachNormalizationGradients(context);
    attachPartGradients(context);
    attachReductionGradients(context);
    attachSpatialGradients(context);
    attachScanGradients(context);
    attachSortingGradients(context);
    attachViewGradients(context);
    attachWritingGradients(context);
  });
  registry.addExtension(+[](MLIRContext *context, dist::DistDialect *) {
    dist::RedistributeOp::attachInterface<RedistributeGradient>(*context);
    dist::ConstrainOp::attachInterface<ConstrainGradient>(*context);
  });
}
