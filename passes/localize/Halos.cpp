// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/Halos.h"

#include "passes/localize/Exchange.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace shardc;

/// What a rank holds of a dim that is in one piece on each.
static Run pieceOf(const Mesh &mesh, const SplitDim &dim, int64_t position) {
  std::vector<Run> runs = dim.split.runs(dim.size, mesh.coordinateOfPosition(position));
  return runs.empty() ? Run{} : runs.front();
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
    if (window.isIdentity() || (localizer.operandAxes(0, operandDim).empty() &&
                                (!result || result->splitOfDim(resultDim).empty())))
      continue;
    SplitDim operand = localizer.operandDim(0, operandDim);
    SplitDim made = localizer.resultDim(0, resultDim);
    HaloDim dim{i,
                isAdjoint ? resultDim : operandDim,
                isAdjoint ? made : operand,
                isAdjoint ? operand : made,
                window,
                {}};
    const Mesh &mesh = localizer.getMesh().getValue();
    for (int64_t position = 0; position < mesh.numDevices(); ++position)
      dim.covers.push_back(
          aten::coverOf(window, pieceOf(mesh, dim.positions, position), dim.image.size));
    dims.push_back(std::move(dim));
  }
  return dims;
}

static SmallVector<unsigned> axesOf(const SplitDim &dim) {
  return llvm::map_to_vector(dim.split.axes, [](const AxisSplit &axis) { return axis.axis; });
}

CoveredImage::CoveredImage(Localizer &localizer, OpBuilder &builder, ArrayRef<HaloDim> dims,
                           Value local, Value fill)
    : localizer(localizer), builder(builder) {
  PartFetcher fetcher(localizer, builder, 0, local);
  for (const HaloDim &dim : dims) {
    WantedRuns wanted;
    for (const aten::Cover &cover : dim.covers) {
      std::vector<Run> &runs = wanted.emplace_back();
      if (cover.elements.size() > 0)
        runs.push_back(cover.elements);
    }
    fetcher.fetch(dim.imageDim, wanted, axesOf(dim.positions));
  }
  value = fetcher.get();
  sizes = SmallVector<OpFoldResult>(fetcher.getSizes());
  for (const HaloDim &dim : dims)
    pad(dim, fill);
}

/// The type with the sizes that are numbers.
static Type typeOfSizes(Value value, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, aten::elementTypeOf(value));
}

void CoveredImage::pad(const HaloDim &dim, Value fill) {
  Emitter emit = localizer.emitter(builder);
  auto table = [&](auto &&number) {
    return getAsOpFoldResult(localizer.indices(builder).table(dim.table(number)));
  };
  SmallVector<Value> parts;
  auto border = [&](auto &&number) {
    SmallVector<OpFoldResult> shape(sizes);
    shape[dim.imageDim] = table(number);
    if (!isConstantIntValue(shape[dim.imageDim], 0))
      parts.push_back(emit.full(shape, fill));
  };
  border([](const aten::Cover &cover) { return cover.before; });
  parts.push_back(value);
  border([](const aten::Cover &cover) { return cover.after; });
  sizes[dim.imageDim] = table([](const aten::Cover &cover) { return cover.size(); });
  if (parts.size() == 1)
    return;
  value = emit.cat(parts, dim.imageDim);
  value.setType(cast<RankedTensorType>(typeOfSizes(value, sizes)));
}

aten::Windows shardc::withoutPadding(ArrayRef<aten::Window> windows, ArrayRef<HaloDim> dims) {
  aten::Windows result(windows);
  for (const HaloDim &dim : dims)
    result[dim.spatial].padding = 0;
  return result;
}

namespace {

/// What several ranks have for the elements of a dim: all of it, rank by rank, is a dim of its own,
/// of which every rank gets the parts that belong to its elements. It adds them up.
class DimSum {
public:
  DimSum(Localizer &localizer, OpBuilder &builder, const HaloDim &dim,
         MutableArrayRef<OpFoldResult> sizes)
      : localizer(localizer), builder(builder), emit(localizer.emitter(builder)), dim(dim),
        mesh(localizer.getMesh().getValue()), sizes(sizes), contributions(mesh.numDevices()) {}

  Value run(Value value) {
    StepExchange exchange{mesh, mesh, mesh, {}, {dim.imageDim}, {}};
    std::set<unsigned> axes;
    for (const SplitDim *side : {&dim.image, &dim.positions})
      for (unsigned axis : axesOf(*side))
        axes.insert(axis);
    exchange.axes.assign(axes.begin(), axes.end());
    Mesh byPosition(mesh.axes); // without device ids, ranks are positions
    for (std::vector<int64_t> &group : byPosition.groups(exchange.axes))
      exchange.groups.push_back(addGroup(std::move(group)));
    value = emitExchange(builder, emit.getLoc(), exchange, value, sizes);
    SmallVector<int64_t> owned;
    size_t most = 1;
    for (auto [position, parts] : llvm::enumerate(contributions)) {
      owned.push_back(pieceOf(mesh, dim.image, static_cast<int64_t>(position)).size());
      most = std::max(most, parts.size());
    }
    sizes[dim.imageDim] = size(owned);
    Value sum;
    for (size_t k = 0; k < most; ++k) {
      Value part = partOf(value, k, owned);
      sum = sum ? emit.add(sum, part) : part;
    }
    return sum;
  }

private:
  /// What one rank gets from another.
  struct Part {
    int64_t begin;    ///< in what it has got from all
    int64_t target;   ///< where it belongs among its own elements
    int64_t size;
  };

  OpFoldResult size(ArrayRef<int64_t> table) {
    return getAsOpFoldResult(localizer.indices(builder).table(table));
  }

  GroupExchange addGroup(std::vector<int64_t> group) {
    std::vector<HeldBlock> before, after;
    std::vector<int64_t> offsets;
    int64_t total = 0;
    for (int64_t position : group) {
      offsets.push_back(total);
      int64_t own = dim.covers[position].elements.size();
      before.push_back({{own == 0 ? std::vector<Run>{} : std::vector<Run>{{total, total + own}}}});
      total += own;
    }
    for (int64_t position : group) {
      Run owned = pieceOf(mesh, dim.image, position);
      std::vector<Run> runs;
      int64_t got = 0;
      for (auto [index, source] : llvm::enumerate(group)) {
        Run covered = dim.covers[source].elements;
        Run common{std::max(owned.begin, covered.begin), std::min(owned.end, covered.end)};
        if (common.begin >= common.end)
          continue;
        contributions[position].push_back({got, common.begin - owned.begin, common.size()});
        got += common.size();
        int64_t shift = offsets[index] - covered.begin;
        Run part{common.begin + shift, common.end + shift};
        if (!runs.empty() && runs.back().end == part.begin)
          runs.back().end = part.end;
        else
          runs.push_back(part);
      }
      after.push_back({{std::move(runs)}});
    }
    return {std::move(group), BlockExchange(std::move(before), std::move(after))};
  }

  /// Part `k` of each rank with zeros around it.
  Value partOf(Value value, size_t k, ArrayRef<int64_t> owned) {
    SmallVector<int64_t> begin, end, before, after;
    for (auto [position, parts] : llvm::enumerate(contributions)) {
      Part part = k < parts.size() ? parts[k] : Part{0, 0, 0};
      begin.push_back(part.begin);
      end.push_back(part.begin + part.size);
      before.push_back(part.target);
      after.push_back(owned[position] - part.target - part.size);
    }
    SmallVector<Value> pieces;
    auto zeros = [&](ArrayRef<int64_t> table) {
      SmallVector<OpFoldResult> shape(sizes);
      shape[dim.imageDim] = size(table);
      if (llvm::any_of(table, [](int64_t n) { return n != 0; }))
        pieces.push_back(emit.zeros(shape, aten::elementTypeOf(value)));
    };
    zeros(before);
    Value part = emit.slice(value, dim.imageDim, size(begin), size(end));
    SmallVector<int64_t> lengths;
    for (auto [from, to] : llvm::zip_equal(begin, end))
      lengths.push_back(to - from);
    SmallVector<OpFoldResult> shape(sizes);
    shape[dim.imageDim] = size(lengths);
    part.setType(cast<RankedTensorType>(typeOfSizes(part, shape)));
    pieces.push_back(part);
    zeros(after);
    Value whole = pieces.size() == 1 ? part : emit.cat(pieces, dim.imageDim);
    whole.setType(cast<RankedTensorType>(typeOfSizes(whole, sizes)));
    return whole;
  }

  Localizer &localizer;
  OpBuilder &builder;
  Emitter emit;
  const HaloDim &dim;
  const Mesh &mesh;
  MutableArrayRef<OpFoldResult> sizes;
  SmallVector<SmallVector<Part>> contributions; ///< [position of the mesh]
};

} // namespace

Value shardc::haloSum(Localizer &localizer, OpBuilder &builder, ArrayRef<HaloDim> dims,
                      Value covered, ArrayRef<OpFoldResult> coveredSizes) {
  Emitter emit = localizer.emitter(builder);
  SmallVector<OpFoldResult> sizes(coveredSizes);
  Value value = covered;
  for (const HaloDim &dim : dims) {
    // Nothing belongs to the padding.
    LocalIndices indices = localizer.indices(builder);
    auto table = [&](auto &&number) {
      return getAsOpFoldResult(indices.table(dim.table(number)));
    };
    value = emit.slice(
        value, dim.imageDim, table([](const aten::Cover &c) { return c.before; }),
        table([](const aten::Cover &c) { return c.before + c.elements.size(); }));
    sizes[dim.imageDim] = table([](const aten::Cover &c) { return c.elements.size(); });
    value.setType(cast<RankedTensorType>(typeOfSizes(value, sizes)));
  }
  for (const HaloDim &dim : dims)
    value = DimSum(localizer, builder, dim, sizes).run(value);
  return value;
}
