// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/Halos.h"

#include "passes/localize/MadeParts.h"
#include "passes/localize/Models.h"
#include "passes/localize/Rearrangements.h"
#include "passes/localize/RemadeCover.h"
#include "passes/localize/WindowedImages.h"

#include "dialects/aten/Spatial.h"

using namespace mlir;
using namespace shardc;

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

/// What `parts` cover of an image, of which `covered` has all else that is covered. What is covered
/// `beside` them, by others, comes in the same exchange.
static SmallVector<Value> fetchCovers(Localizer &localizer, OpBuilder &builder, const HaloDim &dim,
                                      ArrayRef<HaloDim> parts, ArrayRef<HaloDim> beside,
                                      std::optional<MovedOperand> moved,
                                      const CoveredImage &covered, double fill) {
  const Mesh &mesh = localizer.getMesh().getValue();
  if (!moved)
    moved = {{{0, dim.image.size}}, {{covered.value, covered.sizes, heldDim(mesh, dim.image)}}};
  auto padding = static_cast<unsigned>(moved->sources.size());
  moved->sources.emplace_back().value = fill;
  SmallVector<PieceTarget> targets, others;
  for (const HaloDim &part : parts) {
    PieceTarget &target = targets.emplace_back(coveredTarget(mesh, part, moved->pieces, padding));
    target.sizes = covered.sizes;
    target.sizes[dim.imageDim] = getAsOpFoldResult(localizer.indices(builder).table(
        part.table([](const aten::Cover &cover) { return cover.size(); })));
    target.type = typeOfSizes(covered.value, target.sizes);
  }
  for (const HaloDim &other : beside)
    others.push_back(coveredTarget(mesh, other, moved->pieces, padding));
  return movePieces(localizer, builder, dim.imageDim, moved->sources, targets, others);
}

CoveredImage shardc::coveredImage(Localizer &localizer, OpBuilder &builder, ArrayRef<HaloDim> dims,
                                  Value local, double fill) {
  CoveredImage covered{local,
                       localizer.operandSizes(builder, dims.empty() ? 0 : dims.front().operand)};
  for (const HaloDim &dim : dims) {
    if (dim.isSymbolic()) {
      covered.value = coveredPart(localizer.indices(builder), symbolicHalo(localizer, builder, dim),
                                  covered.value, covered.sizes, fill);
      continue;
    }
    bool isFirst = &dim == &dims.front();
    if (isFirst && isa<aten::WindowOpInterface>(localizer.getOp()))
      if (const RemadeBorder *border =
              localizer.remadeBorders().of(localizer.getOp()->getOperand(0), dim.imageDim)) {
        covered.value =
            remadeCover(localizer, builder, *border, dim, covered.value, fill, covered.sizes);
        continue;
      }
    // What comes from other ranks goes straight to where it is needed: a border of the image's own
    // elements, for example, comes with those that the window covers.
    std::optional<MovedOperand> moved =
        isFirst ? movedOperand(localizer, builder, dim.imageDim, dim.operand) : std::nullopt;
    SmallVector<HaloDim> beside;
    if (isFirst && dim.operand == 0)
      beside = halosBeside(localizer, dim);
    covered.value =
        fetchCovers(localizer, builder, dim, dim, beside, std::move(moved), covered, fill).front();
    covered.sizes[dim.imageDim] = getAsOpFoldResult(localizer.indices(builder).table(
        dim.table([](const aten::Cover &cover) { return cover.size(); })));
  }
  return covered;
}

SmallVector<Value> shardc::coveredParts(Localizer &localizer, OpBuilder &builder,
                                        const HaloDim &dim, ArrayRef<HaloDim> parts, Value local,
                                        double fill) {
  SmallVector<HaloDim> beside = halosBeside(localizer, dim);
  beside.push_back(dim);
  return fetchCovers(localizer, builder, dim, parts, beside,
                     movedOperand(localizer, builder, dim.imageDim),
                     {local, localizer.operandSizes(builder, 0)}, fill);
}

aten::Windows shardc::withoutPadding(ArrayRef<aten::Window> windows, ArrayRef<HaloDim> dims) {
  aten::Windows result(windows);
  for (const HaloDim &dim : dims)
    result[dim.spatial].padding = 0;
  return result;
}

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
    if (dim.isSymbolic()) {
      value = sumOfCovered(localizer.indices(builder), symbolicHalo(localizer, builder, dim), value,
                           sizes);
      continue;
    }
    HeldDim made = heldDim(localizer.getMesh().getValue(), dim.positions);
    for (auto [runs, cover] : llvm::zip_equal(made.runs, dim.covers))
      runs = {cover.elements};
    value = sumOfMade(localizer, builder, {dim.imageDim, made, dim.image}, value, sizes, reduction);
  }
  return value;
}
