// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Propagate.h"

#include "passes/placement/core/Claims.h"
#include "passes/placement/core/TensorStates.h"
#include "passes/placement/core/Uses.h"
#include "passes/placement/core/Worklist.h"

#include <algorithm>

namespace shardc {

static Strength strengthOf(const Annotation &annotation, unsigned axis) {
  return annotation.strengths.empty() ? Strength::Normal : annotation.strengths[axis];
}

std::vector<AxisPlacement> placementsOf(const Annotation &annotation, SizesPool &sizes) {
  unsigned numAxes = annotation.layout.mesh.numAxes();
  Layout layout = annotation.layout;
  auto isWeak = [&](unsigned axis) { return strengthOf(annotation, axis) == Strength::Weak; };
  if (layout.isDefaultOrder()) {
    layout.order.clear();
    for (bool weak : {false, true})
      for (unsigned axis = 0; axis < numAxes; ++axis)
        if (isWeak(axis) == weak)
          layout.order.push_back(axis);
  }
  std::vector<AxisPlacement> placements = decompose(layout, sizes);
  for (unsigned axis = 0; axis < numAxes; ++axis) {
    AxisPlacement &p = placements[axis];
    p.storage = p.isShard() && isWeak(axis) && !p.split.fixed;
    // Only the innermost axes of a dim are storage.
    bool outside = false;
    for (unsigned other : layout.axesOfDim(p.dim)) {
      p.storage &= !(outside && !isWeak(other));
      outside |= other == axis;
    }
  }
  return placements;
}

namespace {
class Propagator {
public:
  explicit Propagator(const PropagationGraph &graph)
      : graph(graph), numAxes(graph.numAxes()), uses(graph), worklist(graph.ops.size()),
        layouts(graph.mesh), claimsOf(graph, result.states, result.sizes) {
    for (auto [output, input] : graph.ties)
      tiedOutputs[input].push_back(output);
  }

  Propagation run() {
    result.errors = graph.validate();
    if (!result.errors.empty())
      return std::move(result);
    result.states.resize(graph.tensors.size() * numAxes);
    setFinalStates(graph, result);
    for (auto &[tensor, layout] : graph.finalLayouts)
      markUsesOfOne(tensor);
    for (Strength strength : {Strength::Normal, Strength::Weak}) {
      round = strength;
      for (const Wish &wish : graph.wishes)
        install(wish);
      for (const Annotation &annotation : graph.annotations)
        install(annotation);
      if (round == Strength::Weak)
        for (auto &[tensor, layout] : graph.finalLayouts)
          if (graph.tensors[tensor].producer != kNone)
            worklist.add(graph.tensors[tensor].producer);
      for (bool contractions : {false, true})
        propagateRound(contractions);
    }
    reportCoarserExtents();
    for (auto [output, input] : graph.ties)
      for (unsigned axis = 0; axis < numAxes; ++axis)
        result.states[size_t(output) * numAxes + axis] = state(input, axis);
    return std::move(result);
  }

private:
  /// Tied tensors share the state of the input: what is found for one holds for both.
  AxisState &state(TensorId tensor, unsigned axis) {
    if (TensorId input = graph.tiedInput(tensor); input != kNone)
      tensor = input;
    return result.states[size_t(tensor) * numAxes + axis];
  }

  bool isOfRound(Strength strength) const {
    return (strength == Strength::Weak) == (round == Strength::Weak);
  }

  /// A wish holds where nothing that came before it says another thing.
  void install(const Wish &wish) {
    std::vector<AxisState> wished = statesOf(wish.sharding, result.sizes);
    for (unsigned axis = 0; axis < numAxes; ++axis) {
      AxisState &s = state(wish.tensor, axis);
      if (s.placement.kind != PlacementKind::Open || !isOfRound(wished[axis].strength) ||
          wished[axis].placement.kind == PlacementKind::Open ||
          (!wished[axis].annotated && !composes(wish.tensor, axis, wished[axis].placement)))
        continue;
      s = wished[axis];
      markUses(wish.tensor);
    }
  }

  void install(const Annotation &annotation) {
    if (graph.tiedInput(annotation.tensor) != kNone)
      return; // open: the input's annotation is that of both
    std::vector<AxisPlacement> placements = placementsOf(annotation, result.sizes);
    for (unsigned axis = 0; axis < numAxes; ++axis) {
      Strength strength = strengthOf(annotation, axis);
      if (placements[axis].kind == PlacementKind::Open || !isOfRound(strength))
        continue;
      // An annotation stays, whatever others made of the axis before.
      state(annotation.tensor, axis) = {placements[axis], strength, /*annotated=*/true, kNone};
      markUses(annotation.tensor);
    }
    if (round == Strength::Weak) {
      checkAnnotation(annotation, placements);
      dropWhatDoesNotNest(annotation.tensor, placements);
    }
  }

  /// What propagation made of other axes before a weak annotation gives way to it: first what is
  /// not annotated, then coarser extents.
  void dropWhatDoesNotNest(TensorId tensor, const std::vector<AxisPlacement> &annotated) {
    for (bool coarser : {false, true})
      for (unsigned axis = numAxes; axis-- > 0;) {
        scratch.clear();
        for (unsigned a = 0; a < numAxes; ++a)
          scratch.push_back(state(tensor, a).placement);
        if (layouts.compose(graph.tensors[tensor].shape, graph.shape(tensor), scratch))
          return;
        AxisState &s = state(tensor, axis);
        if (!s.annotated && !coarser)
          s = AxisState();
        else if (s.annotated && coarser)
          s = {annotated[axis], s.strength, true, kNone};
      }
  }

  /// An annotation whose axes make no layout together cannot be kept.
  void checkAnnotation(const Annotation &annotation, const std::vector<AxisPlacement> &placements) {
    const std::vector<int64_t> &shape = graph.shape(annotation.tensor);
    Layout wanted = annotation.layout.canonicalize(shape);
    std::optional<Layout> kept = compose(graph.mesh, shape, placements);
    bool same = kept.has_value();
    for (unsigned axis = 0; same && axis < numAxes; ++axis)
      same = placements[axis].storage || placements[axis].kind == PlacementKind::Open ||
             kept->placements[axis] == wanted.placements[axis];
    if (!same)
      result.errors.push_back(
          "annotation " + annotation.layout.str() + " of tensor " +
          std::to_string(annotation.tensor) + originText(annotation) +
          ": an axis splits pieces of the blocks of another; give the inner axis the blocks");
  }

  static std::string originText(const Annotation &annotation) {
    for (const std::string &origin : annotation.origins)
      if (!origin.empty())
        return " (" + origin + ")";
    return "";
  }

  void markUses(TensorId tensor) {
    TensorId input = graph.tiedInput(tensor);
    input = input == kNone ? tensor : input;
    markUsesOfOne(input);
    if (auto tied = tiedOutputs.find(input); tied != tiedOutputs.end())
      for (TensorId output : tied->second)
        markUsesOfOne(output);
  }

  void markUsesOfOne(TensorId tensor) {
    OpId producer = graph.tensors[tensor].producer;
    if (producer != kNone)
      worklist.add(producer);
    for (OpId op : uses.of(tensor))
      worklist.add(op);
  }

  void propagateRound(bool contractions) {
    std::vector<OpId> deferred;
    while (std::optional<OpId> op = worklist.next()) {
      if (!contractions && contracts(*op)) {
        deferred.push_back(*op);
        continue;
      }
      ++result.visits;
      for (unsigned axis = 0; axis < numAxes; ++axis)
        visit(*op, axis);
    }
    for (OpId op : deferred)
      worklist.add(op);
  }

  bool contracts(OpId op) {
    unsigned rule = graph.ops[op].rule;
    if (ruleContracts.empty())
      for (const ShardingRule &r : graph.rules)
        ruleContracts.push_back(
            std::any_of(r.factors.begin(), r.factors.end(),
                        [](const Factor &f) { return f.kind == FactorKind::Reducing; }));
    return ruleContracts[rule];
  }

  void visit(OpId op, unsigned axis) {
    bool isFinalRedistribution = graph.isFinalRedistribution(op);
    if (isFinalRedistribution && round != Strength::Weak)
      return;
    std::vector<Claim> &claims = claimsOf.collect(op, axis);
    if (claims.empty())
      return;
    unsigned factor = claimsOf.chooseFactor(op, axis);

    // Join the claims on the factor; one that does not fit the others stays out, and is
    // redistributed.
    std::sort(claims.begin(), claims.end(), [](const Claim &a, const Claim &b) {
      return std::tuple(Claims::rank(a), !a.split.split.fixed, a.index) <
             std::tuple(Claims::rank(b), !b.split.split.fixed, b.index);
    });
    std::optional<Claim> joint;
    for (const Claim &claim : claims) {
      if (claim.split.factor != factor)
        continue;
      if (!joint)
        joint = claim;
      else if (std::optional<Split> merged =
                   mergeSplits(joint->split.split, claim.split.split,
                               graph.rule(op).factors[factor].size, result.sizes))
        joint->split.split = *merged;
    }
    if (isFinalRedistribution)
      joint->strength = Strength::Weak;
    graph.forSlots(op, [&](TensorId tensor, bool isResult, unsigned slot) {
      give(op, axis, tensor, isResult, slot, *joint);
    });
  }

  /// Gives a joint split to one tensor of the op that has the factor.
  void give(OpId op, unsigned axis, TensorId tensor, bool isResult, unsigned slot,
            const Claim &joint) {
    const ShardingRule &rule = graph.rule(op);
    const TensorFactors &dims = (isResult ? rule.results : rule.operands)[slot];
    auto hasFactor = [&](const DimFactors &dim) {
      return std::find(dim.begin(), dim.end(), joint.split.factor) != dim.end();
    };
    size_t d =
        static_cast<size_t>(std::find_if(dims.begin(), dims.end(), hasFactor) - dims.begin());
    AxisState &s = state(tensor, axis);
    bool open = s.placement.kind == PlacementKind::Open;
    if (d == dims.size() || s.isFinal || (!open && !s.placement.isShard()))
      return;
    std::optional<Split> split =
        liftToDim({rule, isResult, slot, d, claimsOf.parts(), graph.shape(tensor)[d]}, joint.split,
                  result.sizes);
    if (!split)
      return;
    AxisState next = s;
    if (open) {
      uint8_t level = levelOf(op, axis);
      next.placement = AxisPlacement::shard(static_cast<int>(d), *split, level);
      next.strength = joint.strength;
    } else {
      if (s.placement.dim != static_cast<int>(d))
        return;
      std::optional<Split> merged =
          mergeSplits(s.placement.split, *split, graph.shape(tensor)[d], result.sizes);
      if (!merged)
        return;
      // Ops that compute with it make a stored shard an ordinary one.
      next.placement.storage = false;
      next.placement.split = *merged;
      next.strength = std::min(s.strength, std::max(joint.strength, Strength::Normal));
      if (!merged->sameExtents(s.placement.split))
        next.coarsenedBy = op;
    }
    // What is made from a pinned tensor alone is pinned too.
    if (open && !(isResult && graph.ops[op].numOperands == 1))
      next.strength = std::max(next.strength, Strength::Normal);
    if (!open && next.placement.samePlacement(s.placement) && next.strength == s.strength)
      return;
    if (!composes(tensor, axis, next.placement))
      return;
    s = next;
    markUses(tensor);
  }

  uint8_t levelOf(OpId op, unsigned axis) {
    uint8_t level = static_cast<uint8_t>(axis);
    graph.forTensors(op, [&](TensorId tensor, const TensorFactors &, bool) {
      const AxisPlacement &p = state(tensor, axis).placement;
      if (p.isShard())
        level = p.level;
    });
    return level;
  }

  /// Whether the tensor has a layout if the axis does this to it. Only another axis on the same dim
  /// can object.
  bool composes(TensorId tensor, unsigned axis, const AxisPlacement &placement) {
    bool shared = false;
    scratch.clear();
    for (unsigned a = 0; a < numAxes; ++a) {
      scratch.push_back(a == axis ? placement : state(tensor, a).placement);
      shared |= a != axis && scratch.back().isShard() && scratch.back().dim == placement.dim;
    }
    return !shared ||
           layouts.compose(graph.tensors[tensor].shape, graph.shape(tensor), scratch).has_value();
  }

  void reportCoarserExtents() {
    for (const Annotation &annotation : graph.annotations)
      for (unsigned axis = 0; axis < numAxes; ++axis) {
        const AxisState &s = state(annotation.tensor, axis);
        if (graph.tiedInput(annotation.tensor) != kNone || !s.annotated || s.coarsenedBy == kNone)
          continue;
        scratch.clear();
        for (unsigned a = 0; a < numAxes; ++a)
          scratch.push_back(state(annotation.tensor, a).placement);
        std::optional<Layout> layout = compose(graph.mesh, graph.shape(annotation.tensor), scratch);
        std::string origin = annotation.origins.empty() ? "" : annotation.origins[axis];
        std::string asked = annotation.layout.placements[axis].str();
        std::string became = layout ? layout->placements[axis].str() : "coarser";
        // The extents that were asked for are whole units already.
        if (became == asked)
          continue;
        asked +=
            " over " + graph.mesh.axes[axis].name + (origin.empty() ? "" : " (" + origin + ")");
        std::string why = "units of " + std::to_string(s.placement.split.granule);
        if (s.placement.split.isUnequal())
          why = "the blocks as they are";
        if (s.placement.split.blocks > 1)
          why += " in " + std::to_string(s.placement.split.blocks) + " blocks";
        result.remarks.push_back({Remark::Kind::CoarserExtents, annotation.tensor, s.coarsenedBy,
                                  axis, asked + " becomes " + became + ": ops need " + why});
      }
  }

  const PropagationGraph &graph;
  unsigned numAxes;
  Strength round = Strength::Normal;
  Uses uses;
  Worklist worklist;
  LayoutTable layouts;
  Propagation result;
  Claims claimsOf;
  std::unordered_map<TensorId, std::vector<TensorId>> tiedOutputs;
  std::vector<AxisPlacement> scratch; // scratch
  std::vector<bool> ruleContracts;
};
} // namespace

void setFinalStates(const PropagationGraph &graph, Propagation &propagation) {
  for (auto &[tensor, layout] : graph.finalLayouts) {
    bool isMade = graph.tensors[tensor].producer != kNone;
    std::vector<AxisPlacement> placements = decomposeFinal(layout, propagation.sizes);
    for (unsigned axis = 0; axis < placements.size(); ++axis)
      propagation.states[size_t(tensor) * graph.numAxes() + axis] = {
          placements[axis], Strength::Normal, /*annotated=*/isMade, kNone, /*isFinal=*/true};
  }
}

Propagation propagate(const PropagationGraph &graph) { return Propagator(graph).run(); }

} // namespace shardc
