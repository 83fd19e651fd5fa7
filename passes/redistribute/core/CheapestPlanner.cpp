// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shortest path over layouts (R2), by A*.
//
// A node is a canonical layout, an edge a step (RedistributeStep.h). From a node there lead: every
// reduction, gather and all-to-all of innermost axes; every slice; and one or two exchanges, which
// go straight to what the target has on the axes that are not partial now. Shards on the way are
// those of the source, those of the target and plain chunks. A sequence without partial axes costs
// no bytes beyond those of its exchange; the other steps matter for what is to be reduced, for
// unknown sizes and for links of different speed.
//
// The bound on what is left is the bytes that some rank needs and lacks, over the fastest link: a
// step never brings a rank more than it costs.
#include "passes/redistribute/core/Planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>

namespace shardc {

static constexpr double kTicksPerUs = 1e6;

int64_t ticksOf(double us) { return std::llround(us * kTicksPerUs); }

static double usOf(const RedistributeStep &step, std::span<const int64_t> shape,
                   const PlannerOptions &options) {
  return stepUs(step, bytesMoved(step, shape, options.elementSize, options.sizes), options.links);
}

/// What the step costs one axis after the other; nothing where it cannot be done so.
static std::optional<double> usByAxis(const RedistributeStep &step, std::span<const int64_t> shape,
                                      const PlannerOptions &options) {
  if (step.axes.size() < 2 || step.kind == StepKind::Exchange)
    return std::nullopt;
  std::vector<unsigned> axes = step.axes;
  if (step.kind == StepKind::AllGather)
    std::reverse(axes.begin(), axes.end()); // innermost first
  double us = 0;
  Layout at = step.before;
  for (unsigned axis : axes) {
    std::string why;
    std::optional<RedistributeStep> one =
        makeStep(step.kind, at, at.with(axis, step.after.placements[axis]), shape, why);
    if (!one)
      return std::nullopt;
    us += usOf(*one, shape, options);
    at = one->after;
  }
  return us;
}

// A group over several axes costs no more than its axes one after the other, however the model
// rates large groups: who carries the collective out may do it so, and one collective leaves the
// choice to it (R2).
PlanCost costOf(const RedistributeStep &step, std::span<const int64_t> shape,
                const PlannerOptions &options) {
  double us = usOf(step, shape, options);
  if (std::optional<double> byAxis = usByAxis(step, shape, options))
    us = std::min(us, *byAxis);
  double memory = localBytes(step.before, shape, options.elementSize, options.sizes);
  if (step.kind != StepKind::AllReduce) // which works in place
    memory += localBytes(step.after, shape, options.elementSize, options.sizes);
  return {ticksOf(us), memory, 1};
}

static PlanCost operator+(const PlanCost &a, const PlanCost &b) {
  return {a.time + b.time, std::max(a.memory, b.memory), a.steps + b.steps};
}

PlanCost costOf(std::span<const RedistributeStep> steps, std::span<const int64_t> shape,
                const PlannerOptions &options) {
  PlanCost total;
  for (const RedistributeStep &step : steps)
    total = total + costOf(step, shape, options);
  return total;
}

namespace {

struct LayoutHash {
  size_t operator()(const Layout &layout) const { return layout.hash(); }
};

class Search {
public:
  Search(const Layout &from, const Layout &to, std::span<const int64_t> shape,
         const PlannerOptions &options)
      : source(from.canonicalize(shape)), target(to.canonicalize(shape)), shape(shape),
        options(options), fastest(options.links.fastest(source.mesh.numAxes())) {
    chooseDims();
  }

  /// The best sequence that costs less than `bound`; nothing where there is none.
  std::optional<std::vector<RedistributeStep>> run(PlanCost bound) {
    limit = bound;
    visit(source, {}, nullptr);
    while (!queue.empty() && expanded < options.maxExpanded) {
      auto [estimate, order, node] = queue.top();
      queue.pop();
      (void)estimate, (void)order;
      if (node->cost < node->done || !node->isDone) {
        if (node->layout == target)
          return path(*node);
        node->isDone = true;
        node->done = node->cost;
        ++expanded;
        expand(*node);
      }
    }
    return std::nullopt;
  }
  size_t expanded = 0;

private:
  struct Node {
    Layout layout;
    PlanCost cost{std::numeric_limits<int64_t>::max(), 0, 0}, done;
    int64_t rest = 0;
    bool isDone = false, isNew = true;
    std::optional<RedistributeStep> step; ///< that leads here
    const Node *before = nullptr;
  };
  struct Entry {
    PlanCost estimate;
    size_t order;
    Node *node;
    bool operator<(const Entry &other) const { // the queue's top is its largest
      return std::tie(other.estimate, other.order) < std::tie(estimate, order);
    }
  };

  /// Dims that shards on the way may use: those that either end shards, and one more along which to
  /// share out what is reduced or what has no known size. A tensor of few dims has them all.
  void chooseDims() {
    std::vector<int64_t> others;
    bool needsMore = source.hasPartial();
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t dim = static_cast<int64_t>(d);
      needsMore |= shape[d] == kDynamic;
      bool used = !source.axesOfDim(dim).empty() || !target.axesOfDim(dim).empty();
      (used ? dims : others).push_back(dim);
    }
    if (!needsMore || others.empty())
      return;
    if (shape.size() <= 2) {
      dims.insert(dims.end(), others.begin(), others.end());
    } else {
      int64_t devices = source.mesh.numDevices();
      auto better = [&](int64_t a, int64_t b) {
        bool evenA = shape[a] % devices == 0, evenB = shape[b] % devices == 0;
        return evenA != evenB ? evenA : shape[a] > shape[b];
      };
      dims.push_back(*std::min_element(others.begin(), others.end(), better));
    }
    std::sort(dims.begin(), dims.end());
  }

  int64_t lowerBound(const Layout &layout) const {
    for (unsigned axis = 0; axis < layout.placements.size(); ++axis)
      if (target.placements[axis].isPartial() && layout.placements[axis] != target.placements[axis])
        return 0; // zeros need not be sent
    double us = missingBytes(layout, target, shape, options.elementSize, options.sizes) * fastest;
    return std::max<int64_t>(0, static_cast<int64_t>(us * kTicksPerUs * (1 - 1e-9)) - 1);
  }

  void visit(const Layout &layout, const PlanCost &cost, const Node *before,
             std::optional<RedistributeStep> step = std::nullopt) {
    if (!(cost < limit))
      return;
    Node &node = nodes[layout];
    if (node.isNew) {
      node.layout = layout;
      node.rest = lowerBound(layout);
      node.isNew = false;
    } else if (!(cost < node.cost)) {
      return;
    }
    PlanCost estimate = cost;
    estimate.time += node.rest;
    if (!(estimate < limit))
      return;
    node.cost = cost;
    node.step = std::move(step);
    node.before = before;
    queue.push({estimate, count++, &node});
  }

  std::vector<RedistributeStep> path(const Node &last) const {
    std::vector<RedistributeStep> steps;
    for (const Node *node = &last; node->before; node = node->before)
      steps.push_back(*node->step);
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  void offer(const Node &node, StepKind kind, const Layout &after) {
    auto known = nodes.find(after);
    bool isKnown = known != nodes.end();
    if (isKnown && !(node.cost < known->second.cost)) // no step costs less than nothing
      return;
    if (!isKnown && !after.validate(shape).empty())
      return;
    std::string why;
    std::optional<RedistributeStep> step = makeStep(kind, node.layout, after, shape, why);
    if (!step)
      return;
    PlanCost cost = node.cost + costOf(*step, shape, options);
    Layout next = step->after;
    visit(next, cost, &node, std::move(step));
  }

  /// Shards of a dim that an axis may have on the way.
  std::vector<Placement> shards(unsigned axis, int64_t dim) const {
    std::vector<Placement> result{Placement::shard(dim)};
    for (const Layout *end : {&target, &source})
      if (const Placement &p = end->placements[axis];
          p.isShard(dim) && std::find(result.begin(), result.end(), p) == result.end())
        result.push_back(p);
    return result;
  }

  void expand(const Node &node) {
    for (unsigned axis = 0; axis < node.layout.placements.size(); ++axis) {
      const Placement &p = node.layout.placements[axis];
      if (p.isReplicate())
        fromReplicate(node, axis);
      else if (p.isShard() && node.layout.axesOfDim(p.dim).back() == axis)
        fromInnermost(node, axis);
      else if (p.isPartial() && p != target.placements[axis])
        fromPartial(node, axis);
    }
    for (int64_t dim : dims)
      gatherSeveral(node, dim);
    reduceSeveral(node);
    exchange(node);
  }

  void fromReplicate(const Node &node, unsigned axis) {
    for (int64_t dim : dims)
      for (const Placement &shard : shards(axis, dim))
        offer(node, StepKind::Slice, node.layout.with(axis, shard));
    if (target.placements[axis].isPartial())
      offer(node, StepKind::ToPartial, node.layout.with(axis, target.placements[axis]));
  }

  void fromInnermost(const Node &node, unsigned axis) {
    offer(node, StepKind::AllGather, node.layout.with(axis, Placement::replicate()));
    for (int64_t dim : dims)
      if (!node.layout.placements[axis].isShard(dim))
        for (const Placement &shard : shards(axis, dim))
          offer(node, StepKind::AllToAll, node.layout.with(axis, shard));
    if (target.placements[axis] == Placement::partial())
      offer(node, StepKind::ZeroFill, node.layout.with(axis, target.placements[axis]));
  }

  void fromPartial(const Node &node, unsigned axis) {
    offer(node, StepKind::AllReduce, node.layout.with(axis, Placement::replicate()));
    for (int64_t dim : dims)
      for (const Placement &shard : shards(axis, dim))
        offer(node, StepKind::ReduceScatter, node.layout.with(axis, shard));
  }

  void gatherSeveral(const Node &node, int64_t dim) {
    std::vector<unsigned> axes = node.layout.axesOfDim(dim);
    Layout after = node.layout;
    for (size_t i = axes.size(); i-- > 0;) {
      after = after.with(axes[i], Placement::replicate());
      if (i + 1 < axes.size())
        offer(node, StepKind::AllGather, after);
    }
  }

  /// All axes that are partial in one way and are not to stay so, at once.
  void reduceSeveral(const Node &node) {
    std::vector<Reduction> seen;
    for (unsigned first = 0; first < node.layout.placements.size(); ++first) {
      const Placement &p = node.layout.placements[first];
      if (!p.isPartial() || std::find(seen.begin(), seen.end(), p.reduction) != seen.end())
        continue;
      seen.push_back(p.reduction);
      std::vector<unsigned> axes;
      for (unsigned axis : target.order) // the order in which the target shards its dims
        if (node.layout.placements[axis] == p && target.placements[axis] != p)
          axes.push_back(axis);
      reduceTogether(node, axes);
      for (int64_t dim : dims) { // those that the target has on one dim
        std::vector<unsigned> there;
        for (unsigned axis : axes)
          if (target.placements[axis].isShard(dim))
            there.push_back(axis);
        if (there.size() < axes.size())
          reduceTogether(node, there);
      }
    }
  }

  void reduceTogether(const Node &node, const std::vector<unsigned> &axes) {
    if (axes.size() < 2)
      return;
    Layout whole = node.layout;
    for (unsigned axis : axes)
      whole = whole.with(axis, Placement::replicate());
    offer(node, StepKind::AllReduce, whole);
    for (int64_t dim : dims) {
      Layout chunks = node.layout, asTarget = node.layout;
      for (unsigned axis : axes) {
        chunks = chunks.with(axis, Placement::shard(dim));
        const Placement &p = target.placements[axis];
        asTarget = asTarget.with(axis, p.isShard(dim) ? p : Placement::shard(dim));
      }
      offer(node, StepKind::ReduceScatter, chunks);
      if (asTarget != chunks)
        offer(node, StepKind::ReduceScatter, asTarget);
    }
  }

  /// To what the target has on the axes that are not partial now, in its order. What becomes R may
  /// stay S until a gather of its own, over links that may be faster; so does what becomes P.
  void exchange(const Node &node) {
    for (bool gathers : {true, false}) {
      Layout after = node.layout;
      bool moves = false;
      // First what stays sharded although the target does not say how: innermost.
      for (unsigned axis : target.order) {
        const Placement &now = node.layout.placements[axis], &then = target.placements[axis];
        if (now.isPartial() || !then.isShard())
          continue;
        after = after.with(axis, then);
      }
      for (unsigned axis : node.layout.order) {
        const Placement &now = node.layout.placements[axis], &then = target.placements[axis];
        if (now.isPartial() || then.isShard())
          continue;
        bool stays = now.isShard() && (then.isPartial() || !gathers);
        after = after.with(axis, stays ? now : Placement::replicate());
      }
      for (unsigned axis = 0; axis < after.placements.size(); ++axis)
        moves |= after.placements[axis].isShard() && node.layout.placements[axis].isShard();
      bool slices = false, joins = false;
      for (unsigned axis = 0; axis < after.placements.size(); ++axis) {
        slices |= node.layout.placements[axis].isReplicate() && after.placements[axis].isShard();
        joins |= node.layout.placements[axis].isShard() && after.placements[axis].isReplicate();
      }
      // What is only gathered, or only cut, needs no exchange.
      if (moves || (slices && joins))
        offer(node, StepKind::Exchange, after);
    }
  }

  Layout source, target;
  std::span<const int64_t> shape;
  const PlannerOptions &options;
  double fastest;
  std::vector<int64_t> dims;
  PlanCost limit;
  size_t count = 0;
  std::unordered_map<Layout, Node, LayoutHash> nodes;
  std::priority_queue<Entry> queue;
};

} // namespace

RedistributePlan planCheapest(const Layout &from, const Layout &to, std::span<const int64_t> shape,
                              const PlannerOptions &options) {
  RedistributePlan plan = planGreedily(from, to, shape);
  if (!plan.errors.empty() || plan.steps.empty())
    return plan;
  Search search(from, to, shape, options);
  if (auto steps = search.run(costOf(plan.steps, shape, options)))
    plan.steps = std::move(*steps);
  plan.expanded = search.expanded;
  return plan;
}

static double bytesOf(std::span<const RedistributeStep> steps, std::span<const int64_t> shape,
                      int64_t elementSize) {
  double bytes = 0;
  for (const RedistributeStep &step : steps)
    bytes += bytesMoved(step, shape, elementSize);
  return bytes;
}

double cheapestBytes(const Layout &from, const Layout &to, std::span<const int64_t> shape,
                     int64_t elementSize) {
  constexpr double none = std::numeric_limits<double>::infinity();
  PlannerOptions options;
  options.elementSize = elementSize;
  if (!(from.mesh == to.mesh)) {
    RedistributePlan plan = planBetweenMeshes(from, to, shape, options, options);
    return plan.errors.empty() ? bytesOf(plan.steps, shape, elementSize) : none;
  }
  RedistributePlan greedy = planGreedily(from, to, shape);
  if (!greedy.errors.empty())
    return none;
  double bytes = bytesOf(greedy.steps, shape, elementSize);
  if (bytes == 0)
    return 0;
  // Among sequences that send as much any will do, so that most searches end where they begin.
  PlanCost less{costOf(greedy.steps, shape, options).time, 0, 0};
  auto steps = Search(from, to, shape, options).run(less);
  return steps ? bytesOf(*steps, shape, elementSize) : bytes;
}

} // namespace shardc
