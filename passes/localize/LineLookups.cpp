// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/LineLookups.h"

#include "passes/localize/SymbolicHalos.h"

using namespace mlir;
using namespace shardc;

/// What ranks exchange along a dim of `table` and `elements`, which are sharded alike.
static std::optional<SymbolicHalo> haloOf(Localizer &localizer, int64_t dim,
                                          const aten::LookupLine &line, const Layout *table,
                                          GlobalSize rows, const Layout *elements,
                                          GlobalSize count) {
  auto splitOf = [&](const Layout *layout) {
    return layout ? layout->splitOfDim(dim) : DimSplit();
  };
  SymbolicHalo halo{dim, rows, count, splitOf(table), splitOf(elements), Value()};
  auto axes = [](const DimSplit &split) {
    return llvm::map_to_vector(split.axes, [](const AxisSplit &axis) { return axis.axis; });
  };
  if (axes(halo.image) != axes(halo.positions)) {
    localizer.refuse() << "the table and the elements that are looked up in it are sharded over "
                          "different axes; shard both alike";
    return std::nullopt;
  }
  halo.line = line;
  findFarthest(localizer, halo);
  return halo;
}

/// The positions, counted from the first element that those of this rank cover.
static Value fromCover(Localizer &localizer, OpBuilder &builder, const SymbolicHalo &halo,
                       Value positions) {
  LocalIndices indices = localizer.indices(builder);
  Emitter emit = localizer.emitter(builder);
  Value begin = ownCover(indices, halo).elements.begin;
  return emit.sub(positions, emit.ofIndex(begin, aten::elementTypeOf(positions)));
}

LocalValues shardc::lookUpOnLine(Localizer &localizer, OpBuilder &builder, aten::IndexSelectOp op,
                                 const aten::LookupLine &line, ValueRange operands) {
  auto dim = static_cast<int64_t>(op.getDim());
  std::optional<SymbolicHalo> halo = haloOf(
      localizer, dim, line, localizer.operandLayout(0), localizer.operandSize(builder, 0, dim),
      localizer.resultLayout(0), localizer.resultSize(builder, 0, dim));
  if (!halo)
    return failure();
  SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
  Value rows = coveredElements(localizer.indices(builder), *halo, operands[0], sizes);
  Value found = aten::IndexSelectOp::create(builder, op.getLoc(), rows, dim,
                                            fromCover(localizer, builder, *halo, operands[1]));
  found.setType(localizer.localResultType(0));
  return single(found);
}

LocalValues shardc::addOnLine(Localizer &localizer, OpBuilder &builder, aten::IndexPutOp op,
                              const aten::LookupLine &line, ValueRange operands) {
  int64_t dim = op.getIndicesAt().front();
  std::optional<SymbolicHalo> halo =
      haloOf(localizer, dim, line, localizer.resultLayout(0), localizer.resultSize(builder, 0, dim),
             localizer.operandLayout(2), localizer.operandSize(builder, 2, dim));
  if (!halo)
    return failure();
  LocalIndices indices = localizer.indices(builder);
  Emitter emit = localizer.emitter(builder);
  SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
  sizes[dim] = getAsOpFoldResult(ownCover(indices, *halo).length);
  Value none = emit.zeros(sizes, aten::elementTypeOf(operands[2]));
  Value covered = aten::IndexPutOp::create(
      builder, op.getLoc(), none, ValueRange{fromCover(localizer, builder, *halo, operands[1])},
      operands[2], ArrayRef<int64_t>(dim), /*accumulate=*/true);
  Value sum = emit.add(operands[0], sumOfCovered(indices, *halo, covered, sizes));
  sum.setType(localizer.localResultType(0));
  return single(sum);
}
