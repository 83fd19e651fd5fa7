// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/Halos.h"

#include "passes/localize/Models.h"
#include "passes/localize/Rearrangements.h"
#include "passes/localize/WindowedImages.h"

using namespace mlir;
using namespace shardc;

/// What a rank holds of a dim that is in one piece on each.
static Run pieceOf(const Mesh &mesh, const SplitDim &dim, int64_t position) {
  std::vector<Run> runs = dim.split.runs(dim.size, mesh.coordinateOfPosition(position));
  return runs.empty() ? Run{} : runs.front();
}

void HaloDim::findCovers(const Mesh &mesh) {
  if (isSymbolic())
    return;
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    covers.push_back(aten::coverOf(window, pieceOf(mesh, positions, position), image.size));
}

SmallVector<HaloDim> shardc::haloDims(Localizer &localizer, ArrayRef<aten::Window> windows,
                                      bool isAdjoint) {
  SmallVector<HaloDim> dims;
  int64_t operandRank = localizer.globalOperandType(0).getRank();
  int64_t resultRank = localizer.globalResultType(0).getRank();
  for (auto [i, window] : llvm::enumerate(windows)) {
    auto fromEnd = static_cast<int64_t>(i) - static_cast<int64_t>(windows.size());
    int64_t operandDim = operandRank + fromEnd, resultDim = resultRank + fromEnd;
    const Layout *result = localizer.resultLayout(0);
    int64_t operandSize = localizer.globalOperandType(0).getDimSize(operandDim);
    bool isAsLong = operandSize == localizer.globalResultType(0).getDimSize(resultDim) &&
                    !(isAdjoint && ShapedType::isDynamic(operandSize));
    bool isIdentity = window.isIdentity() && isAsLong;
    if (isIdentity || (localizer.operandAxes(0, operandDim).empty() &&
                       (!result || result->splitOfDim(resultDim).empty())))
      continue;
    SplitDim operand = localizer.operandDim(0, operandDim);
    SplitDim made = localizer.resultDim(0, resultDim);
    HaloDim dim{i, isAdjoint ? resultDim : operandDim, isAdjoint ? made : operand,
                isAdjoint ? operand : made, window};
    dim.isAdjoint = isAdjoint;
    dim.positionsDim = isAdjoint ? operandDim : resultDim;
    dim.findCovers(localizer.getMesh().getValue());
    dims.push_back(std::move(dim));
  }
  return dims;
}

/// The type with the sizes that are numbers.
static RankedTensorType typeOfSizes(Value value, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, aten::elementTypeOf(value));
}

/// What every rank's positions cover of an image that `pieces` make, with as much padding as any of
/// them needs.
static PieceTarget coveredTarget(const Mesh &mesh, const HaloDim &dim, const Pieces &pieces,
                                 unsigned padding) {
  int64_t front = 0, back = 0;
  for (const aten::Cover &cover : dim.covers) {
    front = std::max(front, cover.before - cover.elements.begin);
    back = std::max(back, cover.elements.end + cover.after - dim.image.size);
  }
  PieceTarget target;
  target.pieces = {{padding, front}};
  llvm::append_range(target.pieces, pieces);
  target.pieces.push_back({padding, back});
  target.dim = heldDim(mesh, dim.positions);
  target.dim.size = front + dim.image.size + back;
  for (auto [runs, cover] : llvm::zip_equal(target.dim.runs, dim.covers)) {
    int64_t begin = front + cover.elements.begin - cover.before;
    runs.clear();
    if (cover.size() > 0)
      runs.push_back({begin, begin + cover.size()});
  }
  return target;
}

static SymbolicHalo symbolicHalo(Localizer &localizer, OpBuilder &builder, const HaloDim &dim) {
  GlobalSize size = dim.isAdjoint ? localizer.resultSize(builder, 0, dim.imageDim)
                                  : localizer.operandSize(builder, dim.operand, dim.imageDim);
  GlobalSize count = dim.isAdjoint ? localizer.operandSize(builder, 0, dim.positionsDim)
                                   : localizer.resultSize(builder, 0, dim.positionsDim);
  SymbolicHalo halo{dim.imageDim,
                    size,
                    count,
                    dim.image.split,
                    dim.positions.split,
                    localizer.indices(builder).constant(-dim.window.padding),
                    dim.window.stride,
                    dim.window.extent()};
  findFarthest(localizer, halo);
  return halo;
}

IndexCover shardc::coverOnRank(Localizer &localizer, OpBuilder &builder, const HaloDim &dim) {
  LocalIndices indices = localizer.indices(builder);
  if (dim.isSymbolic())
    return ownCover(indices, symbolicHalo(localizer, builder, dim));
  auto table = [&](auto &&number) { return indices.table(dim.table(number)); };
  using aten::Cover;
  IndexCover cover;
  cover.elements = {table([](const Cover &c) { return c.elements.begin; }),
                    table([](const Cover &c) { return c.elements.end; })};
  cover.length = table([](const Cover &c) { return c.elements.size(); });
  cover.inside = {table([](const Cover &c) { return c.before; }),
                  table([](const Cover &c) { return c.before + c.elements.size(); })};
  cover.size = table([](const Cover &c) { return c.size(); });
  cover.begin = table([](const Cover &c) { return c.elements.begin - c.before; });
  return cover;
}

CoveredImage shardc::coveredImage(Localizer &localizer, OpBuilder &builder, ArrayRef<HaloDim> dims,
                                  Value local, double fill) {
  const Mesh &mesh = localizer.getMesh().getValue();
  CoveredImage covered{local,
                       localizer.operandSizes(builder, dims.empty() ? 0 : dims.front().operand)};
  for (const HaloDim &dim : dims) {
    if (dim.isSymbolic()) {
      covered.value = coveredPart(localizer.indices(builder), symbolicHalo(localizer, builder, dim),
                                  covered.value, covered.sizes, fill);
      continue;
    }
    // What comes from other ranks goes straight to where it is needed: a border of the image's own
    // elements, for example, comes with those that the window covers.
    std::optional<MovedOperand> moved =
        &dim == &dims.front() ? movedOperand(localizer, builder, dim.imageDim, dim.operand)
                              : std::nullopt;
    if (!moved)
      moved = {{{0, dim.image.size}}, {{covered.value, covered.sizes, heldDim(mesh, dim.image)}}};
    auto padding = static_cast<unsigned>(moved->sources.size());
    moved->sources.emplace_back().value = fill;
    PieceTarget target = coveredTarget(mesh, dim, moved->pieces, padding);
    SmallVector<PieceTarget> beside;
    if (&dim == &dims.front() && dim.operand == 0)
      for (const HaloDim &other : halosBeside(localizer, dim))
        beside.push_back(coveredTarget(mesh, other, moved->pieces, padding));
    covered.sizes[dim.imageDim] = getAsOpFoldResult(localizer.indices(builder).table(
        dim.table([](const aten::Cover &cover) { return cover.size(); })));
    target.sizes = covered.sizes;
    target.type = typeOfSizes(local, covered.sizes);
    covered.value =
        movePieces(localizer, builder, dim.imageDim, moved->sources, target, beside).front();
  }
  return covered;
}

aten::Windows shardc::withoutPadding(ArrayRef<aten::Window> windows, ArrayRef<HaloDim> dims) {
  aten::Windows result(windows);
  for (const HaloDim &dim : dims)
    result[dim.spatial].padding = 0;
  return result;
}

namespace {

/// What several ranks have for the elements of a dim, rank by rank, is a dim of its own. Every rank
/// gets of it what belongs to its elements, in as many parts as there are ranks that have some.
class DimSum {
public:
  DimSum(Localizer &localizer, OpBuilder &builder, const HaloDim &dim,
         SmallVector<OpFoldResult> &sizes, Reduction reduction)
      : localizer(localizer), builder(builder), dim(dim), mesh(localizer.getMesh().getValue()),
        sizes(sizes), reduction(reduction), parts(mesh.numDevices()) {}

  Value run(Value value) {
    PieceSource all{value, sizes, heldDim(mesh, dim.positions)};
    all.dim.size = 0;
    Mesh byPosition(mesh.axes); // without device ids, ranks are positions
    for (ArrayRef<int64_t> group : byPosition.groups(all.dim.axes))
      addGroup(group, all.dim);
    SmallVector<int64_t> owned;
    size_t most = 1;
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      owned.push_back(pieceOf(mesh, dim.image, position).size());
      most = std::max(most, parts[position].size());
    }
    sizes[dim.imageDim] = getAsOpFoldResult(localizer.indices(builder).table(owned));
    SmallVector<PieceTarget> targets;
    for (size_t k = 0; k < most; ++k)
      targets.push_back(target(k, all.dim, owned, value));
    PieceSource none;
    none.value = reduction == Reduction::Max ? lowestOf(aten::elementTypeOf(value)) : 0;
    Emitter emit = localizer.emitter(builder);
    Value sum;
    for (Value part : movePieces(localizer, builder, dim.imageDim, {all, none}, targets))
      sum = !sum                          ? part
            : reduction == Reduction::Max ? emit.binary<aten::MaximumOp>(sum, part)
                                          : emit.add(sum, part);
    return sum;
  }

private:
  /// What a rank gets from one: an interval of what all have, and where that belongs among its own
  /// elements.
  struct Part {
    Run run;
    int64_t begin = 0;
  };

  void addGroup(ArrayRef<int64_t> group, HeldDim &all) {
    int64_t total = 0;
    for (int64_t source : group) {
      Run covered = dim.covers[source].elements;
      all.runs[source].clear();
      if (covered.size() > 0)
        all.runs[source].push_back({total, total + covered.size()});
      for (int64_t position : group) {
        Run owned = pieceOf(mesh, dim.image, position);
        Run common{std::max(owned.begin, covered.begin), std::min(owned.end, covered.end)};
        int64_t shift = total - covered.begin;
        if (common.begin < common.end)
          parts[position].push_back(
              {{common.begin + shift, common.end + shift}, common.begin - owned.begin});
      }
      total += covered.size();
    }
    all.size = total;
  }

  /// Part `k` of each rank with zeros, or lowest numbers, around it.
  PieceTarget target(size_t k, const HeldDim &all, ArrayRef<int64_t> owned, Value value) {
    int64_t zeros = dim.image.size;
    PieceTarget target;
    target.pieces = {{1, zeros}, {0, all.size}, {1, zeros}};
    target.dim.size = zeros + all.size + zeros;
    target.dim.axes = all.axes;
    for (auto [list, own] : llvm::zip_equal(parts, owned)) {
      Part part = k < list.size() ? list[k] : Part();
      Run run{zeros + part.run.begin, zeros + part.run.end};
      int64_t behind = zeros + all.size;
      target.dim.runs.push_back(
          {{0, part.begin}, run, {behind, behind + own - part.begin - run.size()}});
    }
    target.sizes = sizes;
    target.type = typeOfSizes(value, sizes);
    return target;
  }

  Localizer &localizer;
  OpBuilder &builder;
  const HaloDim &dim;
  const Mesh &mesh;
  SmallVector<OpFoldResult> &sizes;
  Reduction reduction;                  ///< Sum or Max
  SmallVector<SmallVector<Part>> parts; ///< [position of the mesh]
};

} // namespace

Value shardc::haloSum(Localizer &localizer, OpBuilder &builder, ArrayRef<HaloDim> dims,
                      Value covered, ArrayRef<OpFoldResult> coveredSizes, Reduction reduction) {
  Emitter emit = localizer.emitter(builder);
  SmallVector<OpFoldResult> sizes(coveredSizes);
  Value value = covered;
  for (const HaloDim &dim : dims) {
    // Nothing belongs to the padding.
    IndexCover cover = coverOnRank(localizer, builder, dim);
    value = emit.slice(value, dim.imageDim, getAsOpFoldResult(cover.inside.begin),
                       getAsOpFoldResult(cover.inside.end));
    sizes[dim.imageDim] = getAsOpFoldResult(cover.length);
    value.setType(typeOfSizes(value, sizes));
  }
  for (const HaloDim &dim : dims) {
    if (dim.isSymbolic() && reduction != Reduction::Sum)
      llvm::report_fatal_error("the largest of a halo over a dim of symbolic size");
    value = dim.isSymbolic() ? sumOfCovered(localizer.indices(builder),
                                            symbolicHalo(localizer, builder, dim), value, sizes)
                             : DimSum(localizer, builder, dim, sizes, reduction).run(value);
  }
  return value;
}
