// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/PartialWindows.h"

#include "passes/localize/BorderPlan.h"
#include "passes/localize/MadeParts.h"
#include "passes/localize/Rearrangements.h"
#include "passes/localize/RemadeBorders.h"
#include "passes/localize/WindowedImages.h"

using namespace mlir;
using namespace shardc;

namespace {

using Table = SmallVector<int64_t>; ///< a number for every position of the mesh
using Runs = SmallVector<Run>;      ///< likewise

/// What other ways than to fetch all elements must leave of the numbers that it moves, where there
/// are several dims. What it makes has an interior that is computed during each of the exchanges,
/// and with less for the corners alone little is saved.
constexpr double kWorthParts = 0.75;

/// Where parts are sent, the image and the result are copied once more: what others add is beside
/// the rest, and the rest waits for no exchange, so that its image is put together first. A network
/// is so much slower than memory; copies of a few pages take less than to start a kernel.
constexpr double kNetworkOverMemory = 16, kFewBytes = 64 << 10;

/// How ranks may come to what an op's windows make along a halo dim of its image.
BorderDim borderDim(Localizer &localizer, const HaloDim &halo) {
  const Mesh &mesh = localizer.getMesh().getValue();
  BorderDim dim{&halo, halo.imageDim, halo.positionsDim};
  if (halo.isSymbolic())
    return dim;
  for (auto [position, cover] : llvm::enumerate(halo.covers)) {
    Run elements = pieceOf(mesh, halo.image, static_cast<int64_t>(position));
    dim.ranks.push_back({elements, pieceOf(mesh, halo.positions, static_cast<int64_t>(position)),
                         cover.elements,
                         aten::positionsOver(halo.window, elements, halo.positions.size)});
    dim.fetched.push_back(cover.size());
  }
  dim.findNeeds(mesh, heldDim(mesh, halo.image).axes);
  // What pieces of other tensors make goes straight to where it is needed.
  if (halo.image.split.isOverAxesOf(halo.positions.split) &&
      !isMovedOperand(localizer, halo.imageDim))
    dim.ways = {BorderWay::Fetch, BorderWay::Sides, BorderWay::Whole};
  return dim;
}

class PartialWindowBuilder {
public:
  PartialWindowBuilder(Localizer &localizer, OpBuilder &builder, ArrayRef<BorderDim> dims,
                       Reduction reduction, function_ref<Value(Value)> compute)
      : localizer(localizer), builder(builder), emit(localizer.emitter(builder)), dims(dims),
        reduction(reduction), compute(compute), mesh(localizer.getMesh().getValue()),
        sizes(localizer.localSizes(builder, 0)) {}

  Value run(Value local) {
    if (reduction == Reduction::Max)
      fill = lowestOf(aten::elementTypeOf(local));
    SmallVector<HaloDim> fetched;
    const BorderDim *sides = nullptr;
    for (const BorderDim &dim : dims) {
      if (dim.way == BorderWay::Fetch)
        fetched.push_back(*dim.halo);
      else if (dim.way == BorderWay::Sides)
        sides = &dim;
    }
    CoveredImage image = coveredImage(localizer, builder, fetched, local, fill);
    for (const BorderDim &dim : dims) {
      if (dim.way != BorderWay::Whole)
        continue;
      Runs touched;
      for (const BorderRank &rank : dim.ranks)
        touched.push_back(rank.touched);
      image = imageUnder(image, dim, touched, /*withFetched=*/false);
      sizes[dim.halo->positionsDim] = lengths(touched);
    }
    Value value;
    if (sides) {
      value = sumOfSides(image, *sides);
    } else {
      value = made(image);
      addWhole(value);
    }
    value.setType(localizer.localResultType(0));
    return value;
  }

private:
  OpFoldResult table(ArrayRef<int64_t> numbers) {
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  }
  OpFoldResult lengths(ArrayRef<Run> runs) {
    return table(llvm::map_to_vector(runs, [](const Run &run) { return run.size(); }));
  }

  /// What the op makes of an image, whose positions `sizes` counts.
  Value made(const CoveredImage &image) {
    Value value = compute(image.value);
    value.setType(typeOfSizes(value, sizes));
    return value;
  }

  /// The image under some positions of each rank, with its own elements and, for its own positions,
  /// those that it fetches: `fill` is in place of all others.
  CoveredImage imageUnder(const CoveredImage &image, const BorderDim &dim, ArrayRef<Run> positions,
                          bool withFetched) {
    const HaloDim &halo = *dim.halo;
    SmallVector<std::vector<Run>> held;
    for (const BorderRank &rank : dim.ranks)
      held.push_back({rank.elements});
    if (withFetched)
      for (const BorderNeed &need : dim.needs)
        if (!dim.sums[need.source].covers(need))
          held[need.owner].push_back(dim.ranks[need.source].elements);
    Table sizesOf;
    SmallVector<SmallVector<PlacedRun>> placed;
    for (auto [list, run] : llvm::zip_equal(held, positions)) {
      llvm::sort(list, [](const Run &a, const Run &b) { return a.begin < b.begin; });
      SmallVector<PlacedRun> &own = placed.emplace_back();
      if (run.size() == 0) {
        sizesOf.push_back(aten::coverOf(halo.window, {}, 0).size());
        continue;
      }
      Run cover{run.begin * halo.window.stride - halo.window.padding,
                (run.end - 1) * halo.window.stride - halo.window.padding + halo.window.extent()};
      sizesOf.push_back(cover.size());
      for (const Run &elements : list) {
        Run both{std::max(cover.begin, elements.begin), std::min(cover.end, elements.end)};
        if (both.size() > 0)
          own.push_back({both, both.begin - cover.begin});
      }
    }
    PieceSource source{image.value, image.sizes, heldDim(mesh, halo.image)}, padding;
    padding.value = fill;
    PieceTarget target = spreadRuns(
        halo.image.size,
        llvm::map_to_vector(placed, [](const auto &list) { return ArrayRef<PlacedRun>(list); }),
        sizesOf);
    target.dim.axes = source.dim.axes;
    target.sizes = image.sizes;
    target.sizes[halo.imageDim] = table(sizesOf);
    target.type = typeOfSizes(image.value, target.sizes);
    CoveredImage under{{}, target.sizes};
    under.value = movePieces(localizer, builder, halo.imageDim, {source, padding}, target).front();
    return under;
  }

  /// What an op of its own makes for some positions of each rank.
  struct Part {
    Runs runs;
    Value value;

    bool isEmpty() const {
      return llvm::all_of(runs, [](const Run &run) { return run.size() == 0; });
    }
  };

  Value sumOfSides(const CoveredImage &image, const BorderDim &dim) {
    int64_t along = dim.halo->positionsDim;
    MadeDim sum{along, heldDim(mesh, dim.halo->image), dim.halo->positions};
    Part before, behind;
    for (auto [rank, sums, made] : llvm::zip_equal(dim.ranks, dim.sums, sum.made.runs)) {
      before.runs.push_back(sums.before ? rank.before() : Run{});
      behind.runs.push_back(sums.behind ? rank.behind() : Run{});
      made = {before.runs.back(), behind.runs.back()};
    }
    // What is own is made in parts, so that what others send is added to the ends alone.
    SmallVector<Part, 3> own;
    for (std::vector<Run> &runs : ownedParts(mesh, sum))
      own.push_back({Runs(runs.begin(), runs.end()), {}});
    if (own.empty()) // no rank has positions
      own.push_back({Runs(dim.ranks.size()), {}});
    SmallVector<Part *> forOthers, all;
    for (Part *side : {&before, &behind})
      if (!side->isEmpty())
        forOthers.push_back(side);
    for (Part *part : forOthers)
      make(*part, image, dim, /*withFetched=*/false);
    all = forOthers;
    for (Part &part : own) {
      make(part, image, dim, /*withFetched=*/true);
      all.push_back(&part);
    }
    if (hasWhole())
      addWholeToEach(all, along);
    auto ownValues = llvm::map_to_vector(own, [](const Part &part) { return part.value; });
    // Elements that lie between the windows of another rank are under none of them.
    if (forOthers.empty())
      return ownValues.front();
    sizes[along] = total(forOthers);
    return sumOfMade(localizer, builder, sum, joined(forOthers, along), sizes, reduction,
                     ownValues);
  }

  void make(Part &part, const CoveredImage &image, const BorderDim &dim, bool withFetched) {
    sizes[dim.halo->positionsDim] = lengths(part.runs);
    part.value = made(imageUnder(image, dim, part.runs, withFetched));
  }

  /// How many positions parts have together.
  OpFoldResult total(ArrayRef<Part *> parts) { return table(ends(parts)); }
  Table ends(ArrayRef<Part *> parts) {
    Table ends(dims.front().ranks.size(), 0);
    for (const Part *part : parts)
      for (auto [end, run] : llvm::zip_equal(ends, part->runs))
        end += run.size();
    return ends;
  }

  /// `addWhole` of parts along another dim, for the positions of all of them in one exchange.
  void addWholeToEach(ArrayRef<Part *> parts, int64_t along) {
    sizes[along] = total(parts);
    Value all = joined(parts, along);
    addWhole(all);
    for (auto [index, part] : llvm::enumerate(parts)) {
      part->value = emit.slice(all, along, table(ends(parts.take_front(index))),
                               table(ends(parts.take_front(index + 1))));
      sizes[along] = lengths(part->runs);
      part->value.setType(typeOfSizes(part->value, sizes));
    }
  }

  Value joined(ArrayRef<Part *> parts, int64_t dim) {
    if (parts.size() == 1)
      return parts.front()->value;
    Value all =
        emit.cat(llvm::map_to_vector(parts, [](const Part *part) { return part->value; }), dim);
    all.setType(typeOfSizes(all, sizes));
    return all;
  }

  bool hasWhole() const {
    return llvm::any_of(dims, [](const BorderDim &dim) { return dim.way == BorderWay::Whole; });
  }

  /// Along dims where one op has made all parts.
  void addWhole(Value &value) {
    for (const BorderDim &dim : dims) {
      if (dim.way != BorderWay::Whole)
        continue;
      MadeDim sum{dim.halo->positionsDim, heldDim(mesh, dim.halo->image), dim.halo->positions};
      for (auto [made, rank] : llvm::zip_equal(sum.made.runs, dim.ranks))
        made = {rank.touched};
      value = sumOfMade(localizer, builder, sum, value, sizes, reduction);
    }
  }

  Localizer &localizer;
  OpBuilder &builder;
  Emitter emit;
  ArrayRef<BorderDim> dims;
  Reduction reduction;
  double fill = 0;                    ///< leaves what is put together as it is
  function_ref<Value(Value)> compute; ///< the op, of an image
  const Mesh &mesh;
  SmallVector<OpFoldResult> sizes; ///< of what has been made
};

} // namespace

Value shardc::partialWindows(Localizer &localizer, OpBuilder &builder, aten::WindowOpInterface op,
                             ArrayRef<HaloDim> dims, Value local, function_ref<Value(Value)> make) {
  const Mesh &mesh = localizer.getMesh().getValue();
  std::optional<Reduction> reduction = op.getPartReduction();
  if (!reduction)
    return {};
  // Where other windows fetch elements of the image, these come in the same exchange. Rows that are
  // made again do not move.
  if (dims.empty() || !halosBeside(localizer, dims.front()).empty() ||
      localizer.remadeBorders().of(op->getOperand(0), dims.front().imageDim))
    return {};
  SmallVector<BorderDim> ways;
  for (const HaloDim &halo : dims)
    ways.push_back(borderDim(localizer, halo));
  LocalExtents image(mesh, localizer.globalOperandType(0), localizer.operandLayout(0)),
      result(mesh, localizer.globalResultType(0), localizer.resultLayout(0));
  double fewer = chooseBorderWays(mesh, ways, image, result, dims.size() > 1 ? kWorthParts : 1);
  double copied = 2 * (image.most() + result.most());
  double bytes = aten::elementTypeOf(local).getIntOrFloatBitWidth() / 8.0;
  bool isWorth = copied * bytes <= kFewBytes || fewer * kNetworkOverMemory >= copied;
  if (!isWorth ||
      llvm::all_of(ways, [](const BorderDim &dim) { return dim.way == BorderWay::Fetch; }))
    return {};
  return PartialWindowBuilder(localizer, builder, ways, *reduction, make).run(local);
}
