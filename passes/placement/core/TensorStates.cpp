// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/TensorStates.h"

namespace shardc {

AxisSharding shardingOf(const AxisState &state) {
  const AxisPlacement &p = state.placement;
  AxisSharding sharding;
  if (p.kind == PlacementKind::Open)
    return sharding;
  sharding.strength = state.strength;
  sharding.given = state.annotated;
  sharding.placement.kind = p.kind;
  if (p.isPartial())
    sharding.placement.reduction = p.reduction;
  if (!p.isShard())
    return sharding;
  sharding.placement.dim = p.dim;
  sharding.placement.blocks = p.split.blocks;
  sharding.placement.granule = p.split.granule;
  if (p.split.sizes)
    sharding.placement.sizes = *p.split.sizes;
  sharding.fixed = p.split.fixed;
  sharding.storage = p.storage;
  sharding.level = p.level;
  return sharding;
}

Sharding shardingOf(const Mesh &mesh, std::span<const AxisState> states) {
  Sharding sharding{mesh, {}};
  for (const AxisState &state : states)
    sharding.axes.push_back(shardingOf(state));
  return sharding;
}

static Sharding shardingOf(const Layout &layout, bool given) {
  SizesPool sizes;
  std::vector<AxisState> states;
  for (AxisPlacement &p : decomposeFinal(layout, sizes)) {
    AxisState &state = states.emplace_back();
    if (!given && !p.isShard())
      continue;
    p.split.fixed |= given && p.isShard();
    state.placement = p;
    state.annotated = given;
  }
  return shardingOf(layout.mesh, states);
}

Sharding wishFor(const Layout &layout, std::span<const int64_t> shape) {
  Sharding wish = shardingOf(layout, /*given=*/false);
  // Where axes are nested in blocks, an axis by itself may have blocks that do not divide the dim.
  for (AxisSharding &axis : wish.axes) {
    Sharding alone{wish.mesh, std::vector<AxisSharding>(wish.axes.size())};
    alone.axes[&axis - wish.axes.data()] = axis;
    if (!alone.validateShape(shape).empty())
      axis = AxisSharding();
  }
  return wish;
}

std::optional<Sharding> exactlyAs(const Layout &layout, std::span<const int64_t> shape) {
  Sharding sharding = shardingOf(layout, /*given=*/true);
  SizesPool sizes;
  std::vector<AxisPlacement> placements;
  for (const AxisState &state : statesOf(sharding, sizes))
    placements.push_back(state.placement);
  std::optional<Layout> said = compose(layout.mesh, shape, placements);
  if (!said || *said != layout.canonicalize(shape))
    return std::nullopt;
  return sharding;
}

std::vector<AxisState> statesOf(const Sharding &sharding, SizesPool &sizes) {
  std::vector<AxisState> states;
  for (const AxisSharding &axis : sharding.axes) {
    AxisState &state = states.emplace_back();
    const Placement &p = axis.placement;
    state.strength = axis.strength;
    state.annotated = axis.given;
    state.placement.kind = p.kind;
    state.placement.reduction = p.reduction;
    if (!p.isShard())
      continue;
    Split split{p.blocks, p.granule, p.sizes.empty() ? nullptr : sizes.get(p.sizes), axis.fixed};
    state.placement =
        AxisPlacement::shard(static_cast<int>(p.dim), split, static_cast<uint8_t>(axis.level));
    state.placement.storage = axis.storage;
  }
  return states;
}

std::string textOf(const AxisState &state, unsigned axis) {
  AxisSharding sharding = shardingOf(state);
  std::string words = wordsOf(sharding, axis);
  return sharding.placement.str() + (words.empty() ? "" : " ") + words;
}

namespace {
class Checker {
public:
  Checker(const PropagationGraph &graph, Propagation &propagation)
      : graph(graph), propagation(propagation), layouts(graph.mesh) {}

  std::vector<Refusal> run() {
    for (const Annotation &annotation : graph.annotations)
      checkAnnotation(annotation);
    for (auto [output, input] : graph.ties)
      checkTie(output, input);
    for (TensorId tensor = 0; tensor < graph.tensors.size(); ++tensor)
      if (!state(tensor, 0).isFinal)
        checkLayout(tensor);
    return std::move(refusals);
  }

private:
  const AxisState &state(TensorId tensor, unsigned axis) const {
    return propagation.states[size_t(tensor) * graph.numAxes() + axis];
  }

  static bool keeps(const AxisState &state, const AxisPlacement &asked) {
    const AxisPlacement &is = state.placement;
    if (!state.annotated || is.kind != asked.kind)
      return false;
    if (asked.isShard())
      return is.dim == asked.dim && (!asked.split.fixed || is.split.sameExtents(asked.split));
    return !asked.isPartial() || is.reduction == asked.reduction;
  }

  void checkAnnotation(const Annotation &annotation) {
    if (graph.tiedInput(annotation.tensor) != kNone)
      return; // open: the input's annotation is that of both
    std::vector<AxisPlacement> asked = placementsOf(annotation, propagation.sizes);
    for (unsigned axis = 0; axis < asked.size(); ++axis) {
      const AxisState &s = state(annotation.tensor, axis);
      if (asked[axis].kind == PlacementKind::Open || keeps(s, asked[axis]))
        continue;
      std::string origin = annotation.origins.empty() ? "" : annotation.origins[axis];
      refusals.push_back({annotation.tensor, kNone,
                          annotation.layout.placements[axis].str() + " over " +
                              graph.mesh.axes[axis].name + " is asked for" +
                              (origin.empty() ? "" : " (" + origin + ")") +
                              ", but its 'dist.sharding' says " + textOf(s, axis) +
                              ": change what is asked for as well, or run dist-propagate again"});
    }
  }

  void checkTie(TensorId output, TensorId input) {
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis) {
      std::string ofOutput = textOf(state(output, axis), axis);
      std::string ofInput = textOf(state(input, axis), axis);
      if (ofOutput != ofInput)
        refusals.push_back({output, kNone,
                            "it is the new value of an argument whose 'dist.sharding' says " +
                                ofInput + " over " + graph.mesh.axes[axis].name +
                                ", but its own says " + ofOutput +
                                ": the next run starts from it, so both must be the same"});
    }
  }

  void checkLayout(TensorId tensor) {
    placements.clear();
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis)
      placements.push_back(state(tensor, axis).placement);
    if (layouts.compose(graph.tensors[tensor].shape, graph.shape(tensor), placements))
      return;
    std::string text;
    for (unsigned axis = 0; axis < graph.numAxes(); ++axis)
      text += (axis ? ", " : "") + textOf(state(tensor, axis), axis);
    refusals.push_back({tensor, kNone,
                        "no layout can have the placements [" + text +
                            "]: an axis splits pieces of the blocks of another, or is inside one "
                            "whose shards are uneven"});
  }

  const PropagationGraph &graph;
  Propagation &propagation;
  LayoutTable layouts;
  std::vector<AxisPlacement> placements; ///< scratch
  std::vector<Refusal> refusals;
};
} // namespace

std::vector<Refusal> checkStates(const PropagationGraph &graph, Propagation &propagation) {
  return Checker(graph, propagation).run();
}

} // namespace shardc
