// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redistribution between meshes (R3).
#include "passes/redistribute/core/Planner.h"

#include <algorithm>
#include <numeric>

namespace shardc {

/// Layouts without partial axes on the way from or to `layout`: partial axes replicated, or all
/// along one dim, innermost.
static std::vector<Layout> wholeLayouts(const Layout &layout, std::span<const int64_t> shape) {
  std::vector<Layout> result;
  std::vector<unsigned> partial = layout.partialAxes();
  Layout whole = layout;
  for (unsigned axis : partial)
    whole = whole.with(axis, Placement::replicate());
  result.push_back(whole);
  for (size_t d = 0; !partial.empty() && d < shape.size(); ++d) {
    if (shape[d] == kDynamic)
      continue;
    Layout shared = layout;
    for (unsigned axis : partial)
      shared = shared.with(axis, Placement::shard(static_cast<int64_t>(d)));
    result.push_back(shared.canonicalize(shape));
  }
  return result;
}

/// Global indices of every static dim at a position, and whether the others are split.
static std::vector<std::vector<Run>> blockOf(const Layout &layout, int64_t position,
                                             std::span<const int64_t> shape) {
  Coordinate at = layout.mesh.coordinateOfPosition(position);
  std::vector<std::vector<Run>> block;
  for (size_t d = 0; d < shape.size(); ++d) {
    DimSplit split = layout.splitOfDim(static_cast<int64_t>(d));
    if (shape[d] == kDynamic)
      block.push_back({Run{0, split.empty() ? 0 : -1}});
    else
      block.push_back(split.runs(shape[d], at));
  }
  return block;
}

/// Layouts on `mesh` in which every rank has what it has in `wanted`: between the two nothing
/// moves. There are some where both meshes have the same ranks in the same order, and the axes of
/// one are those of the other cut or joined.
static std::vector<Layout> layoutsLike(const Layout &wanted, const Mesh &mesh,
                                       std::span<const int64_t> shape) {
  constexpr int64_t mostWork = 1 << 14; // placements times ranks
  std::vector<int64_t> ranks = mesh.ranks();
  if (ranks != wanted.mesh.ranks())
    return {};
  int64_t choices = static_cast<int64_t>(shape.size()) + 1, total = mesh.numDevices();
  for (unsigned axis = 0; axis < mesh.numAxes() && total <= mostWork; ++axis)
    total *= choices;
  if (total > mostWork)
    return {};
  std::vector<std::vector<std::vector<Run>>> blocks;
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    blocks.push_back(blockOf(wanted, position, shape));
  std::vector<Layout> result;
  for (int64_t number = 0, count = total / mesh.numDevices(); number < count; ++number) {
    Layout layout(mesh);
    int64_t rest = number;
    for (Placement &placement : layout.placements) {
      if (rest % choices != 0)
        placement = Placement::shard(rest % choices - 1);
      rest /= choices;
    }
    bool isLike = true;
    for (size_t i = 0; i < ranks.size() && isLike; ++i)
      isLike = blockOf(layout, static_cast<int64_t>(i), shape) == blocks[i];
    if (isLike)
      result.push_back(layout.canonicalize(shape));
  }
  return result;
}

static std::vector<unsigned> allAxes(const Mesh &mesh) {
  std::vector<unsigned> axes(mesh.numAxes());
  std::iota(axes.begin(), axes.end(), 0u);
  return axes;
}

RedistributePlan planBetweenMeshes(const Layout &from, const Layout &to,
                                   std::span<const int64_t> shape, const PlannerOptions &options,
                                   const PlannerOptions &there) {
  RedistributePlan best;
  best.errors = checkEnds(from, to, shape);
  if (!best.errors.empty())
    return best;
  int64_t least = -1;
  std::string why;
  size_t expanded = 0;
  // Where a layout is one of the other mesh too, the whole way may be planned on one mesh (R2).
  std::vector<Layout> departures = wholeLayouts(from, shape), arrivals = wholeLayouts(to, shape);
  auto add = [&](std::vector<Layout> &list, std::span<const Layout> others, const Mesh &mesh) {
    for (const Layout &other : others)
      for (Layout &layout : layoutsLike(other, mesh, shape))
        if (std::find(list.begin(), list.end(), layout) == list.end())
          list.push_back(std::move(layout));
  };
  size_t ownDepartures = departures.size();
  add(departures, arrivals, from.mesh);
  add(arrivals, std::span(departures).first(ownDepartures), to.mesh);
  for (const Layout &leaves : departures)
    for (const Layout &arrives : arrivals) {
      std::optional<RedistributeStep> crossing =
          makeStep(StepKind::Exchange, leaves, arrives, shape, why);
      if (!crossing)
        continue;
      RedistributePlan before = planCheapest(from, leaves, shape, options),
                       after = planCheapest(arrives, to, shape, there);
      expanded += before.expanded + after.expanded;
      if (!before.errors.empty() || !after.errors.empty())
        continue;
      cost::LinkCost link = options.links.of(CollectiveKind::AllToAll, allAxes(from.mesh));
      double bytes = bytesMoved(*crossing, shape, options.elementSize, options.sizes);
      int64_t time = costOf(before.steps, shape, options).time +
                     (bytes == 0 ? 0 : ticksOf(link.latencyUs + bytes * link.usPerByte)) +
                     costOf(after.steps, shape, there).time;
      if (least >= 0 && time >= least)
        continue;
      least = time;
      best.steps = std::move(before.steps);
      best.steps.push_back(std::move(*crossing));
      std::move(after.steps.begin(), after.steps.end(), std::back_inserter(best.steps));
    }
  best.expanded = expanded;
  if (least < 0)
    best.errors.push_back("cannot redistribute " + from.str() + " of mesh " + from.mesh.str() +
                          " to " + to.str() + " of mesh " + to.mesh.str() + ": an exchange " + why);
  return best;
}

} // namespace shardc
