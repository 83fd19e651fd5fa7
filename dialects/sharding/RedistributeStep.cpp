// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/RedistributeStep.h"

#include <algorithm>
#include <array>

namespace shardc {

static constexpr std::array<std::string_view, numStepKinds> kNames = {
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
    "exchange",   "slice",          "to_partial", "zero_fill"};

std::string_view stepKindName(StepKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<StepKind> parseStepKind(std::string_view name) {
  auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end())
    return std::nullopt;
  return static_cast<StepKind>(found - kNames.begin());
}

std::optional<CollectiveKind> collectiveOf(StepKind kind) {
  switch (kind) {
  case StepKind::AllReduce:
    return CollectiveKind::AllReduce;
  case StepKind::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case StepKind::AllGather:
    return CollectiveKind::AllGather;
  case StepKind::AllToAll:
  case StepKind::Exchange:
    return CollectiveKind::AllToAll;
  case StepKind::Slice:
  case StepKind::ToPartial:
  case StepKind::ZeroFill:
    break;
  }
  return std::nullopt;
}

std::string RedistributeStep::str() const {
  std::string text(stepKindName(kind));
  if (kind == StepKind::AllReduce || kind == StepKind::ReduceScatter || kind == StepKind::ToPartial)
    text += " " + std::string(reductionName(reduction));
  if (fromDim >= 0)
    text += " dim " + std::to_string(fromDim);
  if (dim >= 0)
    text += (fromDim >= 0 ? " to dim " : " dim ") + std::to_string(dim);
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i ? ", " : " over ") + before.mesh.axes[axes[i]].name;
  return text + ": " + before.str() + " -> " + after.str();
}

SplitRange splitRange(const Layout &layout, unsigned axis, std::span<const int64_t> shape,
                      int64_t dim, std::span<const int64_t> coordinate) {
  SplitRange range;
  range.n = shape[dim];
  for (const AxisSplit &split : layout.splitOfDim(dim).axes) {
    if (split.axis != axis) {
      range.n = split.extent(range.n, coordinate[split.axis]);
      continue;
    }
    for (int64_t r = 0; r < split.count; ++r)
      range.pieces.push_back(split.pieces(range.n, r));
    return range;
  }
  range.pieces.push_back({{0, range.n}});
  return range;
}

SplitRange splitRange(const Layout &layout, std::span<const unsigned> axes,
                      std::span<const int64_t> shape, int64_t dim,
                      std::span<const int64_t> coordinate) {
  if (axes.size() == 1)
    return splitRange(layout, axes.front(), shape, dim, coordinate);
  DimSplit split = layout.splitOfDim(dim);
  auto inner = split.axes.end() - static_cast<ptrdiff_t>(axes.size());
  SplitRange range;
  range.n = DimSplit{{split.axes.begin(), inner}}.extent(shape[dim], coordinate);
  range.pieces = {{{0, range.n}}};
  for (auto axis = inner; axis != split.axes.end(); ++axis) {
    std::vector<std::vector<Run>> finer;
    for (const std::vector<Run> &pieces : range.pieces)
      for (int64_t r = 0; r < axis->count; ++r) {
        Run piece = pieces.front(), part = axis->pieceOfBlock(piece.size(), r);
        finer.push_back({{piece.begin + part.begin, piece.begin + part.end}});
      }
    range.pieces = std::move(finer);
  }
  return range;
}

std::vector<int64_t> exchangedDims(const RedistributeStep &step, size_t rank) {
  bool oneMesh = step.before.mesh == step.after.mesh;
  std::vector<int64_t> dims;
  for (size_t d = 0; d < rank; ++d) {
    int64_t dim = static_cast<int64_t>(d);
    DimSplit before = step.before.splitOfDim(dim), after = step.after.splitOfDim(dim);
    if (oneMesh ? before != after : !before.empty() || !after.empty())
      dims.push_back(dim);
  }
  return dims;
}

namespace {

/// What a kind of step does to each of its axes.
struct Change {
  PlacementKind from, to;
};

constexpr Change changeOf(StepKind kind) {
  switch (kind) {
  case StepKind::AllReduce:
    return {PlacementKind::Partial, PlacementKind::Replicate};
  case StepKind::ReduceScatter:
    return {PlacementKind::Partial, PlacementKind::Shard};
  case StepKind::AllGather:
    return {PlacementKind::Shard, PlacementKind::Replicate};
  case StepKind::AllToAll:
    return {PlacementKind::Shard, PlacementKind::Shard};
  case StepKind::Slice:
    return {PlacementKind::Replicate, PlacementKind::Shard};
  case StepKind::ToPartial:
    return {PlacementKind::Replicate, PlacementKind::Partial};
  case StepKind::ZeroFill:
    return {PlacementKind::Shard, PlacementKind::Partial};
  case StepKind::Exchange:
    break;
  }
  return {PlacementKind::Open, PlacementKind::Open};
}

constexpr bool takesSeveralAxes(StepKind kind) {
  return kind == StepKind::AllReduce || kind == StepKind::ReduceScatter ||
         kind == StepKind::AllGather || kind == StepKind::Exchange || kind == StepKind::ToPartial;
}

/// Whether axes split a dim into plain shards of one size.
bool isEven(const Layout &layout, std::span<const unsigned> axes, int64_t size) {
  int64_t shards = 1;
  for (unsigned axis : axes) {
    const Placement &p = layout.placements[axis];
    if (!p.isPlainChunk())
      return false;
    shards *= layout.mesh.axes[axis].size;
  }
  return size != kDynamic && size % shards == 0;
}

/// Whether an axis splits a dim as before although other axes do not: where those outside of it are
/// as many shards, and all shards are even, each of its shards has its counterpart at the same
/// coordinate. `now` and `then` are the dim's axes.
bool staysInPlace(const RedistributeStep &step, unsigned axis, std::span<const unsigned> now,
                  std::span<const unsigned> then, int64_t size) {
  auto shardsOutside = [&](std::span<const unsigned> axes) {
    int64_t count = 1;
    for (unsigned other : axes) {
      if (other == axis)
        return count;
      count *= step.before.mesh.axes[other].size;
    }
    return int64_t(0); // it is not among them
  };
  int64_t outside = shardsOutside(now);
  return outside != 0 && outside == shardsOutside(then) && isEven(step.before, now, size) &&
         isEven(step.after, then, size);
}

/// Where the size of an exchanged dim is not known, messages are cut when the program runs: along
/// every exchanged dim a rank must hold one interval. One size may be unknown: sizes of messages
/// that are products of several are more than the later stages can compare.
bool canCutLater(const RedistributeStep &step, std::span<const int64_t> shape, std::string &why) {
  std::vector<int64_t> dims = exchangedDims(step, shape.size());
  auto unknown =
      std::find_if(dims.begin(), dims.end(), [&](int64_t dim) { return shape[dim] == kDynamic; });
  if (unknown == dims.end())
    return true;
  if (std::count_if(shape.begin(), shape.end(), [](int64_t size) { return size == kDynamic; }) >
      1) {
    why = "takes a dim of unknown size only where the other sizes are known: it needs the size of "
          "dim " +
          std::to_string(*unknown);
    return false;
  }
  for (int64_t dim : dims)
    for (const Layout *layout : {&step.before, &step.after})
      for (const AxisSplit &split : layout->splitOfDim(dim).axes)
        if (!split.isOnePiece()) {
          why = "takes blocks only where sizes are known: it needs the size of dim " +
                std::to_string(*unknown);
          return false;
        }
  return true;
}

/// Fills in the axes of an exchange: those that change, and those behind them on their dims where
/// what such an axis holds changes with them.
bool findExchange(RedistributeStep &step, std::span<const int64_t> shape, std::string &why) {
  std::vector<bool> member(step.before.placements.size(), false);
  for (unsigned axis : step.axes)
    member[axis] = true;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<unsigned> now = step.before.axesOfDim(static_cast<int64_t>(d)),
                          then = step.after.axesOfDim(static_cast<int64_t>(d));
    size_t same = 0;
    while (same < now.size() && same < then.size() && now[same] == then[same] && !member[now[same]])
      ++same;
    for (const std::vector<unsigned> *axes : {&now, &then})
      for (size_t i = same; i < axes->size(); ++i)
        if (!staysInPlace(step, (*axes)[i], now, then, shape[d]))
          member[(*axes)[i]] = true;
  }
  step.axes.clear();
  for (unsigned axis = 0; axis < member.size(); ++axis) {
    if (!member[axis])
      continue;
    if (step.before.placements[axis].isPartial() || step.after.placements[axis].isPartial()) {
      why = "leaves partial axes as they are";
      return false;
    }
    step.axes.push_back(axis);
  }
  return canCutLater(step, shape, why);
}

bool isMeshExchange(const RedistributeStep &step, std::span<const int64_t> shape,
                    std::string &why) {
  if (step.kind != StepKind::Exchange) {
    why = "stays on one mesh";
    return false;
  }
  if (step.before.hasPartial() || step.after.hasPartial()) {
    why = "takes no partial values to another mesh";
    return false;
  }
  for (int64_t dim : exchangedDims(step, shape.size()))
    if (shape[dim] == kDynamic) {
      why = "needs the size of dim " + std::to_string(dim);
      return false;
    }
  return true;
}

/// Whether `axes` are the innermost ones of `dim`, and nothing but them tells `sharded` from
/// `other`; `axes` are then in the order in which they shard the dim.
bool areInnermost(std::vector<unsigned> &axes, const Layout &sharded, const Layout &other,
                  int64_t dim, std::span<const int64_t> shape) {
  std::vector<unsigned> all = sharded.axesOfDim(dim);
  if (all.size() < axes.size())
    return false;
  std::vector<unsigned> inner(all.end() - static_cast<ptrdiff_t>(axes.size()), all.end());
  std::vector<unsigned> sorted = inner;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != axes)
    return false;
  axes = inner;
  Layout expected = sharded;
  for (unsigned axis : axes)
    expected = expected.with(axis, other.placements[axis]);
  return expected.canonicalize(shape) == other;
}

} // namespace

std::optional<RedistributeStep> makeStep(StepKind kind, const Layout &before, const Layout &after,
                                         std::span<const int64_t> shape, std::string &why) {
  RedistributeStep step;
  step.kind = kind;
  step.before = before.canonicalize(shape);
  step.after = after.canonicalize(shape);
  if (!(before.mesh == after.mesh)) {
    if (isMeshExchange(step, shape, why))
      return step;
    return std::nullopt;
  }
  for (unsigned axis = 0; axis < before.placements.size(); ++axis)
    if (step.before.placements[axis] != step.after.placements[axis])
      step.axes.push_back(axis);
  if (step.before == step.after) {
    why = "changes nothing here";
    return std::nullopt;
  }
  if (kind == StepKind::Exchange) {
    if (!findExchange(step, shape, why))
      return std::nullopt;
    return step;
  }
  if (step.axes.empty()) {
    why = "does not change the order of axes";
    return std::nullopt;
  }
  if (step.axes.size() > 1 && !takesSeveralAxes(kind)) {
    why = "changes one axis at a time";
    return std::nullopt;
  }
  Change change = changeOf(kind);
  const Placement &from = step.before.placements[step.axis()],
                  &to = step.after.placements[step.axis()];
  for (unsigned axis : step.axes) {
    const Placement &p = step.before.placements[axis], &q = step.after.placements[axis];
    if (p.kind != change.from || q.kind != change.to || (p.isShard() && p.dim != from.dim) ||
        (q.isShard() && q.dim != to.dim) || (p.isPartial() && p.reduction != from.reduction) ||
        (q.isPartial() && q.reduction != to.reduction)) {
      why = "does not lead from " + p.str() + " to " + q.str() + " on axis \"" +
            before.mesh.axes[axis].name + "\"";
      return std::nullopt;
    }
  }
  step.fromDim = from.isShard() ? from.dim : -1;
  step.dim = to.isShard() ? to.dim : -1;
  step.reduction = from.isPartial() ? from.reduction
                   : to.isPartial() ? to.reduction
                                    : step.reduction;
  if (kind == StepKind::ZeroFill && to.reduction != Reduction::Sum) {
    why = "leads to P(sum) only";
    return std::nullopt;
  }
  if (kind == StepKind::AllToAll && step.fromDim == step.dim) {
    why = "leads from one dim to another";
    return std::nullopt;
  }
  bool isInner = true;
  if (step.fromDim >= 0)
    isInner &= kind == StepKind::AllToAll
                   ? step.before.axesOfDim(step.fromDim).back() == step.axis()
                   : areInnermost(step.axes, step.before, step.after, step.fromDim, shape);
  if (step.dim >= 0)
    isInner &= kind == StepKind::AllToAll
                   ? step.before.with(step.axis(), to).canonicalize(shape) == step.after
                   : areInnermost(step.axes, step.after, step.before, step.dim, shape);
  if (step.fromDim < 0 && step.dim < 0) {
    Layout expected = step.before;
    for (unsigned axis : step.axes)
      expected.placements[axis] = to;
    isInner = expected == step.after;
  }
  if (!isInner) {
    why = "changes only the innermost axes of a dim, and nothing else";
    return std::nullopt;
  }
  if (step.axes.size() > 1 && (step.fromDim >= 0 || step.dim >= 0)) {
    int64_t dim = std::max(step.fromDim, step.dim);
    const Layout &sharded = step.fromDim >= 0 ? step.before : step.after;
    bool plain = std::all_of(step.axes.begin(), step.axes.end(),
                             [&](unsigned axis) { return sharded.placements[axis].blocks == 1; });
    if (shape[dim] == kDynamic || !plain) {
      why = "takes several axes only where the size is known and there are no blocks";
      return std::nullopt;
    }
  }
  return step;
}

} // namespace shardc
