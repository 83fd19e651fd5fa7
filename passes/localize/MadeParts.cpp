// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/MadeParts.h"

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

Run shardc::pieceOf(const Mesh &mesh, const SplitDim &dim, int64_t position) {
  std::vector<Run> runs = dim.split.runs(dim.size, mesh.coordinateOfPosition(position));
  return runs.empty() ? Run{} : runs.front();
}

RankedTensorType shardc::typeOfSizes(Value value, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, aten::elementTypeOf(value));
}

PieceTarget shardc::spreadRuns(int64_t size, ArrayRef<ArrayRef<PlacedRun>> placed,
                               ArrayRef<int64_t> lengths) {
  size_t most = 0;
  for (ArrayRef<PlacedRun> list : placed)
    most = std::max(most, list.size());
  int64_t zeros = *llvm::max_element(lengths), period = zeros + size;
  PieceTarget target;
  for (size_t i = 0; i < most; ++i)
    llvm::append_values(target.pieces, Piece{1, zeros}, Piece{0, size});
  target.pieces.push_back({1, zeros});
  target.dim.size = static_cast<int64_t>(most) * period + zeros;
  for (auto [list, length] : llvm::zip_equal(placed, lengths)) {
    std::vector<Run> &runs = target.dim.runs.emplace_back();
    int64_t made = 0, at = 0;
    for (const PlacedRun &part : list) {
      runs.push_back({at, at + part.begin - made});
      runs.push_back({at + zeros + part.run.begin, at + zeros + part.run.end});
      made = part.end();
      at += period;
    }
    runs.push_back({at, at + length - made});
  }
  return target;
}

namespace {

/// What all ranks have made, rank by rank, is a dim of its own. Every rank gets of it what belongs
/// to its elements, in as many layers as there are parts of one element.
class PartSum {
public:
  PartSum(Localizer &localizer, OpBuilder &builder, const MadeDim &dim,
          SmallVectorImpl<OpFoldResult> &sizes, Reduction reduction)
      : localizer(localizer), builder(builder), dim(dim), mesh(localizer.getMesh().getValue()),
        sizes(sizes), reduction(reduction), layers(mesh.numDevices()) {
    for (int64_t position = 0; position < mesh.numDevices(); ++position)
      owned.push_back(pieceOf(mesh, dim.owned, position));
  }

  Value run(Value value, Value own) {
    PieceSource all{value, llvm::to_vector(sizes), dim.made};
    all.dim.size = 0;
    Mesh byPosition(mesh.axes); // without device ids, ranks are positions
    for (ArrayRef<int64_t> group : byPosition.groups(all.dim.axes))
      addGroup(group, all.dim);
    size_t most = own ? 0 : 1;
    for (ArrayRef<Layer> list : layers)
      most = std::max(most, list.size());
    auto lengths = llvm::map_to_vector(owned, [](const Run &run) { return run.size(); });
    sizes[dim.dim] = getAsOpFoldResult(localizer.indices(builder).table(lengths));
    SmallVector<PieceTarget> targets;
    for (size_t k = 0; k < most; ++k)
      targets.push_back(target(k, all.dim, lengths, value));
    if (targets.empty())
      return own;
    PieceSource none;
    none.value = reduction == Reduction::Max ? lowestOf(aten::elementTypeOf(value)) : 0;
    Emitter emit = localizer.emitter(builder);
    Value sum = own;
    for (Value part : movePieces(localizer, builder, dim.dim, {all, none}, targets))
      sum = !sum                          ? part
            : reduction == Reduction::Max ? emit.binary<aten::MaximumOp>(sum, part)
                                          : emit.add(sum, part);
    return sum;
  }

private:
  /// What a rank gets from others, in the order of its own elements, where none overlaps another.
  using Layer = SmallVector<PlacedRun, 2>;

  void addGroup(ArrayRef<int64_t> group, HeldDim &all) {
    int64_t total = 0;
    for (int64_t source : group) {
      std::vector<Run> made = std::move(all.runs[source]);
      all.runs[source].clear();
      int64_t first = total;
      for (Run run : made) {
        if (run.size() <= 0)
          continue;
        for (int64_t position : group) {
          const Run &own = owned[position];
          Run common{std::max(own.begin, run.begin), std::min(own.end, run.end)};
          int64_t shift = total - run.begin;
          if (common.begin < common.end)
            place(layers[position],
                  {{common.begin + shift, common.end + shift}, common.begin - own.begin});
        }
        total += run.size();
      }
      if (first < total)
        all.runs[source].push_back({first, total});
    }
    all.size = total;
  }

  /// In the first layer that has room for it: what comes from before and from behind a rank's own
  /// elements is one.
  static void place(SmallVectorImpl<Layer> &layers, const PlacedRun &part) {
    auto *layer =
        llvm::find_if(layers, [&](const Layer &other) { return other.back().end() <= part.begin; });
    if (layer == layers.end())
      layer = &layers.emplace_back();
    layer->push_back(part);
  }

  /// Layer `k` of each rank, with zeros (or lowest numbers) around its parts.
  PieceTarget target(size_t k, const HeldDim &all, ArrayRef<int64_t> lengths, Value value) {
    SmallVector<ArrayRef<PlacedRun>> parts;
    for (const SmallVector<Layer> &list : layers)
      parts.push_back(k < list.size() ? ArrayRef<PlacedRun>(list[k]) : ArrayRef<PlacedRun>());
    PieceTarget target = spreadRuns(all.size, parts, lengths);
    target.dim.axes = all.axes;
    target.sizes.assign(sizes.begin(), sizes.end());
    target.type = typeOfSizes(value, sizes);
    return target;
  }

  Localizer &localizer;
  OpBuilder &builder;
  const MadeDim &dim;
  const Mesh &mesh;
  SmallVectorImpl<OpFoldResult> &sizes;
  Reduction reduction;                    ///< Sum or Max
  SmallVector<Run> owned;                 ///< [position of the mesh]
  SmallVector<SmallVector<Layer>> layers; ///< likewise
};

} // namespace

Value shardc::sumOfMade(Localizer &localizer, OpBuilder &builder, const MadeDim &dim, Value value,
                        SmallVectorImpl<OpFoldResult> &sizes, Reduction reduction, Value own) {
  return PartSum(localizer, builder, dim, sizes, reduction).run(value, own);
}
