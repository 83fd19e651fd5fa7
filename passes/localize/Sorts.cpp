// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorts along a sharded dim.

#include "dialects/aten/Sorting.h"
#include "passes/localize/Models.h"
#include "passes/localize/SampleSort.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The first elements of what each rank has are gathered, with their positions, and the first of
/// those are the result. Ranks that have fewer than that gather all.
struct SortModel : LocalizeModel<SortModel, aten::SortOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::SortOp op,
                         ValueRange operands) {
    auto dim = static_cast<int64_t>(op.getDim());
    DimSplit split =
        localizer.operandLayout(0) ? localizer.operandLayout(0)->splitOfDim(dim) : DimSplit();
    if (split.empty())
      return sameOp(localizer, builder, operands);
    LocalIndices indices = localizer.indices(builder);
    GlobalSize size = localizer.operandSize(builder, 0, dim);
    Value offset = indices.offset(size, split);
    if (!offset) {
      localizer.refuse() << "dim " << dim << " is sharded in blocks; replicate it before";
      return failure();
    }
    if (!op.getCount() && !aten::isSortedAlone(localizer.globalOperandType(0).getShape(), dim)) {
      localizer.refuse()
          << "dim " << dim
          << " is sharded, and not the only one of a known size; replicate it before";
      return failure();
    }
    auto axesOf = [](const DimSplit &of) {
      return llvm::map_to_vector(of.axes, [](const AxisSplit &axis) { return axis.axis; });
    };
    if (!op.getCount() && axesOf(split) != axesOf(localizer.resultLayout(0)->splitOfDim(dim))) {
      localizer.refuse() << "dim " << dim
                         << " of the result is sharded over other axes, or in another order";
      return failure();
    }
    if (!op.getCount())
      return sampleSort(localizer, builder, op, operands.front());
    auto count = static_cast<int64_t>(*op.getCount());
    auto sort = [&](Value x) {
      return aten::SortOp::create(builder, op.getLoc(), x, dim, op.getDescending(),
                                  op.getCountAttr());
    };
    Emitter emit = localizer.emitter(builder);
    Layout shards(localizer.getMesh().getValue());
    shards.order = localizer.operandLayout(0)->order;
    SmallVector<unsigned> axes;
    int64_t ranks = 1;
    for (const AxisSplit &axis : split.axes) {
      shards.placements[axis.axis] = localizer.operandLayout(0)->placements[axis.axis];
      axes.push_back(axis.axis);
      ranks *= axis.count;
    }
    auto gathered = [&](Value x, const Layout &layout, int64_t whole) {
      SmallVector<int64_t> shape(aten::shapeOf(x));
      shape[dim] = whole;
      return localizer.allGather(builder, x, layout,
                                 RankedTensorType::get(shape, aten::elementTypeOf(x)), dim, axes);
    };
    int64_t whole = size.fixed();
    if (whole == kDynamic) {
      localizer.refuse() << "dim " << dim << " has no known size; replicate it before";
      return failure();
    }
    if (split.distinctExtents(whole, split.axes.size()).front() < count)
      return SmallVector<Value>(sort(gathered(operands[0], shards, whole))->getResults());
    aten::SortOp own = sort(operands[0]);
    Value place = emit.add(own.getIndices(), emit.ofIndex(offset, builder.getI64Type()));
    Layout candidates(localizer.getMesh().getValue());
    candidates.order = shards.order;
    for (unsigned axis : axes)
      candidates.placements[axis] = Placement::shard(dim);
    aten::SortOp best = sort(gathered(own.getValues(), candidates, count * ranks));
    Value places = gathered(place, candidates, count * ranks);
    Value positions = aten::GatherOp::create(builder, op.getLoc(), places, dim, best.getIndices());
    return SmallVector<Value>{best.getValues(), positions};
  }
};

} // namespace

void shardc::attachSortModels(MLIRContext *context) {
  attachModel<aten::SortOp, SortModel>(context);
}
