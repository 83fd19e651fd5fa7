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
  for (const Layout &leaves : wholeLayouts(from, shape))
    for (const Layout &arrives : wholeLayouts(to, shape)) {
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
                     ticksOf(link.latencyUs + bytes * link.usPerByte) +
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
