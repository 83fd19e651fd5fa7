// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Models.h"
#include "passes/localize/Grouped.h"

#include "passes/localize/RedistributeSteps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

SmallVector<int64_t> shardc::reducedDims(std::optional<ArrayRef<int64_t>> dims, int64_t rank) {
  if (dims && !dims->empty())
    return SmallVector<int64_t>(*dims);
  return llvm::to_vector(llvm::seq<int64_t>(0, rank));
}

bool shardc::isPartialOver(const Localizer &localizer, ArrayRef<unsigned> axes,
                           Reduction reduction) {
  const Layout *layout = localizer.resultLayout(0);
  return layout && llvm::all_of(axes, [&](unsigned axis) {
           return layout->placements[axis] == Placement::partial(reduction);
         });
}

Value shardc::globalRange(Localizer &localizer, OpBuilder &builder, const GlobalSize &size,
                          const DimSplit &split) {
  LocalIndices indices = localizer.indices(builder);
  Emitter emit = localizer.emitter(builder);
  if (Value offset = indices.offset(size, split))
    return emit.range(offset, indices.extent(size, split));
  // In blocks: the range of the whole dim, and this rank's share of it.
  Value whole = emit.range(indices.constant(0), indices.global(size));
  Layout layout(localizer.getMesh().getValue());
  layout.order.clear();
  for (const AxisSplit &axis : split.axes) {
    layout.placements[axis.axis] = Placement::shard(0, axis);
    layout.order.push_back(axis.axis);
  }
  for (unsigned axis = 0; axis < layout.placements.size(); ++axis)
    if (!layout.placements[axis].isShard())
      layout.order.push_back(axis);
  return emitShard(localizer, builder, whole, layout, {size});
}

double shardc::lowestOf(Type elementType) {
  if (isa<FloatType>(elementType))
    return -std::numeric_limits<double>::infinity();
  unsigned width = elementType.getIntOrFloatBitWidth();
  bool isUnsigned = elementType.isUnsignedInteger() || width == 1;
  return isUnsigned ? 0 : -std::ldexp(1.0, static_cast<int>(width) - 1);
}

Value shardc::alongDim(Emitter &emit, Value vector, OpFoldResult length, int64_t dim,
                       int64_t rank) {
  SmallVector<OpFoldResult> sizes(rank, emit.getBuilder().getIndexAttr(1));
  sizes[dim] = length;
  return emit.view(vector, sizes);
}

LogicalResult shardc::checkAddedOnce(Localizer &localizer, Value added, unsigned operand) {
  const Layout *result = localizer.resultLayout(0);
  if (!added || !result)
    return success();
  for (unsigned axis : result->partialAxes())
    if (result->placements[axis] == Placement::partial(Reduction::Sum) &&
        localizer.operandLayout(operand)->placements[axis] != Placement::partial(Reduction::Sum)) {
      localizer.refuse() << "operand " << operand << " would be added once for each rank of axis \""
                         << localizer.getMesh().getValue().axes[axis].name
                         << "\"; redistribute it to P(sum)";
      return failure();
    }
  return success();
}

void shardc::registerLocalizeModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, aten::AtenDialect *) {
    attachAdaptivePoolModels(context);
    attachAttentionModels(context);
    attachContractionModels(context);
    attachCreationModels(context);
    attachCustomOpModels(context);
    attachGroupedModels(context);
    attachGroupNormModels(context);
    attachLookupModels(context);
    attachNeighborhoodModels(context);
    attachNormalizationModels(context);
    attachPartModels(context);
    attachRandomModels(context);
    attachReductionModels(context);
    attachRowDispatchModels(context);
    attachScanModels(context);
    attachScatterModels(context);
    attachSoftmaxModels(context);
    attachSortModels(context);
    attachSpatialModels(context);
    attachViewModels(context);
  });
}
