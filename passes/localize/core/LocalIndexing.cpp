// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/core/LocalIndexing.h"

#include <algorithm>
#include <numeric>

namespace shardc {

/// Whether `condition(coordinate)` holds at every position.
template <typename Condition> static bool everywhere(const Mesh &mesh, Condition condition) {
  for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p)
    if (!condition(mesh.coordinateOfPosition(p)))
      return false;
  return true;
}

static std::vector<Run> runsOf(const SplitDim &dim, const Coordinate &coordinate) {
  return dim.split.runs(dim.size, coordinate);
}

/// Local index of the first of the progression's elements within `held`, if all are there `step`
/// apart. The progression is start + step * j for the j in `wanted`, ascending.
static std::optional<int64_t> locate(const std::vector<Run> &held, const std::vector<Run> &wanted,
                                     int64_t start, int64_t step) {
  std::optional<int64_t> first;
  int64_t expected = 0; // local index that the next element must have
  size_t at = 0;        // current run of `held`
  int64_t base = 0;     // its first local index
  for (const Run &part : wanted) {
    for (int64_t j = part.begin; j < part.end;) {
      int64_t index = start + step * j;
      while (at < held.size() && held[at].end <= index)
        base += held[at++].size();
      if (at == held.size() || held[at].begin > index)
        return std::nullopt;
      int64_t local = base + index - held[at].begin;
      if (first && local != expected)
        return std::nullopt;
      if (!first)
        first = local;
      int64_t inRun = std::min(part.end - j, ceilDiv(held[at].end - index, step));
      expected = local + step * inRun;
      j += inRun;
    }
  }
  return first.value_or(0);
}

std::optional<std::vector<int64_t>> localSliceStarts(const Mesh &mesh, const SplitDim &input,
                                                     const SplitDim &result, int64_t start,
                                                     int64_t step) {
  std::vector<int64_t> starts;
  bool local = everywhere(mesh, [&](const Coordinate &coordinate) {
    std::optional<int64_t> first =
        locate(runsOf(input, coordinate), runsOf(result, coordinate), start, step);
    starts.push_back(first.value_or(0));
    return first.has_value();
  });
  if (!local)
    return std::nullopt;
  return starts;
}

static void appendRun(std::vector<Run> &runs, Run run) {
  if (run.begin == run.end)
    return;
  if (!runs.empty() && runs.back().end == run.begin)
    runs.back().end = run.end;
  else
    runs.push_back(run);
}

bool isLocalConcatenation(const Mesh &mesh, const std::vector<SplitDim> &inputs,
                          const SplitDim &result) {
  return everywhere(mesh, [&](const Coordinate &coordinate) {
    std::vector<Run> runs;
    int64_t offset = 0;
    for (const SplitDim &input : inputs) {
      for (const Run &run : runsOf(input, coordinate))
        appendRun(runs, {offset + run.begin, offset + run.end});
      offset += input.size;
    }
    return runs == runsOf(result, coordinate);
  });
}

std::vector<Run> linearRuns(const std::vector<SplitDim> &dims,
                            std::span<const int64_t> coordinate) {
  std::vector<Run> runs{{0, 1}};
  for (const SplitDim &dim : dims) {
    std::vector<Run> held = dim.split.runs(dim.size, coordinate), next;
    bool whole = held.size() == 1 && held.front().size() == dim.size;
    for (const Run &run : runs) {
      if (whole) {
        appendRun(next, {run.begin * dim.size, run.end * dim.size});
        continue;
      }
      for (int64_t i = run.begin; i < run.end; ++i)
        for (const Run &part : held)
          appendRun(next, {i * dim.size + part.begin, i * dim.size + part.end});
    }
    runs = std::move(next);
  }
  return runs;
}

bool isLocalView(const Mesh &mesh, const std::vector<SplitDim> &input,
                 const std::vector<SplitDim> &result) {
  return everywhere(mesh, [&](const Coordinate &coordinate) {
    return linearRuns(input, coordinate) == linearRuns(result, coordinate);
  });
}

std::vector<DimGroup> groupViewDims(std::span<const int64_t> input,
                                    std::span<const int64_t> result) {
  std::vector<DimGroup> groups;
  unsigned i = 0, j = 0;
  while (i < input.size() || j < result.size()) {
    DimGroup group{i, i, j, j};
    int64_t left = i < input.size() ? input[i++] : 1;
    int64_t right = j < result.size() ? result[j++] : 1;
    while (left != right && (i < input.size() || j < result.size())) {
      bool growLeft = j == result.size() || (i < input.size() && left < right);
      if (growLeft)
        left *= input[i++];
      else
        right *= result[j++];
    }
    while (i < input.size() && input[i] == 1 && (j == result.size() || result[j] != 1))
      ++i;
    while (j < result.size() && result[j] == 1 && (i == input.size() || input[i] != 1))
      ++j;
    group.inputEnd = i;
    group.resultEnd = j;
    groups.push_back(group);
  }
  return groups;
}

} // namespace shardc
