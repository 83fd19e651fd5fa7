// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/redistribute/core/SymbolicExchange.h"

#include "passes/redistribute/core/BlockExchange.h"

#include <algorithm>
#include <numeric>

namespace shardc {

/// A size of which every rank has some, whatever splits it.
static int64_t typicalSize(const RedistributeStep &step) {
  int64_t size = step.before.mesh.numDevices();
  for (const Layout *layout : {&step.before, &step.after})
    for (const Placement &placement : layout->placements)
      size = std::lcm(size, size * placement.granule);
  return size;
}

SymbolicExchange::SymbolicExchange(const RedistributeStep &step, std::span<const int64_t> shape)
    : dims_(exchangedDims(step, shape.size())) {
  const Mesh byPosition(step.before.mesh.axes); // without device ids, ranks are positions
  groups = byPosition.groups(step.axes);
  groupOf.resize(byPosition.numDevices());
  for (size_t group = 0; group < groups.size(); ++group)
    for (size_t member = 0; member < groups[group].size(); ++member)
      groupOf[groups[group][member]] = {group, member};

  // What a member holds of a dim follows from its coordinates on the group's axes: those outside of
  // them on the dim are the same for all members.
  auto isMember = [&](unsigned axis) {
    return std::find(step.axes.begin(), step.axes.end(), axis) != step.axes.end();
  };
  std::vector<Coordinate> at;
  for (int64_t position : groups.front())
    at.push_back(byPosition.coordinateOfPosition(position));
  parts.assign(size(), std::vector<size_t>(dims_.size(), 0));
  numParts_.assign(dims_.size(), 1);
  for (size_t i = 0; i < dims_.size(); ++i)
    for (const AxisSplit &split : step.before.splitOfDim(dims_[i]).axes) {
      if (!isMember(split.axis))
        continue;
      numParts_[i] *= static_cast<size_t>(split.count);
      for (size_t member = 0; member < size(); ++member)
        parts[member][i] = parts[member][i] * static_cast<size_t>(split.count) +
                           static_cast<size_t>(at[member][split.axis]);
    }

  std::vector<int64_t> typical(shape.begin(), shape.end());
  std::replace(typical.begin(), typical.end(), kDynamic, typicalSize(step));
  const StepExchange known = makeExchange(step, typical);
  const BlockExchange &exchange = known.groups.front().exchange;
  size_t numCells = 1;
  for (size_t count : numParts_)
    numCells *= count;
  sources.assign(size(), std::vector<size_t>(numCells, 0));
  for (size_t to = 0; to < size(); ++to) {
    // Whoever differs from the receiver in nothing but its shard can always send it.
    for (size_t from = 0; from < size(); ++from)
      if (std::all_of(step.axes.begin(), step.axes.end(), [&](unsigned axis) {
            return step.before.placements[axis].isShard() || at[from][axis] == at[to][axis];
          }))
        sources[to][cellIndex(parts[from])] = from;
    for (size_t from = 0; from < size(); ++from)
      if (exchange.message(from, to))
        sources[to][cellIndex(parts[from])] = from;
  }
}

size_t SymbolicExchange::cellIndex(std::span<const size_t> cell) const {
  size_t index = 0;
  for (size_t i = 0; i < cell.size(); ++i)
    index = index * numParts_[i] + cell[i];
  return index;
}

size_t SymbolicExchange::source(size_t to, std::span<const size_t> cell) const {
  return sources[to][cellIndex(cell)];
}

} // namespace shardc
