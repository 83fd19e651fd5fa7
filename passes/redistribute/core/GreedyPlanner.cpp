// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The greedy decomposition (R1).
//
// Invariant: for each dim, the axes that shard it now are a prefix of its target list (outer to
// inner), followed by a rest of its source list. An axis leaves a dim only when it is the innermost
// one of the rest, and joins a dim only when the dim is exactly the target's prefix in front of
// that axis. So every intermediate layout is valid wherever source and target are.
//
// Progress: every step either puts an axis into its final placement, or replicates an axis that is
// not in it. An axis is replicated at most once, so there are at most two steps for each axis.
//
// Why a step is always found: a dim with a rest has an innermost axis, which may be gathered; when
// no dim has a rest, every dim is a prefix of its target, and the outermost missing axis of a dim
// may join; axes that are to be R or P depend on nothing.
#include "passes/redistribute/core/Planner.h"

#include <algorithm>

namespace shardc {

namespace {
/// One redistribution under way.
class Walk {
public:
  Walk(const Layout &from, const Layout &to, std::span<const int64_t> shape)
      : current(from.canonicalize(shape)), target(to.canonicalize(shape)), shape(shape) {}

  /// Nothing where no sequence is found, which the invariant excludes.
  std::optional<std::vector<RedistributeStep>> run() {
    for (size_t left = 2 * current.placements.size(); !(current == target); --left) {
      std::optional<RedistributeStep> best;
      int bestOrder = 0;
      for (unsigned axis = 0; axis < current.placements.size(); ++axis) {
        int order = 0;
        std::optional<RedistributeStep> step = stepFor(axis, order);
        if (step && (!best || order < bestOrder)) {
          best = std::move(step);
          bestOrder = order;
        }
      }
      if (!best || left == 0)
        return std::nullopt;
      current = best->after;
      steps.push_back(std::move(*best));
    }
    return std::move(steps);
  }

private:
  /// Whether `axis` shards its dim as in the target and all axes outside it do.
  bool isSettled(unsigned axis) const {
    const Placement &p = current.placements[axis];
    if (!p.isShard())
      return p == target.placements[axis];
    std::vector<unsigned> now = current.axesOfDim(p.dim), then = target.axesOfDim(p.dim);
    for (size_t i = 0; i < now.size() && i < then.size(); ++i) {
      if (now[i] != then[i] || !(current.placements[now[i]] == target.placements[now[i]]))
        return false;
      if (now[i] == axis)
        return true;
    }
    return false;
  }
  bool isInnermost(unsigned axis) const {
    return current.axesOfDim(current.placements[axis].dim).back() == axis;
  }
  /// Whether the target's dim of `axis` is now split by exactly the axes that are outside `axis`
  /// there.
  bool canJoin(unsigned axis) const {
    int64_t dim = target.placements[axis].dim;
    std::vector<unsigned> now = current.axesOfDim(dim), then = target.axesOfDim(dim);
    size_t position = static_cast<size_t>(std::find(then.begin(), then.end(), axis) - then.begin());
    return now.size() == position && (now.empty() || isSettled(now.back()));
  }
  /// The invariant makes these steps single ones.
  std::optional<RedistributeStep> make(StepKind kind, unsigned axis, Placement placement) const {
    std::string why;
    return makeStep(kind, current, current.with(axis, std::move(placement)), shape, why);
  }
  /// The next step of one axis, and its place in the order of preference: what leaves less data
  /// goes first, gathers that are needed in any case go before gathers that only make way, and what
  /// makes more data goes last.
  std::optional<RedistributeStep> stepFor(unsigned axis, int &order) const {
    const Placement &now = current.placements[axis], &then = target.placements[axis];
    if (isSettled(axis))
      return std::nullopt;
    bool joins = then.isShard() && canJoin(axis);
    if (now.isReplicate()) {
      order = then.isPartial() ? 7 : 0;
      if (then.isPartial())
        return make(StepKind::ToPartial, axis, then);
      return joins ? make(StepKind::Slice, axis, then) : std::nullopt;
    }
    if (now.isPartial()) {
      order = joins ? 1 : 3;
      if (joins)
        return make(StepKind::ReduceScatter, axis, then);
      if (then.isShard()) // wait until the dim is ready
        return std::nullopt;
      return make(StepKind::AllReduce, axis, Placement::replicate());
    }
    if (!now.isShard() || !isInnermost(axis))
      return std::nullopt;
    order = 2;
    if (joins && then.dim != now.dim)
      return make(StepKind::AllToAll, axis, then);
    order = 6;
    if (then == Placement::partial(Reduction::Sum))
      return make(StepKind::ZeroFill, axis, then);
    order = then.isShard() ? 5 : 4;
    return make(StepKind::AllGather, axis, Placement::replicate());
  }
  Layout current, target;
  std::span<const int64_t> shape;
  std::vector<RedistributeStep> steps;
};
} // namespace

std::vector<RedistributeStep> mergeSteps(std::vector<RedistributeStep> steps,
                                         std::span<const int64_t> shape) {
  std::vector<RedistributeStep> merged;
  for (RedistributeStep &step : steps) {
    bool joins = step.kind == StepKind::AllReduce || step.kind == StepKind::ReduceScatter ||
                 step.kind == StepKind::AllGather;
    if (joins && !merged.empty() && merged.back().kind == step.kind &&
        merged.back().reduction == step.reduction) {
      std::string why;
      if (auto both = makeStep(step.kind, merged.back().before, step.after, shape, why)) {
        merged.back() = std::move(*both);
        continue;
      }
    }
    merged.push_back(std::move(step));
  }
  return merged;
}

std::vector<std::string> checkEnds(const Layout &from, const Layout &to,
                                   std::span<const int64_t> shape) {
  std::vector<std::string> errors;
  for (const Layout *layout : {&from, &to})
    for (const std::string &error : layout->validate(shape))
      errors.push_back("cannot redistribute " + from.str() + " to " + to.str() + ": " + error);
  return errors;
}

RedistributePlan planGreedily(const Layout &from, const Layout &to,
                              std::span<const int64_t> shape) {
  RedistributePlan result;
  if (!(from.mesh == to.mesh)) {
    result.errors.push_back("no sequence of steps leads from mesh " + from.mesh.str() + " to " +
                            to.mesh.str());
    return result;
  }
  result.errors = checkEnds(from, to, shape);
  if (!result.errors.empty())
    return result;
  if (std::optional<std::vector<RedistributeStep>> steps = Walk(from, to, shape).run())
    result.steps = mergeSteps(std::move(*steps), shape);
  else
    result.errors.push_back("no sequence of steps leads from " + from.str() + " to " + to.str());
  return result;
}

} // namespace shardc
