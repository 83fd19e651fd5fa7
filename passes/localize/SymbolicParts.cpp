// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/SymbolicParts.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Concatenation.h"
#include "passes/localize/Parts.h"
#include "passes/localize/SymbolicHalos.h"

using namespace mlir;
using namespace shardc;

/// Of an operand that is `origin` elements behind where the result begins.
static SymbolicHalo partOf(Localizer &localizer, OpBuilder &builder, unsigned operand, int64_t dim,
                           Value origin, unsigned result = 0) {
  auto splitOf = [&](const Layout *layout) {
    return layout ? layout->splitOfDim(dim) : DimSplit();
  };
  return {dim,
          localizer.operandSize(builder, operand, dim),
          localizer.resultSize(builder, result, dim),
          splitOf(localizer.operandLayout(operand)),
          splitOf(localizer.resultLayout(result)),
          origin};
}

LocalValues shardc::sliceSymbolic(Localizer &localizer, OpBuilder &builder, aten::SliceOp op,
                                  Value local) {
  auto dim = static_cast<int64_t>(op.getDim()), step = static_cast<int64_t>(op.getStep());
  LocalIndices indices = localizer.indices(builder);
  Value whole = indices.global(localizer.operandSize(builder, 0, dim));
  aten::BuiltSizes bounds(builder, op.getLoc());
  Dim start = op.getStart() ? bounds.of(localizer.localOf(op.getStart()))
                            : Dim(static_cast<int64_t>(op.getStaticStart()));
  Dim size = bounds.of(getAsOpFoldResult(whole));
  start = bounds.min(bounds.max(bounds.fromEnd(start, size), 0), size);
  SymbolicHalo part = partOf(localizer, builder, 0, dim, bounds.value(start));
  part.stride = step;
  findFarthest(localizer, part);
  SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
  Value moved = coveredElements(indices, part, local, sizes);
  if (step != 1)
    moved = localizer.emitter(builder).slice(moved, dim, builder.getIndexAttr(0), sizes[dim], step);
  moved.setType(localizer.localResultType(0));
  return single(moved);
}

LocalValues shardc::splitSymbolic(Localizer &localizer, OpBuilder &builder,
                                  aten::SplitWithSizesOp op, Value local) {
  auto dim = static_cast<int64_t>(op.getDim());
  LocalIndices indices = localizer.indices(builder);
  Value offset = indices.constant(0);
  SmallVector<Value> parts;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    SymbolicHalo part = partOf(localizer, builder, 0, dim, offset, i);
    findFarthest(localizer, part);
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
    parts.push_back(coveredElements(indices, part, local, sizes));
    parts.back().setType(localizer.localResultType(i));
    offset = indices.add(offset, indices.global(part.count));
  }
  return parts;
}

LocalValues shardc::joinSymbolic(Localizer &localizer, OpBuilder &builder, aten::CatOp op,
                                 ValueRange operands) {
  auto dim = static_cast<int64_t>(op.getDim());
  int64_t rank = aten::rankOfCat(op.getTensors());
  LocalIndices indices = localizer.indices(builder);
  Emitter emit = localizer.emitter(builder);
  Type elementType = localizer.localResultType(0).getElementType();
  Value offset = indices.constant(0);
  SmallVector<Value> parts;
  for (auto [i, local] : llvm::enumerate(operands)) {
    auto number = static_cast<unsigned>(i);
    if (aten::isSkippedByCat(op.getTensors()[i], rank))
      continue;
    SymbolicHalo part =
        partOf(localizer, builder, number, dim, indices.sub(indices.constant(0), offset));
    findFarthest(localizer, part);
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, number);
    parts.push_back(emit.cast(coveredElements(indices, part, local, sizes), elementType));
    offset = indices.add(offset, indices.global(part.size));
  }
  Value joined = emit.cat(parts, dim);
  joined.setType(localizer.localResultType(0));
  return single(joined);
}

Value shardc::padSymbolic(Localizer &localizer, OpBuilder &builder, aten::ConstantPadNdOp op,
                          int64_t dim, Value local, SmallVectorImpl<OpFoldResult> &sizes) {
  LocalIndices indices = localizer.indices(builder);
  SymbolicHalo part =
      partOf(localizer, builder, 0, dim, indices.constant(-op.getPad()[amountsOf(op, dim)]));
  findFarthest(localizer, part);
  return coveredPart(indices, part, local, sizes, op.getValue().convertToDouble());
}

Value shardc::flipSymbolic(Localizer &localizer, OpBuilder &builder, int64_t dim, Value local,
                           SmallVectorImpl<OpFoldResult> &sizes) {
  LocalIndices indices = localizer.indices(builder);
  SymbolicHalo part = partOf(localizer, builder, 0, dim, indices.constant(0));
  part.isReversed = true;
  Value moved = coveredElements(indices, part, local, sizes);
  return aten::FlipOp::create(builder, localizer.getOp()->getLoc(), moved, ArrayRef<int64_t>(dim));
}
