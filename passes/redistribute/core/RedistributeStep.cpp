// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/redistribute/core/RedistributeStep.h"

#include <algorithm>

namespace shardc {

std::optional<CollectiveKind> collectiveOf(StepKind kind) {
  switch (kind) {
  case StepKind::AllReduce:
    return CollectiveKind::AllReduce;
  case StepKind::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case StepKind::AllGather:
    return CollectiveKind::AllGather;
  case StepKind::AllToAll:
    return CollectiveKind::AllToAll;
  case StepKind::Slice:
  case StepKind::ToPartial:
  case StepKind::ZeroFill:
    break;
  }
  return std::nullopt;
}

std::string stepKindName(StepKind kind) {
  if (std::optional<CollectiveKind> collective = collectiveOf(kind)) {
    std::string name(nameOf(*collective));
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
  }
  return kind == StepKind::Slice       ? "slice"
         : kind == StepKind::ToPartial ? "to-partial"
                                       : "zero-fill";
}

std::string RedistributeStep::str() const {
  std::string text = stepKindName(kind);
  if (kind == StepKind::AllReduce || kind == StepKind::ReduceScatter || kind == StepKind::ToPartial)
    text += " " + std::string(reductionName(reduction));
  if (fromDim >= 0)
    text += " dim " + std::to_string(fromDim);
  if (dim >= 0)
    text += (fromDim >= 0 ? " to dim " : " dim ") + std::to_string(dim);
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i ? ", " : " over ") + before.mesh.axes[axes[i]].name;
  return text + ": " + before.str() + " -> " + after.str();
}

SplitRange splitRange(const Layout &layout, unsigned axis, std::span<const int64_t> shape,
                      int64_t dim, std::span<const int64_t> coordinate) {
  SplitRange range;
  range.n = shape[dim];
  for (const AxisSplit &split : layout.splitOfDim(dim).axes) {
    if (split.axis != axis) {
      range.n = split.extent(range.n, coordinate[split.axis]);
      continue;
    }
    range.blocks = split.blocks;
    for (int64_t r = 0; r < split.count; ++r)
      range.pieces.push_back(split.pieceOfBlock(range.n / split.blocks, r));
    return range;
  }
  range.pieces.push_back({0, range.n});
  return range;
}

double localBytes(const Layout &layout, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options) {
  double bytes = static_cast<double>(elementSize);
  for (size_t d = 0; d < shape.size(); ++d) {
    DimSplit split = layout.splitOfDim(static_cast<int64_t>(d));
    if (shape[d] != kDynamic) {
      bytes *= static_cast<double>(split.maxExtent(shape[d]));
      continue;
    }
    double extent = static_cast<double>(options.assumedDynamicSize);
    for (const AxisSplit &s : split.axes)
      extent /= static_cast<double>(s.count);
    bytes *= extent;
  }
  return bytes;
}

double bytesMoved(const RedistributeStep &step, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options) {
  double n = 1;
  for (unsigned axis : step.axes)
    n *= static_cast<double>(step.before.mesh.axes[axis].size);
  switch (step.kind) {
  case StepKind::AllReduce:
    return 2 * (n - 1) / n * localBytes(step.before, shape, elementSize, options);
  case StepKind::ReduceScatter:
    return (n - 1) / n * localBytes(step.before, shape, elementSize, options);
  case StepKind::AllGather:
    return (n - 1) / n * localBytes(step.after, shape, elementSize, options);
  case StepKind::AllToAll: {
    Layout replicated = step.before.with(step.axis(), Placement::replicate());
    return (n - 1) / (n * n) * localBytes(replicated, shape, elementSize, options);
  }
  case StepKind::Slice:
  case StepKind::ToPartial:
  case StepKind::ZeroFill:
    break;
  }
  return 0;
}

} // namespace shardc
