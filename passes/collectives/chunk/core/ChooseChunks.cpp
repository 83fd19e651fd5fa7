// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/core/ChooseChunks.h"

#include "passes/collectives/core/ProgramTrials.h"

#include <charconv>

using namespace shardc;
using namespace shardc::collectives;

std::optional<ChunkMode> ChunkMode::parse(std::string_view text, std::string &error) {
  if (text == "off")
    return ChunkMode{};
  if (text == "auto")
    return ChunkMode{true, {}};
  if (text == "ring")
    return ChunkMode{true, {}, true};
  uint32_t pieces = 0;
  auto [last, failure] = std::from_chars(text.data(), text.data() + text.size(), pieces);
  if (failure == std::errc() && last == text.data() + text.size() && pieces >= 2 && pieces <= 64)
    return ChunkMode{true, pieces};
  error =
      "'" + std::string(text) + "' is neither off, auto, ring nor a number of pieces from 2 to 64";
  return std::nullopt;
}

std::string shardc::collectives::describeNoRings(const cost::CostModel &model) {
  return "a ring is made of permutes, which have no price in the cost model '" +
         std::string(model.name()) + "': choose another topology";
}

double shardc::collectives::mostSavedUs(const Graph &graph, const cost::CostModel &model,
                                        const ChunkRegion &region, uint32_t pieces,
                                        bool withLatency) {
  double more = pieces - 1, transfers = 0, kernels = 0, overhead = 0;
  for (NodeId node : region.nodes) {
    if (graph.isCollective(node)) {
      const Group &group = graph.group(graph.groupOf(node));
      double latency = model.latencyUs(graph.kindOf(node), group.shape());
      transfers +=
          model.collectiveUs(graph.kindOf(node), group.shape(), graph.fullBytes(node)) - latency;
      overhead += more * (model.launchUs() + (withLatency ? latency : 0));
    } else if (graph.isKernel(node)) {
      double us = graph.durationUs(node);
      kernels += us;
      overhead +=
          more * model.launchUs() + pieces * pieceUs(graph, model, region, node, pieces) - us;
    }
  }
  for (auto &[value, cut] : region.cuts)
    if (!cut.contiguous)
      overhead += copyUs(graph, model, value) + pieces * model.launchUs();
  for (ValueId value : region.joins)
    overhead += copyUs(graph, model, value) + model.launchUs();
  return more / pieces * std::min(transfers, kernels) - overhead;
}

double shardc::collectives::mostSavedByRingUs(const Graph &graph, const cost::CostModel &model,
                                              const ChunkRegion &region) {
  uint32_t pieces = region.ring->size;
  double before = 0, kernels = 0, hops = 0;
  for (NodeId node : region.nodes) {
    if (graph.isCollective(node)) {
      cost::Group group = graph.group(region.ring->group).shape();
      uint64_t bytes = graph.fullBytes(node);
      before += model.collectiveUs(graph.kindOf(node), group, bytes) + model.launchUs();
      double more = pieces - 1;
      hops += more * model.collectiveUs(CollectiveKind::Permute, group, bytes / pieces);
      kernels += more * model.launchUs();
      if (graph.kindOf(node) == CollectiveKind::ReduceScatter)
        kernels += more * (addUs(graph, model, node, pieces) + model.launchUs());
    } else if (graph.isKernel(node)) {
      before += graph.durationUs(node) + model.launchUs();
      if (region.ring->relays.contains(node))
        continue;
      kernels += pieces * (pieceUs(graph, model, region, node, pieces) + model.launchUs());
    }
  }
  for (auto &[value, cut] : region.cuts)
    if (!cut.contiguous)
      kernels += copyUs(graph, model, value) + pieces * model.launchUs();
  for (ValueId value : region.joins)
    if (!region.ring->sums.contains(value))
      kernels += 2 * (copyUs(graph, model, value) + model.launchUs());
  // Beside the last hop of a gather, and the first of a reduce-scatter, one piece cannot run.
  return before - std::max(kernels, hops + kernels / pieces);
}

namespace {

class Chooser {
public:
  Chooser(const Graph &graph, const cost::CostModel &model, const ChunkOptions &options)
      : graph(graph), model(model), options(options),
        trials(graph, model, options.optimize, options.leastGain) {}

  ChunkDecision run(std::span<const std::vector<ChunkRegion>> alternatives) {
    if (options.pieces || options.ring)
      return takeAll(alternatives);
    bool mayPay = false;
    for (const std::vector<ChunkRegion> &regions : alternatives)
      for (const ChunkRegion &region : regions)
        mayPay |= look(region);
    if (!mayPay)
      return std::move(decision);
    bool isScheduled = trials.begin();
    decision.candidates = trials.count();
    if (!isScheduled) // the scheduler says what is wrong
      return std::move(decision);
    for (const std::vector<ChunkRegion> &regions : alternatives) {
      uint32_t most = areRings(regions) ? 2 : options.most; // the number of ranks is what counts
      for (uint32_t pieces = 2; pieces <= most; pieces *= 2)
        attemptSome(regions, pieces);
    }
    if (std::optional<size_t> best = trials.best())
      decision.choices = std::move(attempted[*best]);
    decision.stepBeforeUs = trials.stepBeforeUs();
    decision.stepAfterUs = trials.stepAfterUs();
    decision.candidates = trials.count();
    return std::move(decision);
  }

private:
  static bool areRings(const std::vector<ChunkRegion> &regions) {
    return !regions.empty() && regions.front().ring;
  }

  /// How many pieces a region is to have if the others have so many.
  static uint32_t piecesOf(const ChunkRegion &region, uint32_t pieces) {
    return region.ring ? region.ring->size : pieces;
  }

  void attemptSome(const std::vector<ChunkRegion> &regions, uint32_t pieces) {
    std::vector<ChunkChoice> all, sure, late;
    for (const ChunkRegion &region : regions) {
      if (!pays(region, pieces))
        continue;
      all.push_back({&region, piecesOf(region, pieces)});
      if (region.ring || mostSavedUs(graph, model, region, pieces, /*withLatency=*/true) > 0)
        sure.push_back(all.back());
      if (isExposed(region))
        late.push_back(all.back());
    }
    attempt(all);
    if (graph.numNodes() > ProgramTrials::largeGraph)
      return;
    if (sure.size() != all.size())
      attempt(sure);
    if (late.size() != all.size())
      attempt(late);
  }

  /// The first alternative in which there is something to take apart.
  ChunkDecision takeAll(std::span<const std::vector<ChunkRegion>> alternatives) {
    for (const std::vector<ChunkRegion> &regions : alternatives) {
      if (areRings(regions) != options.ring)
        continue;
      for (const ChunkRegion &region : regions)
        if (uint32_t pieces = piecesOf(region, options.pieces.value_or(1));
            region.extent % pieces == 0)
          decision.choices.push_back({&region, pieces});
        else
          ++decision.indivisible;
      if (!decision.choices.empty())
        break;
    }
    return std::move(decision);
  }

  bool pays(const ChunkRegion &region, uint32_t pieces) const {
    if (region.ring)
      return mostSavedByRingUs(graph, model, region) > 0;
    return region.extent % pieces == 0 && mostSavedUs(graph, model, region, pieces) > 0;
  }

  /// Counts why not.
  bool look(const ChunkRegion &region) {
    bool divisible = false;
    for (uint32_t pieces = 2; pieces <= options.most; pieces *= 2) {
      divisible |= region.extent % pieces == 0;
      if (pays(region, pieces))
        return true;
    }
    if (!region.ring)
      ++(divisible ? decision.tooCostly : decision.indivisible);
    return false;
  }

  bool isExposed(const ChunkRegion &region) const {
    return std::any_of(region.nodes.begin(), region.nodes.end(), [&](NodeId node) {
      return graph.isCollective(node) &&
             trials.exposedUs(node) >
                 model.latencyUs(graph.kindOf(node), graph.group(graph.groupOf(node)).shape());
    });
  }

  void attempt(const std::vector<ChunkChoice> &choices) {
    if (choices.empty())
      return;
    trials.add(chunkGraph(graph, model, choices).graph);
    attempted.push_back(choices);
  }

  const Graph &graph;
  const cost::CostModel &model;
  const ChunkOptions options;
  ProgramTrials trials;
  /// What the variants of the program take apart.
  std::vector<std::vector<ChunkChoice>> attempted;
  ChunkDecision decision;
};

} // namespace

ChunkDecision
shardc::collectives::chooseChunks(const Graph &graph, const cost::CostModel &model,
                                  std::span<const std::vector<ChunkRegion>> alternatives,
                                  const ChunkOptions &options) {
  return Chooser(graph, model, options).run(alternatives);
}
