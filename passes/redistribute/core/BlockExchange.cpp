// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/redistribute/core/BlockExchange.h"

#include <algorithm>
#include <set>

namespace shardc {

using Block = std::vector<std::vector<Run>>;

// Indices ascend in every shard, so both lists are sorted.
std::vector<Run> localIntersection(std::span<const Run> held, std::span<const Run> wanted) {
  std::vector<Run> common;
  int64_t offset = 0; // local index of the held run's begin
  size_t w = 0;
  for (const Run &run : held) {
    while (w < wanted.size() && wanted[w].end <= run.begin)
      ++w;
    for (size_t i = w; i < wanted.size() && wanted[i].begin < run.end; ++i) {
      Run piece{offset + std::max(run.begin, wanted[i].begin) - run.begin,
                offset + std::min(run.end, wanted[i].end) - run.begin};
      if (!common.empty() && common.back().end == piece.begin)
        common.back().end = piece.end;
      else
        common.push_back(piece);
    }
    offset += run.size();
  }
  return common;
}

int64_t sizeOf(std::span<const Run> runs) {
  int64_t size = 0;
  for (const Run &run : runs)
    size += run.size();
  return size;
}

int64_t numElements(const Block &block) {
  int64_t count = 1;
  for (const std::vector<Run> &runs : block)
    count *= sizeOf(runs);
  return count;
}

int64_t numCommon(const Block &a, const Block &b) {
  int64_t count = 1;
  for (size_t d = 0; d < a.size() && count != 0; ++d)
    count *= sizeOf(localIntersection(a[d], b[d]));
  return count;
}

BlockExchange::BlockExchange(std::vector<HeldBlock> beforeBlocks,
                             std::vector<HeldBlock> afterBlocks)
    : before(std::move(beforeBlocks)), after(std::move(afterBlocks)), cellOf(before.size()) {
  size_t n = before.size(), dims = 0;
  for (size_t p = 0; p < n; ++p)
    dims = std::max(dims,
                    std::max(before[p] ? before[p]->size() : 0, after[p] ? after[p]->size() : 0));
  parts_.resize(dims);
  auto earlier = [](const std::vector<Run> &a, const std::vector<Run> &b) {
    return a.front().begin < b.front().begin;
  };
  for (size_t d = 0; d < dims; ++d) {
    for (const HeldBlock &block : before)
      if (block && !(*block)[d].empty() &&
          std::find(parts_[d].begin(), parts_[d].end(), (*block)[d]) == parts_[d].end())
        parts_[d].push_back((*block)[d]);
    std::sort(parts_[d].begin(), parts_[d].end(), earlier);
  }

  std::vector<std::vector<size_t>> holders;
  size_t numCells = 1;
  for (const auto &parts : parts_)
    numCells *= parts.size();
  holders.resize(numCells);
  for (size_t p = 0; p < n; ++p) {
    if (!before[p] || numElements(*before[p]) == 0)
      continue;
    std::vector<size_t> cell;
    for (size_t d = 0; d < dims; ++d)
      cell.push_back(static_cast<size_t>(
          std::find(parts_[d].begin(), parts_[d].end(), (*before[p])[d]) - parts_[d].begin()));
    cellOf[p] = cellIndex(cell);
    holders[*cellOf[p]].push_back(p);
  }

  sources.assign(n, std::vector<int64_t>(numCells, -1));
  std::vector<int64_t> load(n, 0);
  for (size_t cell = 0; cell < numCells; ++cell) {
    if (holders[cell].empty())
      continue;
    for (size_t to = 0; to < n; ++to) {
      int64_t amount = after[to] ? numCommon(*before[holders[cell].front()], *after[to]) : 0;
      if (amount == 0)
        continue;
      if (cellOf[to] == cell) {
        sources[to][cell] = static_cast<int64_t>(to);
        continue;
      }
      size_t least = *std::min_element(holders[cell].begin(), holders[cell].end(),
                                       [&](size_t a, size_t b) { return load[a] < load[b]; });
      load[least] += amount;
      sources[to][cell] = static_cast<int64_t>(least);
    }
  }
}

size_t BlockExchange::cellIndex(std::span<const size_t> cell) const {
  size_t index = 0;
  for (size_t d = 0; d < cell.size(); ++d)
    index = index * parts_[d].size() + cell[d];
  return index;
}

std::optional<size_t> BlockExchange::source(size_t to, std::span<const size_t> cell) const {
  int64_t from = sources[to][cellIndex(cell)];
  return from < 0 ? std::nullopt : std::optional(static_cast<size_t>(from));
}

std::optional<Block> BlockExchange::message(size_t from, size_t to) const {
  if (!cellOf[from] || sources[to][*cellOf[from]] != static_cast<int64_t>(from))
    return std::nullopt;
  Block common;
  for (size_t d = 0; d < rank(); ++d)
    common.push_back(localIntersection((*before[from])[d], (*after[to])[d]));
  return common;
}

int64_t BlockExchange::messageSize(size_t from, size_t to) const {
  std::optional<Block> sent = message(from, to);
  return sent ? numElements(*sent) : 0;
}

int64_t BlockExchange::largestTraffic() const {
  std::vector<int64_t> sent(size(), 0), received(size(), 0);
  for (size_t from = 0; from < size(); ++from)
    for (size_t to = 0; to < size(); ++to)
      if (from != to) {
        int64_t amount = messageSize(from, to);
        sent[from] += amount;
        received[to] += amount;
      }
  int64_t most = 0;
  for (size_t p = 0; p < size(); ++p)
    most = std::max({most, sent[p], received[p]});
  return most;
}

/// What the device at a position of `mesh` has of the dims of `exchange`.
static HeldBlock blockOf(const StepExchange &exchange, const Layout &layout,
                         std::span<const int64_t> shape, int64_t position) {
  std::optional<Coordinate> at = layout.mesh.coordinateOf(exchange.mesh.rankAtPosition(position));
  if (!at)
    return std::nullopt;
  Block block;
  for (int64_t dim : exchange.dims)
    block.push_back(layout.splitOfDim(dim).runs(shape[dim], *at));
  return block;
}

StepExchange makeExchange(const RedistributeStep &step, std::span<const int64_t> shape) {
  StepExchange result;
  result.dims = exchangedDims(step, shape.size());
  result.mesh = step.before.mesh;
  result.axes = step.axes;
  result.from = step.before.mesh;
  result.to = step.after.mesh;
  if (!(result.from == result.to)) {
    std::set<int64_t> ranks;
    for (const Mesh *mesh : {&result.from, &result.to})
      for (int64_t rank : mesh->ranks())
        ranks.insert(rank);
    result.mesh = Mesh::ofRanks({ranks.begin(), ranks.end()});
    result.axes = {0};
  }
  Mesh byPosition(result.mesh.axes); // without device ids, ranks are positions
  for (std::vector<int64_t> &group : byPosition.groups(result.axes)) {
    std::vector<HeldBlock> before, after;
    for (int64_t position : group) {
      before.push_back(blockOf(result, step.before, shape, position));
      after.push_back(blockOf(result, step.after, shape, position));
    }
    result.groups.push_back({std::move(group), BlockExchange(std::move(before), std::move(after))});
  }
  return result;
}

bool StepExchange::crosses() const {
  return std::any_of(groups.begin(), groups.end(), [](const GroupExchange &group) {
    return group.exchange.largestTraffic() > 0;
  });
}

static bool haveOneSize(const StepExchange &exchange) {
  std::optional<std::vector<int64_t>> first;
  for (const GroupExchange &group : exchange.groups)
    for (size_t p = 0; p < group.exchange.size(); ++p)
      for (const HeldBlock *block :
           {&group.exchange.blockBefore(p), &group.exchange.blockAfter(p)}) {
        std::vector<int64_t> sizes;
        for (size_t i = 0; i < exchange.dims.size(); ++i)
          sizes.push_back(*block ? sizeOf((**block)[i]) : 0);
        if (!first)
          first = sizes;
        if (*first != sizes)
          return false;
      }
  return true;
}

std::optional<std::vector<int64_t>> permutationOf(const StepExchange &step) {
  if (!haveOneSize(step))
    return std::nullopt;
  std::vector<int64_t> pairs;
  for (const GroupExchange &group : step.groups) {
    const BlockExchange &exchange = group.exchange;
    std::vector<int64_t> mine;
    std::vector<bool> sends(exchange.size(), false);
    for (size_t to = 0; to < exchange.size(); ++to) {
      if (!exchange.blockAfter(to))
        return std::nullopt;
      std::optional<size_t> source;
      for (size_t from = 0; from < exchange.size(); ++from)
        if (exchange.messageSize(from, to) == numElements(*exchange.blockAfter(to)))
          source = from;
      if (!source || sends[*source])
        return std::nullopt;
      sends[*source] = true;
      mine.push_back(static_cast<int64_t>(*source));
      mine.push_back(static_cast<int64_t>(to));
    }
    if (&group == &step.groups.front())
      pairs = mine;
    if (pairs != mine)
      return std::nullopt;
  }
  return pairs;
}

bool tellsAllTheSame(const StepExchange &step) {
  if (!(step.from == step.to))
    return false;
  for (const GroupExchange &group : step.groups)
    for (size_t from = 0; from < group.exchange.size(); ++from)
      for (size_t to = 1; to < group.exchange.size(); ++to)
        if (group.exchange.message(from, to) != group.exchange.message(from, 0))
          return false;
  return true;
}

} // namespace shardc
