// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/core/ChunkRegions.h"

#include "passes/collectives/chunk/core/TrimRegion.h"

using namespace shardc;
using namespace shardc::collectives;

ChunkRules::~ChunkRules() = default;

double shardc::collectives::copyUs(const Graph &graph, const cost::CostModel &model,
                                   ValueId value) {
  return model.memoryUs(2.0 * static_cast<double>(graph.bytesOf(value)));
}

namespace {

/// What becomes of rows in a node.
struct Followed {
  std::vector<RowBlocks> results;
  std::vector<std::pair<ValueId, RowBlocks>> cuts;
};

/// How often a region may find that its rows are blocks of rows.
constexpr int maxAttempts = 4;

class Finder {
public:
  Finder(const Graph &graph, const ChunkRules &rules, const cost::CostModel &model, ChunkDim along)
      : graph(graph), rules(rules), model(model), along(along), users(graph.numValues()),
        returned(graph.numValues()), overwritten(graph.numValues()), taken(graph.numNodes()),
        knownRules(graph.numNodes()) {
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      for (ValueId operand : graph.operands(node))
        if (users[operand].empty() || users[operand].back() != node)
          users[operand].push_back(node);
      if (graph.classOf(node) == NodeClass::InPlace)
        for (ValueId operand : graph.operands(node))
          overwritten[graph.rootOf(operand)] = true;
    }
    for (ValueId value : graph.graphOutputs())
      returned[value] = true;
  }

  std::vector<ChunkRegion> run() {
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      if (taken[node])
        continue;
      if (graph.isCollective(node) && graph.kindOf(node) == CollectiveKind::AllGather)
        growFromGather(node);
      else if (isProduct(node))
        growFromProduct(node);
    }
    return std::move(regions);
  }

private:
  bool isProduct(NodeId node) const { return graph.isKernel(node) && rules.rowOperandOf(node); }

  void growFromGather(NodeId node) {
    std::optional<unsigned> dim = rules.dimOf(node);
    if (!dim)
      return;
    ValueId operand = graph.operands(node)[0];
    std::vector<int64_t> shape = rules.shapeOf(operand);
    std::optional<ChunkRegion> best;
    for (unsigned i = 0; i != shape.size(); ++i)
      if ((i == *dim) == (along != ChunkDim::Other))
        takeBetter(best, grow(node, operand, i, shape[i]));
    if (best)
      commit(std::move(*best));
  }

  void growFromProduct(NodeId node) {
    ValueId operand = graph.operands(node)[*rules.rowOperandOf(node)];
    std::vector<int64_t> shape = rules.shapeOf(operand);
    std::optional<ChunkRegion> best;
    for (unsigned dim = 0; dim != shape.size(); ++dim)
      takeBetter(best, grow(node, operand, dim, shape[dim]));
    if (best)
      commit(std::move(*best));
    // What is downstream of here has been looked at.
    taken[node] = true;
  }

  /// The one with more collectives, or else with more rows.
  static void takeBetter(std::optional<ChunkRegion> &best, std::optional<ChunkRegion> other) {
    auto worth = [](const ChunkRegion &region) {
      return std::pair(region.collectives, region.extent);
    };
    if (other && (!best || worth(*best) < worth(*other)))
      best = std::move(other);
  }

  void commit(ChunkRegion best) {
    for (NodeId node : best.nodes)
      taken[node] = true;
    regions.push_back(std::move(best));
  }

  std::optional<ChunkRegion> grow(NodeId seed, ValueId operand, unsigned dim, int64_t size) {
    if (fruitless.contains({operand, dim}))
      return std::nullopt;
    uint64_t blocks = 1;
    seedOfRing = along == ChunkDim::Ring && graph.isCollective(seed) ? seed : none;
    if (seedOfRing != none)
      size *= graph.group(graph.groupOf(seed)).size;
    // A reduce-scatter or a view may say that the rows are some blocks, and another one more.
    for (int attempt = 0; attempt != maxAttempts; ++attempt) {
      if (size <= 1 || static_cast<uint64_t>(size) % blocks != 0)
        return std::nullopt;
      region = {};
      relays.clear();
      region.extent = static_cast<uint64_t>(size) / blocks;
      wantedBlocks = 1;
      if (region.extent <= 1 || overwritten[graph.rootOf(operand)] ||
          graph.pendingOf(operand) != none)
        return std::nullopt;
      if (seedOfRing == none)
        region.cuts[operand] = cutOf(operand, {dim, blocks, 1});
      follow(seed);
      if (wantedBlocks == 1)
        break;
      blocks *= wantedBlocks;
    }
    if (wantedBlocks != 1 || !finish()) {
      for (auto &[value, rows] : region.made)
        fruitless.insert({value, rows.dim});
      return std::nullopt;
    }
    return std::move(region);
  }

  void follow(NodeId seed) {
    std::set<NodeId> next = {seed};
    while (!next.empty() && wantedBlocks == 1) {
      NodeId node = *next.begin();
      next.erase(next.begin());
      if (NodeId concat = followRelay(node); concat != none) {
        region.nodes.insert(region.nodes.end(), {node, concat});
        ValueId whole = graph.results(concat)[0];
        next.insert(users[whole].begin(), users[whole].end());
        continue;
      }
      std::optional<Followed> followed = followInto(node);
      if (!followed)
        continue;
      region.nodes.push_back(node);
      for (auto &[value, rows] : followed->cuts)
        region.cuts.emplace(value, cutOf(value, rows));
      for (size_t i = 0; i != followed->results.size(); ++i) {
        ValueId result = graph.results(node)[i];
        region.made[result] = followed->results[i];
        // What a ring delivers is for others.
        if (!isSum(result) || graph.pendingOf(result) != none)
          next.insert(users[result].begin(), users[result].end());
      }
    }
  }

  RowCut cutOf(ValueId value, const RowBlocks &rows) const {
    std::vector<int64_t> shape = rules.shapeOf(value);
    bool isFirst = std::all_of(shape.begin(), shape.begin() + rows.dim,
                               [](int64_t size) { return size == 1; });
    return {rows, rows.outer == 1 && isFirst};
  }

  const RowBlocks *rowsOfValue(ValueId value) const {
    if (auto it = region.made.find(value); it != region.made.end())
      return &it->second;
    auto it = region.cuts.find(value);
    return it == region.cuts.end() ? nullptr : &it->second.rows;
  }

  std::optional<Followed> followInto(NodeId node) {
    if (taken[node] || !graph.scalarResults(node).empty() || graph.operands(node).empty())
      return std::nullopt;
    for (ValueId result : graph.results(node))
      if (overwritten[graph.rootOf(result)])
        return std::nullopt;
    switch (graph.classOf(node)) {
    case NodeClass::Wait:
      return followWait(node);
    case NodeClass::Collective:
      return followCollective(node);
    case NodeClass::Compute:
    case NodeClass::Alias:
      return followRule(node);
    default:
      return std::nullopt;
    }
  }

  std::optional<Followed> followWait(NodeId node) {
    Followed followed;
    for (size_t i = 0; i != graph.operands(node).size(); ++i) {
      auto it = region.made.find(graph.operands(node)[i]);
      if (it == region.made.end())
        return std::nullopt;
      followed.results.push_back(it->second);
      if (isSum(it->first))
        region.ring->sums.insert(graph.results(node)[i]);
    }
    return followed;
  }

  bool isSum(ValueId value) const { return region.ring && region.ring->sums.contains(value); }

  /// Whether a collective may be in the ring of the region, or begin one.
  bool mayBeInRing(NodeId node) const {
    GroupId id = graph.groupOf(node);
    const Group &group = graph.group(id);
    return graph.operands(node).size() == 1 && rules.dimOf(node) && group.size >= 2 &&
           !group.ranks.empty() && (!region.ring || region.ring->group == id) &&
           (node == seedOfRing || (graph.kindOf(node) == CollectiveKind::ReduceScatter &&
                                   region.extent % group.size == 0 && rules.mayAddInTurn(node)));
  }

  /// The one dim along which a tensor is `count` of others, for a node that only rearranges them.
  std::optional<unsigned> dimOfParts(NodeId node, ValueId whole, ValueId part, size_t count) {
    const std::optional<ShardingRule> &rule = ruleOf(node);
    std::vector<int64_t> from = rules.shapeOf(whole), to = rules.shapeOf(part);
    if (!rule || !rule->movesDataOnly || count < 2 || from.size() != to.size())
      return std::nullopt;
    std::optional<unsigned> dim;
    for (unsigned i = 0; i != from.size(); ++i)
      if (from[i] != to[i]) {
        if (dim || from[i] != to[i] * static_cast<int64_t>(count))
          return std::nullopt;
        dim = i;
      }
    return dim;
  }

  /// The node that concatenates what this one splits a tensor into, in order, if nothing else reads
  /// that.
  NodeId concatOf(NodeId split) const {
    NodeId concat = none;
    for (ValueId part : graph.results(split)) {
      if (users[part].size() != 1 || returned[part] || (concat != none && users[part][0] != concat))
        return none;
      concat = users[part][0];
    }
    if (concat == none || taken[concat] || graph.results(concat).size() != 1 ||
        overwritten[graph.rootOf(graph.results(concat)[0])] ||
        !std::ranges::equal(graph.operands(concat), graph.results(split)))
      return none;
    return concat;
  }

  /// A split into shares and their concatenation, behind a gather or before a reduce-scatter.
  /// Returns the second one, with its result in the region; `none` if this is something else.
  NodeId followRelay(NodeId split) {
    size_t shares = graph.results(split).size();
    if (along != ChunkDim::Ring || graph.operands(split).size() != 1 || shares < 2 || taken[split])
      return none;
    ValueId from = graph.operands(split)[0];
    const RowBlocks *rows = rowsOfValue(from);
    NodeId concat = concatOf(split);
    if (concat == none || !rows || rows->outer != 1 || isSum(from) ||
        dimOfParts(split, from, graph.results(split)[0], shares) != rows->dim)
      return none;
    ValueId to = graph.results(concat)[0];
    std::optional<unsigned> dim = dimOfParts(concat, to, graph.results(split)[0], shares);
    if (!dim)
      return none;
    NodeId source = graph.producerOf(from);
    bool isGathered = seedOfRing != none && source != none &&
                      graph.classOf(source) == NodeClass::Wait &&
                      graph.pendingOf(graph.operands(source)[0]) == seedOfRing;
    if (isGathered) {
      // Rows are those of the new dim from here on.
      if (users[from].size() != 1 || returned[from] || shares != region.ring->size)
        return none;
      region.extent = static_cast<uint64_t>(rules.shapeOf(to)[*dim]);
    } else {
      NodeId scatter = users[to].size() == 1 && !returned[to] ? users[to][0] : none;
      if (scatter == none || !graph.isCollective(scatter) || !mayBeInRing(scatter) ||
          rules.dimOf(scatter) != dim || shares != graph.group(graph.groupOf(scatter)).size)
        return none;
    }
    region.made[to] = {*dim, 1, 1};
    relays[split] = none;
    relays[concat] = from;
    return concat;
  }

  /// All of one group: its ranks send to one another in turn.
  std::optional<Followed> followRing(NodeId node) {
    if (!mayBeInRing(node))
      return std::nullopt;
    RowBlocks rows{*rules.dimOf(node), 1, 1};
    if (node != seedOfRing) {
      const RowBlocks &sent = *rowsOfValue(graph.operands(node)[0]);
      if (sent.dim != rows.dim || sent.outer != 1)
        return std::nullopt;
      rows = sent;
    }
    if (!region.ring) {
      GroupId id = graph.groupOf(node);
      region.ring = ChunkRing{id, graph.group(id).size, {}, {}};
    }
    if (node != seedOfRing)
      region.ring->sums.insert(graph.results(node)[0]);
    return Followed{{rows}, {}};
  }

  std::optional<Followed> followCollective(NodeId node) {
    if (graph.operands(node).size() != 1 || graph.results(node).size() != 1 ||
        !rules.isDivisible(node))
      return std::nullopt;
    if (along == ChunkDim::Ring)
      return followRing(node);
    ValueId operand = graph.operands(node)[0];
    RowBlocks rows = *rowsOfValue(operand);
    uint64_t size = graph.group(graph.groupOf(node)).size;
    switch (graph.kindOf(node)) {
    case CollectiveKind::AllReduce:
      if (graph.isInPlace(graph.results(node)[0]) && !region.made.contains(operand))
        return std::nullopt;
      return Followed{{rows}, {}};
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
      break;
    default:
      return std::nullopt;
    }
    std::optional<unsigned> dim = rules.dimOf(node);
    if (!dim)
      return std::nullopt;
    if (*dim != rows.dim)
      return Followed{{rows}, {}};
    if (along == ChunkDim::Other)
      return std::nullopt;
    if (graph.kindOf(node) == CollectiveKind::AllGather) {
      rows.outer *= size;
    } else if (rows.outer % size == 0) {
      rows.outer /= size;
    } else {
      if (region.extent % size == 0)
        wantedBlocks = size;
      return std::nullopt;
    }
    return Followed{{rows}, {}};
  }

  /// A node may be looked at from several seeds.
  const std::optional<ShardingRule> &ruleOf(NodeId node) {
    if (!knownRules[node])
      knownRules[node] = rules.ruleOf(node);
    return *knownRules[node];
  }

  std::optional<Followed> followRule(NodeId node) {
    const std::optional<ShardingRule> &rule = ruleOf(node);
    std::span<const ValueId> operands = graph.operands(node), results = graph.results(node);
    if (!rule || rule->operands.size() != operands.size() || rule->results.size() != results.size())
      return std::nullopt;
    if (isProduct(node) && !rowsOfValue(operands[*rules.rowOperandOf(node)]))
      return std::nullopt;
    std::optional<RowFactor> factor;
    for (size_t i = 0; i != operands.size(); ++i)
      if (const RowBlocks *rows = rowsOfValue(operands[i])) {
        if (isSum(operands[i]))
          return std::nullopt;
        std::optional<RowFactor> of = rowFactorOf(*rule, rule->operands[i], *rows, region.extent);
        // The blocks of a ring are those that are gathered.
        if (!of && !region.ring)
          wantedBlocks = moreBlocks(*rule, rule->operands[i], *rows, region.extent);
        if (!of || (factor && *factor != *of))
          return std::nullopt;
        factor = of;
      }
    if (!factor || rule->factors[factor->factor].kind != FactorKind::Parallel ||
        rule->factors[factor->factor].inOnePiece)
      return std::nullopt;
    Followed followed;
    for (size_t i = 0; i != operands.size(); ++i) {
      if (!hasFactor(rule->operands[i], factor->factor))
        continue;
      std::optional<RowBlocks> rows = rowsInFactor(*rule, rule->operands[i], *factor);
      const RowBlocks *known = rowsOfValue(operands[i]);
      if (!rows || (known && *known != *rows))
        return std::nullopt;
      if (known)
        continue;
      if (graph.pendingOf(operands[i]) != none || overwritten[graph.rootOf(operands[i])])
        return std::nullopt;
      followed.cuts.push_back({operands[i], *rows});
    }
    for (size_t i = 0; i != results.size(); ++i) {
      std::optional<RowBlocks> rows = rowsInFactor(*rule, rule->results[i], *factor);
      if (!rows)
        return std::nullopt;
      followed.results.push_back(*rows);
    }
    return followed;
  }

  /// What the wait for a value delivers, if the value is in flight, read inside only and returned.
  ValueId deliveryOf(ValueId value, const std::set<NodeId> &inside) const {
    ValueId delivered = none;
    for (NodeId user : users[value]) {
      if (!inside.contains(user))
        return none;
      if (graph.classOf(user) == NodeClass::Wait)
        for (size_t i = 0; i != graph.operands(user).size(); ++i)
          if (graph.operands(user)[i] == value)
            delivered = graph.results(user)[i];
    }
    return delivered;
  }

  /// Completes the region. Returns whether it is one.
  bool finish() {
    if (std::none_of(region.nodes.begin(), region.nodes.end(),
                     [&](NodeId node) { return graph.isCollective(node); }) ||
        std::none_of(region.nodes.begin(), region.nodes.end(),
                     [&](NodeId node) { return isProduct(node); }))
      return false;
    if (region.ring)
      region.ring->relays = relays;
    RegionTrimmer trimmer(graph, rules, model, users, returned, region);
    std::set<NodeId> inside = trimmer.run();
    std::map<ValueId, RowCut> cuts;
    region.nodes.assign(inside.begin(), inside.end());
    for (NodeId node : region.nodes) {
      region.collectives += graph.isCollective(node);
      region.products += isProduct(node);
      for (ValueId operand : graph.operands(node))
        if (auto it = region.cuts.find(operand); it != region.cuts.end())
          cuts.insert(*it);
      for (ValueId result : graph.results(node)) {
        if (!trimmer.isUsedOutside(result, inside))
          continue;
        // Nobody can put together what is on its way.
        ValueId whole = graph.pendingOf(result) == none ? result : deliveryOf(result, inside);
        if (whole == none)
          return false;
        if (whole != result)
          region.delivered[result] = whole;
        region.joins.push_back(whole);
      }
    }
    std::sort(region.joins.begin(), region.joins.end());
    region.joins.erase(std::unique(region.joins.begin(), region.joins.end()), region.joins.end());
    if (region.collectives == 0 || region.products == 0)
      return false;
    region.cuts = std::move(cuts);
    std::erase_if(region.made, [&](const auto &entry) {
      return !inside.contains(graph.producerOf(entry.first));
    });
    return true;
  }

  const Graph &graph;
  const ChunkRules &rules;
  const cost::CostModel &model;
  ChunkDim along;
  std::vector<std::vector<NodeId>> users;
  std::vector<bool> returned, overwritten, taken;
  /// From where nothing was found, along which dim: each part of a program is followed once.
  std::set<std::pair<ValueId, unsigned>> fruitless;
  std::vector<std::optional<std::optional<ShardingRule>>> knownRules;
  ChunkRegion region;
  /// Of the region, which may not be a ring yet: ChunkRing::relays.
  std::map<NodeId, ValueId> relays;
  /// The gather that a ring begins with, if it does.
  NodeId seedOfRing = none;
  uint64_t wantedBlocks = 1;
  std::vector<ChunkRegion> regions;
};

} // namespace

std::vector<ChunkRegion> shardc::collectives::findChunkRegions(const Graph &graph,
                                                               const ChunkRules &rules,
                                                               const cost::CostModel &model,
                                                               ChunkDim along) {
  return Finder(graph, rules, model, along).run();
}

std::vector<std::vector<ChunkRegion>>
shardc::collectives::findChunkRegions(const Graph &graph, const ChunkRules &rules,
                                      const cost::CostModel &model) {
  std::vector<std::vector<ChunkRegion>> alternatives;
  for (ChunkDim along : {ChunkDim::Gathered, ChunkDim::Other})
    alternatives.push_back(findChunkRegions(graph, rules, model, along));
  if (model.supports(CollectiveKind::Permute))
    alternatives.push_back(findChunkRegions(graph, rules, model, ChunkDim::Ring));
  return alternatives;
}
