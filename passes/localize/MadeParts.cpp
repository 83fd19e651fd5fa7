// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/MadeParts.h"

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

Run shardc::pieceOf(const Mesh &mesh, const SplitDim &dim, int64_t position) {
  std::vector<Run> runs = dim.split.runs(dim.size, mesh.coordinateOfPosition(position));
  return runs.empty() ? Run{} : runs.front();
}

std::vector<Run> shardc::piecesOf(const Mesh &mesh, const SplitDim &dim) {
  std::vector<Run> pieces;
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    pieces.push_back(pieceOf(mesh, dim, position));
  return pieces;
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

/// Ranks that differ in what they have of a dim, by position.
static std::vector<std::vector<int64_t>> groupsOf(const Mesh &mesh, const HeldDim &dim) {
  return Mesh(mesh.axes).groups(dim.axes); // without device ids, ranks are positions
}

SmallVector<std::vector<Run>, 3> shardc::ownedParts(const Mesh &mesh, const MadeDim &dim) {
  auto ranks = static_cast<size_t>(mesh.numDevices());
  std::vector<Run> front(ranks), middle(ranks), back(ranks);
  for (const std::vector<int64_t> &group : groupsOf(mesh, dim.made))
    for (int64_t rank : group) {
      Run own = pieceOf(mesh, dim.owned, rank);
      int64_t first = own.begin, last = own.end; // of what is between
      for (int64_t other : group)
        for (const Run &run : other == rank ? std::vector<Run>() : dim.made.runs[other]) {
          Run common{std::max(own.begin, run.begin), std::min(own.end, run.end)};
          if (common.begin >= common.end)
            continue;
          if (common.end == own.end && common.begin != own.begin)
            last = std::min(last, common.begin);
          else
            first = std::max(first, common.end);
        }
      last = std::max(first, last);
      front[rank] = {own.begin, first};
      middle[rank] = {first, last};
      back[rank] = {last, own.end};
    }
  SmallVector<std::vector<Run>, 3> parts;
  for (std::vector<Run> *part : {&front, &middle, &back})
    if (llvm::any_of(*part, [](const Run &run) { return run.size() > 0; }))
      parts.push_back(std::move(*part));
  return parts;
}

namespace {

/// What all ranks have made, rank by rank, is a dim of its own. Every rank gets of it what belongs
/// to its elements, in as many layers as there are parts of one element.
class PartSum {
public:
  PartSum(Localizer &localizer, OpBuilder &builder, const MadeDim &dim,
          SmallVectorImpl<OpFoldResult> &sizes, Reduction reduction)
      : localizer(localizer), builder(builder), dim(dim), mesh(localizer.getMesh().getValue()),
        sizes(sizes), reduction(reduction) {
    for (std::vector<Run> &runs : ownedParts(mesh, dim))
      parts.push_back({std::move(runs), SmallVector<SmallVector<Layer>>(mesh.numDevices())});
  }

  Value run(Value value, ArrayRef<Value> own) {
    PieceSource all{value, llvm::to_vector(sizes), dim.made};
    all.dim.size = 0;
    for (ArrayRef<int64_t> group : groupsOf(mesh, dim.made))
      addGroup(group, all.dim);
    Emitter emit = localizer.emitter(builder);
    std::vector<Run> owned = piecesOf(mesh, dim.owned);
    if (parts.empty()) { // nobody owns anything
      setLength(owned);
      return emit.zeros(llvm::to_vector(sizes), aten::elementTypeOf(value));
    }
    SmallVector<PieceTarget> targets;
    SmallVector<size_t> numLayers;
    for (const Part &part : parts) {
      setLength(part.owned);
      size_t most = own.empty() ? 1 : 0;
      for (ArrayRef<Layer> list : part.layers)
        most = std::max(most, list.size());
      for (size_t k = 0; k < most; ++k)
        targets.push_back(target(part, k, all.dim, value));
      numLayers.push_back(most);
    }
    PieceSource none;
    none.value = reduction == Reduction::Max ? lowestOf(aten::elementTypeOf(value)) : 0;
    SmallVector<Value> layers;
    if (!targets.empty())
      layers = movePieces(localizer, builder, dim.dim, {all, none}, targets);
    SmallVector<Value> sums;
    ArrayRef<Value> rest = layers;
    for (auto [part, count] : llvm::enumerate(numLayers)) {
      Value sum = own.empty() ? Value() : own[part];
      for (Value layer : rest.take_front(count))
        sum = !sum                          ? layer
              : reduction == Reduction::Max ? emit.binary<aten::MaximumOp>(sum, layer)
                                            : emit.add(sum, layer);
      rest = rest.drop_front(count);
      sums.push_back(sum);
    }
    setLength(owned);
    if (sums.size() == 1)
      return sums.front();
    Value whole = emit.cat(sums, dim.dim);
    whole.setType(typeOfSizes(whole, sizes));
    return whole;
  }

private:
  void setLength(ArrayRef<Run> runs) {
    sizes[dim.dim] = getAsOpFoldResult(localizer.indices(builder).table(
        llvm::map_to_vector(runs, [](const Run &run) { return run.size(); })));
  }

  /// What a rank gets from others, in the order of its own elements, where none overlaps another.
  using Layer = SmallVector<PlacedRun, 2>;
  struct Part {
    std::vector<Run> owned;                 ///< [position of the mesh]
    SmallVector<SmallVector<Layer>> layers; ///< likewise
  };

  void addGroup(ArrayRef<int64_t> group, HeldDim &all) {
    int64_t total = 0;
    for (int64_t source : group) {
      std::vector<Run> made = std::move(all.runs[source]);
      all.runs[source].clear();
      int64_t first = total;
      for (Run run : made) {
        if (run.size() <= 0)
          continue;
        int64_t shift = total - run.begin;
        for (Part &part : parts)
          for (int64_t position : group) {
            const Run &own = part.owned[position];
            Run common{std::max(own.begin, run.begin), std::min(own.end, run.end)};
            if (common.begin < common.end)
              place(part.layers[position],
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
  PieceTarget target(const Part &part, size_t k, const HeldDim &all, Value value) {
    SmallVector<ArrayRef<PlacedRun>> placed;
    for (const SmallVector<Layer> &list : part.layers)
      placed.push_back(k < list.size() ? ArrayRef<PlacedRun>(list[k]) : ArrayRef<PlacedRun>());
    PieceTarget target =
        spreadRuns(all.size, placed,
                   llvm::map_to_vector(part.owned, [](const Run &run) { return run.size(); }));
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
  Reduction reduction; ///< Sum or Max
  SmallVector<Part, 3> parts;
};

} // namespace

Value shardc::sumOfMade(Localizer &localizer, OpBuilder &builder, const MadeDim &dim, Value value,
                        SmallVectorImpl<OpFoldResult> &sizes, Reduction reduction,
                        ArrayRef<Value> own) {
  return PartSum(localizer, builder, dim, sizes, reduction).run(value, own);
}
