// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Place.h"

#include "passes/placement/core/ChangeCosts.h"
#include "passes/placement/core/Costs.h"
#include "passes/placement/core/DeadEnds.h"
#include "passes/placement/core/PartialDelay.h"
#include "passes/placement/core/Strategy.h"
#include "passes/placement/core/TensorStates.h"

#include <algorithm>

namespace shardc {

namespace {

class Placer {
public:
  Placer(const PropagationGraph &graph, Propagation &propagation)
      : graph(graph), propagation(propagation), numAxes(graph.numAxes()), layouts(graph.mesh),
        changes(graph, layouts), delays(graph, propagation, changes), isDecided(numAxes),
        deadEnds(graph), actual(graph.tensors.size() * numAxes) {
    for (auto &[tensor, layout] : graph.finalLayouts)
      if (OpId made = graph.tensors[tensor].producer; made != kNone)
        finalTargets[graph.operands(made)[0]].push_back(tensor);
  }

  PlacedGraph run() {
    result.remarks = std::move(propagation.remarks);
    result.delayRounds = delays.numRounds();
    result.tensorLayouts.assign(graph.tensors.size(), 0);
    result.operandLayouts.assign(graph.operandTensors.size(), 0);
    for (TensorId t = 0; t < graph.tensors.size(); ++t)
      if (graph.tensors[t].producer == kNone)
        placeInput(t);
    for (OpId op = 0; op < graph.ops.size() && result.errors.empty(); ++op)
      placeOp(op);
    if (result.errors.empty())
      remarkUnfollowedWishes();
    result.layouts = layouts.take();
    return std::move(result);
  }

private:
  const AxisState &wanted(TensorId t, unsigned axis) const {
    return propagation.states[size_t(t) * numAxes + axis];
  }
  AxisPlacement &now(TensorId t, unsigned axis) { return actual[size_t(t) * numAxes + axis]; }
  std::span<AxisPlacement> nowOf(TensorId t) {
    return std::span(actual).subspan(size_t(t) * numAxes, numAxes);
  }

  void setLayout(TensorId t, std::span<const AxisPlacement> axes) {
    std::copy(axes.begin(), axes.end(), nowOf(t).begin());
    if (const Layout *is = graph.finalLayout(t))
      result.tensorLayouts[t] = layouts.intern(*is);
    else if (std::optional<LayoutId> id =
                 layouts.compose(graph.tensors[t].shape, graph.shape(t), axes))
      result.tensorLayouts[t] = *id;
    else
      result.errors.push_back(
          {t, kNone, "the placements found for the tensor do not form a layout"});
  }

  /// Whether two placements of one tensor give every rank the same, in whatever words.
  bool isSame(TensorId t, unsigned axis, const AxisPlacement &a, const AxisPlacement &b) const {
    if (!a.isShard() || !b.isShard() || a.dim != b.dim || a.storage != b.storage)
      return a.samePlacement(b);
    return sameShards(a.split, b.split, graph.shape(t)[a.dim], graph.mesh.axes[axis].size);
  }

  void placeInput(TensorId t) {
    std::vector<AxisPlacement> axes;
    for (unsigned axis = 0; axis < numAxes; ++axis) {
      axes.push_back(wanted(t, axis).placement);
      if (axes.back().kind == PlacementKind::Open)
        axes.back() = AxisPlacement::replicate();
    }
    setLayout(t, axes);
  }

  std::optional<AxisPlacement> placementOf(OpId op, const Strategy &s, bool isResult, size_t slot) {
    TensorId tensor = (isResult ? graph.results(op) : graph.operands(op))[slot];
    return s.placementOf(graph.rule(op), parts, isResult, slot, graph.shape(tensor),
                         propagation.sizes);
  }

  /// Strategies that some operand, or what is wanted of some result, speaks for.
  void collectStrategies(OpId op, unsigned axis, std::vector<Strategy> &strategies) {
    const ShardingRule &rule = graph.rule(op);
    auto add = [&](Strategy s) {
      if (std::find(strategies.begin(), strategies.end(), s) == strategies.end())
        strategies.push_back(s);
    };
    auto addFactor = [&](const AxisPlacement &p, bool isResult, size_t slot) {
      if (!p.isShard() || p.storage)
        return;
      TensorId tensor = (isResult ? graph.results(op) : graph.operands(op))[slot];
      RuleDim dim{
          rule, isResult, slot, static_cast<size_t>(p.dim), parts, graph.shape(tensor)[p.dim]};
      if (auto f = projectToFactor(dim, p.split, propagation.sizes))
        add(Strategy::ofFactor(*f, p.level));
    };
    add({});
    for (size_t i = 0; i < rule.results.size(); ++i)
      addFactor(wanted(graph.results(op)[i], axis).placement, /*isResult=*/true, i);
    bool isView = rule.movesDataOnly && rule.operands.size() == 1;
    for (size_t i = 0; i < rule.operands.size(); ++i) {
      const AxisPlacement &is = now(graph.operands(op)[i], axis);
      if (!isView || !is.isShard() || !deadEnds.isSharedPart(graph.operands(op)[i], is.dim))
        addFactor(is, /*isResult=*/false, i);
      // Blocks that a result alone does not tell.
      if (const AxisPlacement &p = wanted(graph.operands(op)[i], axis).placement;
          p.split.isUnequal())
        addFactor(p, /*isResult=*/false, i);
    }
    for (unsigned set = 0; set < rule.linearIn.size(); ++set)
      for (unsigned operand : rule.linearIn[set]) {
        const AxisPlacement &p = now(graph.operands(op)[operand], axis);
        if (p.isPartial() && (p.reduction == Reduction::Sum || p.reduction == Reduction::Avg))
          add(Strategy::passPartial(set, p.reduction));
      }
  }

  /// Bytes that strategy `s` moves over `axis`; infinite where it is impossible.
  double cost(OpId op, unsigned axis, const Strategy &s) {
    const ShardingRule &rule = graph.rule(op);
    std::span<const TensorId> operands = graph.operands(op), results = graph.results(op);
    double total = 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      std::optional<AxisPlacement> then = placementOf(op, s, /*isResult=*/false, i);
      if (!then || !nests(operandRows[i], axis, *then, operands[i]))
        return kInfinite;
      if (wanted(operands[i], axis).strength == Strength::Pinned &&
          now(operands[i], axis).isShard() &&
          !isSame(operands[i], axis, now(operands[i], axis), *then) &&
          !isAvailable(operands[i], axis, *then))
        return kInfinite;
      total += operandCost(operands[i], i, axis, *then);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      std::optional<AxisPlacement> then = placementOf(op, s, /*isResult=*/true, i);
      if (!then || !nests(resultRows[i], axis, *then, results[i]))
        return kInfinite;
      const AxisState &w = wanted(results[i], axis);
      if (w.annotated && !isSame(results[i], axis, *then, w.placement))
        return kInfinite;
      total += resultCost(results[i], axis, *then);
    }
    return total + exchangeCost(op, axis, s);
  }

  /// What it costs more to have operand `i` as the axes decided so far want it if `axis` is to do
  /// `then`, instead of what it does. The axes that are not decided do what they do.
  double operandCost(TensorId t, size_t i, unsigned axis, const AxisPlacement &then) {
    if (now(t, axis).samePlacement(then) && now(t, axis).level == then.level)
      return 0;
    if (!changesAlone(t, i, axis, then)) {
      std::optional<double> changed = costOfOperand(t, i, axis, then),
                            kept = costOfOperand(t, i, axis, now(t, axis));
      if (changed && kept && *changed != kInfinite && *kept != kInfinite)
        return *changed - *kept;
    }
    if (isSame(t, axis, now(t, axis), then) || isAvailable(t, axis, then))
      return 0;
    return changes.ofAxis(t, axis, nowOf(t), reduced(t, axis, then), then);
  }

  /// Whether one step over the axis alone takes the operand there: the axis is innermost on its dim
  /// before and after. Elsewhere axes change their order, or one moves between others.
  bool changesAlone(TensorId t, size_t i, unsigned axis, const AxisPlacement &then) {
    auto isInnermost = [&] {
      auto isOnDim = [&](const AxisPlacement &p) { return p.isShard() && p.dim == row[axis].dim; };
      if (!row[axis].isShard() || std::count_if(row.begin(), row.end(), isOnDim) == 1)
        return true;
      auto id = layouts.compose(graph.tensors[t].shape, graph.shape(t), row);
      return !id || layouts[*id].axesOfDim(row[axis].dim).back() == axis;
    };
    row.assign(nowOf(t).begin(), nowOf(t).end());
    if (!isInnermost())
      return false;
    for (unsigned a = 0; a < numAxes; ++a)
      if (a == axis || isDecided[a])
        row[a] = a == axis ? then : operandRows[i][a];
    return isInnermost();
  }

  /// From the layout that it has, or has been brought into already. Nothing where what the axes do
  /// is no layout before all are decided.
  std::optional<double> costOfOperand(TensorId t, size_t i, unsigned axis,
                                      const AxisPlacement &then) {
    std::vector<AxisPlacement> from(nowOf(t).begin(), nowOf(t).end()), to = from;
    std::optional<LayoutId> source = result.tensorLayouts[t];
    bool isChanged = false;
    for (unsigned a = 0; a < numAxes; ++a) {
      if (a == axis || isDecided[a])
        to[a] = a == axis ? then : operandRows[i][a];
      isChanged |= !to[a].samePlacement(from[a]) || to[a].level != from[a].level;
      const AxisPlacement &is = reduced(t, a, to[a]);
      if (&is != &now(t, a))
        source = std::nullopt;
      from[a] = is;
    }
    if (!isChanged)
      return 0;
    if (!source)
      source = layouts.compose(graph.tensors[t].shape, graph.shape(t), from);
    std::optional<LayoutId> target = layouts.compose(graph.tensors[t].shape, graph.shape(t), to);
    if (!source || !target)
      return std::nullopt;
    double least = changes.bytes(t, *source, *target);
    if (auto made = versions.find(t); made != versions.end())
      for (const Version &version : made->second)
        least = std::min(least, changes.bytes(t, version.layout, *target));
    return least;
  }

  /// What an axis does to a tensor before it is to do something else: what is reduced anyway is so
  /// already.
  const AxisPlacement &reduced(TensorId t, unsigned axis, const AxisPlacement &then) {
    const AxisPlacement &is = now(t, axis);
    const AxisPlacement *whole =
        is.isPartial() && !is.samePlacement(then) ? delays.reducedAnyway(t, axis) : nullptr;
    return whole ? *whole : is;
  }

  double resultCost(TensorId t, unsigned axis, const AxisPlacement &made) {
    bool summed = made.reduction == Reduction::Sum || made.reduction == Reduction::Avg;
    if (made.isPartial())
      return summed ? delays.delay(t, axis) : delays.reduceNow(t, axis);
    scratch.clear();
    for (unsigned a = 0; a < numAxes; ++a)
      scratch.push_back(wanted(t, a).placement);
    auto costTo = [&](const AxisPlacement &then) {
      return isSame(t, axis, made, then) ? 0.0 : changes.ofAxis(t, axis, scratch, made, then);
    };
    const AxisPlacement &then = wanted(t, axis).placement;
    double total = then.isShard() ? costTo(then) : 0;
    if (auto targets = finalTargets.find(t); targets != finalTargets.end())
      for (TensorId target : targets->second)
        if (const AxisPlacement &p = wanted(target, axis).placement; !isSame(t, axis, p, then))
          total += costTo(p);
    return total;
  }

  /// What ranks exchange inside the op: an all-reduce of `exchange` elements per point of the
  /// largest result's other factors, and each rank's share of the elements that are `moved`.
  double exchangeCost(OpId op, unsigned axis, const Strategy &s) {
    const ShardingRule &rule = graph.rule(op);
    double amount = s.exchanged(rule, parts), moved = static_cast<double>(s.moved(rule));
    if ((amount == 0 && moved == 0) || graph.results(op).empty())
      return 0;
    const Factor &f = rule.factors[s.factor.factor];
    TensorId t = graph.results(op)[0];
    double bytes = bytesBesideAxis(graph, t, axis, [&](unsigned a) -> const AxisPlacement & {
      return wanted(t, a).placement;
    });
    for (const DimFactors &dim : rule.results[0])
      if (std::find(dim.begin(), dim.end(), s.factor.factor) != dim.end())
        bytes /= static_cast<double>(f.size == kDynamic ? cost::kAssumedDynamicSize
                                                        : std::max<int64_t>(f.size, 1));
    double n = static_cast<double>(graph.mesh.axes[axis].size);
    return (n - 1) / n * bytes * (2 * amount + moved / n);
  }

  /// Whether the axes decided so far and this one make a layout. Only axes on one dim can disagree.
  bool nests(const std::vector<AxisPlacement> &row, unsigned axis, const AxisPlacement &placement,
             TensorId t) {
    bool shared = false;
    for (unsigned a = 0; a < numAxes; ++a)
      shared |= a != axis && row[a].isShard() && placement.isShard() && row[a].dim == placement.dim;
    if (!shared)
      return true;
    scratch.assign(row.begin(), row.end());
    scratch[axis] = placement;
    return layouts.compose(graph.tensors[t].shape, graph.shape(t), scratch).has_value();
  }

  bool isAvailable(TensorId t, unsigned axis, const AxisPlacement &then) const {
    auto it = versions.find(t);
    return it != versions.end() &&
           std::any_of(it->second.begin(), it->second.end(),
                       [&](const Version &v) { return isSame(t, axis, v.axes[axis], then); });
  }

  Strategy choose(OpId op, unsigned axis) {
    std::vector<Strategy> strategies;
    collectStrategies(op, axis, strategies);
    Strategy best;
    double bestCost = kInfinite;
    for (const Strategy &s : strategies) {
      double c = cost(op, axis, s);
      double slack = 1e-9 * std::max(1.0, bestCost);
      bool less = c < bestCost && (bestCost == kInfinite || c < bestCost - slack);
      bool equal = !less && c != kInfinite && c < bestCost + slack;
      if (less || (equal && s.rank(graph.rule(op)) < best.rank(graph.rule(op)))) {
        best = s;
        bestCost = c;
      }
    }
    if (bestCost == kInfinite)
      refuseBoundResults(op, axis);
    return best;
  }

  bool isBound(OpId op, unsigned axis) const {
    std::span<const TensorId> results = graph.results(op);
    return std::any_of(results.begin(), results.end(),
                       [&](TensorId t) { return wanted(t, axis).annotated; });
  }

  void refuseBoundResults(OpId op, unsigned axis) {
    for (size_t i = 0; i < graph.results(op).size(); ++i)
      if (const AxisState &w = wanted(graph.results(op)[i], axis); w.annotated)
        result.errors.push_back({kNone, op,
                                 "result " + std::to_string(i) + " is to be " + textOf(w, axis) +
                                     " over " + graph.mesh.axes[axis].name +
                                     ", but the op cannot make it so from what its operands are; "
                                     "leave it open, and put "
                                     "a dist.constrain behind the op"});
  }

  void placeOp(OpId op) {
    parts = graph.parts(op);
    std::span<const TensorId> operands = graph.operands(op), results = graph.results(op);
    operandRows.assign(operands.size(), std::vector(numAxes, AxisPlacement::replicate()));
    resultRows.assign(results.size(), std::vector(numAxes, AxisPlacement::replicate()));
    // Inputs were placed first: what is tied to one gets its layout, whatever it costs.
    TensorId tied = graph.ops[op].isConstraint ? graph.tiedInput(results[0]) : kNone;
    auto isGiven = [&](unsigned axis) {
      return tied != kNone || (graph.ops[op].isConstraint && wanted(results[0], axis).annotated);
    };
    for (unsigned axis = 0; axis < numAxes; ++axis)
      if ((isDecided[axis] = isGiven(axis)))
        operandRows[0][axis] = resultRows[0][axis] =
            tied != kNone ? now(tied, axis) : wanted(results[0], axis).placement;
    // Axes that are bound first: others nest around them.
    for (bool bound : {true, false})
      for (unsigned axis = 0; axis < numAxes; ++axis)
        if (!isGiven(axis) && isBound(op, axis) == bound)
          placeAxis(op, axis);
    for (size_t i = 0; i < results.size(); ++i)
      setLayout(results[i], resultRows[i]);
    for (size_t i = 0; i < operands.size(); ++i)
      require(op, i);
  }

  void placeAxis(OpId op, unsigned axis) {
    Strategy s = choose(op, axis);
    for (size_t i = 0; i < operandRows.size(); ++i)
      operandRows[i][axis] = placementOf(op, s, false, i).value_or(AxisPlacement::replicate());
    for (size_t i = 0; i < resultRows.size(); ++i)
      resultRows[i][axis] = placementOf(op, s, true, i).value_or(AxisPlacement::replicate());
    isDecided[axis] = true;
    result.exchangedBytes += exchangeCost(op, axis, s);
    remarkGathers(op, axis, s);
  }

  /// A result that was to be sharded, but is not made so, and that no op uses so.
  void remarkUnfollowedWishes() {
    for (OpId op = 0; op < graph.ops.size(); ++op) {
      if (graph.ops[op].isConstraint)
        continue;
      for (size_t i = 0; i < graph.results(op).size(); ++i)
        for (unsigned axis = 0; axis < numAxes; ++axis)
          remarkUnfollowedWish(op, i, axis);
    }
  }

  void remarkUnfollowedWish(OpId op, size_t i, unsigned axis) {
    TensorId t = graph.results(op)[i];
    const AxisPlacement &wish = wanted(t, axis).placement;
    if (!wish.isShard() || wish.storage || isSame(t, axis, now(t, axis), wish) ||
        isAvailable(t, axis, wish))
      return;
    AxisState is{now(t, axis)};
    result.remarks.push_back({Remark::Kind::Unfollowed, t, op, axis,
                              "result " + std::to_string(i) + " was to be " +
                                  textOf(wanted(t, axis), axis) + " over " +
                                  graph.mesh.axes[axis].name + ", but is " +
                                  shardingOf(is).placement.str() + ", which moves fewer bytes"});
  }

  /// Notes the layout that an operand is needed in.
  void require(OpId op, size_t i) {
    TensorId t = graph.operands(op)[i];
    bool isFinal = graph.isFinalRedistribution(op);
    std::optional<LayoutId> id =
        isFinal ? result.tensorLayouts[graph.results(op)[0]]
                : layouts.compose(graph.tensors[t].shape, graph.shape(t), operandRows[i]);
    if (!id) {
      result.errors.push_back(
          {kNone, op,
           "the placements found for operand " + std::to_string(i) + " do not form a layout"});
      return;
    }
    result.operandLayouts[graph.ops[op].firstOperand + i] = *id;
    if (*id == result.tensorLayouts[t])
      return;
    std::vector<Version> &made = versions[t];
    if (std::any_of(made.begin(), made.end(), [&](const Version &v) { return v.layout == *id; }))
      return;
    made.push_back({*id, operandRows[i]});
    if (!isFinal || !graph.finalLayout(t)) // else it has been made already
      result.redistributions.push_back({t, *id, op});
  }

  /// An operand that is gathered because the op cannot be sharded as it is, and not by choice.
  void remarkGathers(OpId op, unsigned axis, const Strategy &s) {
    const ShardingRule &rule = graph.rule(op);
    std::span<const TensorId> operands = graph.operands(op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const AxisPlacement &p = now(operands[i], axis);
      if (!p.isShard() || p.storage || operandRows[i][axis].isShard())
        continue;
      bool pinned = wanted(operands[i], axis).strength == Strength::Pinned;
      std::optional<FactorSplit> f = projectToFactor(
          {rule, false, i, static_cast<size_t>(p.dim), parts}, p.split, propagation.sizes);
      if (f && !pinned && (s.kind != Strategy::Kind::Replicate || isPossible(op, *f, p.level))) {
        remarkConflict(op, i, axis);
        continue;
      }
      result.remarks.push_back(
          {Remark::Kind::Gathered, operands[i], op, axis,
           "operand " + std::to_string(i) + " is sharded over " + graph.mesh.axes[axis].name +
               " on dim " + std::to_string(p.dim) +
               (f ? ", which the op's other tensors cannot follow" : ", which the op needs whole") +
               "; it is gathered"});
    }
  }

  /// An annotated input that an op could follow, but gathers because that moves fewer bytes.
  void remarkConflict(OpId op, size_t i, unsigned axis) {
    TensorId t = graph.operands(op)[i];
    const AxisState &s = wanted(t, axis);
    if (!s.annotated || s.strength == Strength::Weak || graph.tensors[t].producer != kNone)
      return;
    result.remarks.push_back({Remark::Kind::Conflict, t, op, axis,
                              "operand " + std::to_string(i) + " is sharded over " +
                                  graph.mesh.axes[axis].name + " on dim " +
                                  std::to_string(now(t, axis).dim) +
                                  ", but the op uses the axis otherwise, which moves fewer bytes; "
                                  "the operand is gathered"});
  }

  /// Whether every operand and result of the op can follow a split of a factor.
  bool isPossible(OpId op, const FactorSplit &f, uint8_t level) {
    const ShardingRule &rule = graph.rule(op);
    Strategy s = Strategy::ofFactor(f, level);
    for (size_t i = 0; i < rule.operands.size(); ++i)
      if (!placementOf(op, s, false, i))
        return false;
    for (size_t i = 0; i < rule.results.size(); ++i)
      if (!placementOf(op, s, true, i))
        return false;
    return true;
  }

  struct Version {
    LayoutId layout;
    std::vector<AxisPlacement> axes;
  };

  const PropagationGraph &graph;
  Propagation &propagation;
  unsigned numAxes;
  LayoutTable layouts;
  ChangeCosts changes;
  PartialDelay delays;
  std::vector<bool> isDecided;   ///< by axis, of the op being placed
  std::vector<FactorPart> parts; ///< of the op being placed
  DeadEnds deadEnds;
  std::vector<AxisPlacement> actual; ///< by tensor, then axis
  std::unordered_map<TensorId, std::vector<Version>> versions;
  /// What the program redistributes tensors to.
  std::unordered_map<TensorId, std::vector<TensorId>> finalTargets;
  PlacedGraph result;
  std::vector<std::vector<AxisPlacement>> operandRows, resultRows; ///< of the op being placed
  std::vector<AxisPlacement> scratch, row;
};
} // namespace

PlacedGraph place(const PropagationGraph &graph, Propagation &propagation) {
  if (!propagation.errors.empty()) {
    PlacedGraph result;
    for (const std::string &error : propagation.errors)
      result.errors.push_back({kNone, kNone, error});
    return result;
  }
  return Placer(graph, propagation).run();
}

PlacedGraph placeGraph(const PropagationGraph &graph) {
  Propagation propagation = propagate(graph);
  return place(graph, propagation);
}

} // namespace shardc
