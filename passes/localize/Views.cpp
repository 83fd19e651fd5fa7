// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of sharded dims: sizes are one rank's, and where its elements are not those of its part of
// the result, it fetches those that it lacks.

#include "passes/localize/Models.h"
#include "passes/localize/MovePieces.h"
#include "passes/redistribute/core/BlockExchange.h"

#include <set>

using namespace mlir;
using namespace shardc;

namespace {

/// Groups of dims, of the operand and of the result, that have the same elements. Group by group is
/// small work even where a batch of thousands is a dim of its own.
struct ViewGroup {
  std::vector<SplitDim> from, to;
  DimGroup dims;
};

SmallVector<ViewGroup> groupsOf(Localizer &localizer) {
  SmallVector<ViewGroup> groups;
  for (const DimGroup &dims : groupViewDims(localizer.globalOperandType(0).getShape(),
                                            localizer.globalResultType(0).getShape())) {
    ViewGroup &group = groups.emplace_back();
    group.dims = dims;
    for (unsigned dim = dims.inputBegin; dim < dims.inputEnd; ++dim)
      group.from.push_back(localizer.operandDim(0, dim));
    for (unsigned dim = dims.resultBegin; dim < dims.resultEnd; ++dim)
      group.to.push_back(localizer.resultDim(0, dim));
  }
  return groups;
}

/// The dims of a group as one.
HeldDim asOneDim(const Mesh &mesh, ArrayRef<SplitDim> dims) {
  HeldDim held{1, {}, {}};
  std::set<unsigned> axes;
  for (const SplitDim &dim : dims) {
    held.size *= dim.size;
    for (const AxisSplit &axis : dim.split.axes)
      axes.insert(axis.axis);
  }
  held.axes.assign(axes.begin(), axes.end());
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    held.runs.push_back(linearRuns(dims.vec(), mesh.coordinateOfPosition(position)));
  return held;
}

bool isStaticAndNotEmpty(RankedTensorType type) {
  return type.hasStaticShape() && !llvm::is_contained(type.getShape(), 0);
}

struct ViewModel : LocalizeModel<ViewModel, aten::ViewOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ViewOp op,
                         ValueRange operands) {
    Value value = operands[0];
    // Symbolic sizes: the layouts agree by the op's sharding rule.
    if (localizer.getMesh() && isStaticAndNotEmpty(localizer.globalOperandType(0)) &&
        isStaticAndNotEmpty(localizer.globalResultType(0))) {
      const Mesh &mesh = localizer.getMesh().getValue();
      SmallVector<ViewGroup> groups = groupsOf(localizer);
      for (auto [i, group] : llvm::enumerate(groups)) {
        if (isLocalView(mesh, group.from, group.to))
          continue;
        value = moved(localizer, builder, value, groups, i);
        if (!value)
          return failure();
      }
    }
    return single(localizer.emitter(builder).view(value, localizer.localSizes(builder, 0)));
  }

private:
  /// The elements of a group, which rank borders cut inside rows: as one dim, they go to those that
  /// need them. The groups before it have the result's shares, those behind it the operand's.
  static Value moved(Localizer &localizer, OpBuilder &builder, Value value,
                     ArrayRef<ViewGroup> groups, size_t at) {
    const Mesh &mesh = localizer.getMesh().getValue();
    HeldDim before = asOneDim(mesh, groups[at].from), after = asOneDim(mesh, groups[at].to);
    for (const HeldDim *side : {&before, &after})
      for (const std::vector<Run> &runs : side->runs)
        if (runs.size() > 1) { // of a sharded inner dim
          localizer.refuse() << "a rank would need elements of other ranks; shard whole units of "
                                "the inner dims (a granule), or replicate the dim before the view";
          return Value();
        }
    LocalIndices indices = localizer.indices(builder);
    SmallVector<OpFoldResult> sizes;
    SmallVector<int64_t> shape;
    for (auto [i, group] : llvm::enumerate(groups)) {
      HeldDim held = asOneDim(mesh, i < at ? group.to : group.from);
      SmallVector<int64_t> lengths;
      for (const std::vector<Run> &runs : held.runs)
        lengths.push_back(sizeOf(runs));
      sizes.push_back(getAsOpFoldResult(indices.table(lengths)));
    }
    Value flat = localizer.emitter(builder).view(value, sizes);
    PieceSource source{flat, sizes, before, 0};
    PieceTarget target{{{0, before.size, 0, 1}}, after, sizes, {}};
    SmallVector<int64_t> lengths;
    for (const std::vector<Run> &runs : after.runs)
      lengths.push_back(sizeOf(runs));
    target.sizes[at] = getAsOpFoldResult(indices.table(lengths));
    for (OpFoldResult size : target.sizes)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    target.type = RankedTensorType::get(shape, aten::elementTypeOf(value));
    return movePieces(localizer, builder, static_cast<int64_t>(at), source, target).front();
  }
};

struct ExpandModel : LocalizeModel<ExpandModel, aten::ExpandOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ExpandOp op,
                         ValueRange operands) {
    return single(localizer.emitter(builder).full(localizer.localSizes(builder, 0), operands[0]));
  }
};

} // namespace

void shardc::attachViewModels(MLIRContext *context) {
  attachModel<aten::ViewOp, ViewModel>(context);
  attachModel<aten::ExpandOp, ExpandModel>(context);
}
