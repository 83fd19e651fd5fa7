// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/redistribute/core/StepCost.h"

#include "passes/redistribute/core/BlockExchange.h"

#include <algorithm>

namespace shardc {

static std::vector<int64_t> resolve(std::span<const int64_t> shape, const CostOptions &options) {
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  std::replace(sizes.begin(), sizes.end(), kDynamic, options.assumedDynamicSize);
  return sizes;
}

static double localElements(const Layout &layout, std::span<const int64_t> sizes) {
  double count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    count *= static_cast<double>(layout.splitOfDim(static_cast<int64_t>(d)).maxExtent(sizes[d]));
  return count;
}

double localBytes(const Layout &layout, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options) {
  return static_cast<double>(elementSize) * localElements(layout, resolve(shape, options));
}

/// Elements that pass a rank where `sharded` becomes whole over the innermost `count` axes of
/// `dim`, or the other way: all but the smallest piece.
static double gatheredElements(const Layout &sharded, const Layout &whole, int64_t dim,
                               size_t count, std::span<const int64_t> sizes) {
  DimSplit split = sharded.splitOfDim(dim);
  DimSplit inner{{split.axes.end() - static_cast<ptrdiff_t>(count), split.axes.end()}};
  int64_t range = whole.splitOfDim(dim).maxExtent(sizes[dim]);
  if (range == 0)
    return 0;
  int64_t smallest = inner.distinctExtents(range, count).front();
  return localElements(whole, sizes) / static_cast<double>(range) *
         static_cast<double>(range - smallest);
}

static constexpr int64_t kExactDevices = 16, kAllDevices = 64;

namespace {
/// Coordinates to look at: all of a small mesh, else those at the ends of the axes.
class Coordinates {
public:
  explicit Coordinates(const Mesh &mesh) : at(mesh.numAxes(), 0) {
    bool all = mesh.numDevices() <= kAllDevices;
    for (const MeshAxis &axis : mesh.axes) {
      choices.emplace_back();
      for (int64_t i = 0; i < axis.size; ++i)
        if (all || i < 2 || i == axis.size - 1)
          choices.back().push_back(i);
    }
  }
  template <typename F> void forEach(F &&visit, size_t axis = 0) {
    if (axis == at.size())
      return visit(at);
    for (int64_t i : choices[axis]) {
      at[axis] = i;
      forEach(visit, axis + 1);
    }
  }

private:
  std::vector<std::vector<int64_t>> choices;
  Coordinate at;
};
} // namespace

/// The most elements that a rank lacks, and if `sent`, the most that it gives away.
static int64_t missingElements(const Layout &from, const Layout &to, std::span<const int64_t> sizes,
                               bool sent) {
  // A dim that no step touches has the same runs on both sides, and few coordinates matter.
  int64_t most = 0;
  Coordinates(from.mesh).forEach([&](const Coordinate &at) {
    int64_t have = 1, need = 1, common = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      DimSplit before = from.splitOfDim(static_cast<int64_t>(d)),
               after = to.splitOfDim(static_cast<int64_t>(d));
      if (before == after) {
        int64_t extent = before.extent(sizes[d], at);
        have *= extent, need *= extent, common *= extent;
        continue;
      }
      std::vector<Run> held = before.runs(sizes[d], at), wanted = after.runs(sizes[d], at);
      have *= sizeOf(held);
      need *= sizeOf(wanted);
      common *= sizeOf(localIntersection(held, wanted));
    }
    most = std::max(most, need - common);
    if (sent)
      most = std::max(most, have - common);
  });
  return most;
}

static double exchangedElements(const RedistributeStep &step, std::span<const int64_t> sizes) {
  bool oneMesh = step.before.mesh == step.after.mesh;
  bool copies = !oneMesh; // whether a rank may have to send one element twice
  for (unsigned axis : step.axes)
    copies |= !step.before.placements[axis].isShard() || !step.after.placements[axis].isShard();
  if (!copies)
    return static_cast<double>(missingElements(step.before, step.after, sizes, /*sent=*/true));
  if (oneMesh && step.before.mesh.numDevices() > kExactDevices)
    return static_cast<double>(missingElements(step.before, step.after, sizes, /*sent=*/false));
  StepExchange exchange = makeExchange(step, sizes);
  double others = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (std::find(exchange.dims.begin(), exchange.dims.end(), static_cast<int64_t>(d)) ==
        exchange.dims.end())
      others *=
          static_cast<double>(step.before.splitOfDim(static_cast<int64_t>(d)).maxExtent(sizes[d]));
  int64_t most = 0;
  for (const GroupExchange &group : exchange.groups)
    most = std::max(most, group.exchange.largestTraffic());
  return others * static_cast<double>(most);
}

double bytesMoved(const RedistributeStep &step, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options) {
  std::vector<int64_t> sizes = resolve(shape, options);
  double bytes = static_cast<double>(elementSize);
  int64_t n = 1;
  for (unsigned axis : step.axes)
    n *= step.before.mesh.axes[axis].size;
  switch (step.kind) {
  case StepKind::AllReduce:
    return cost::ringBytes(CollectiveKind::AllReduce, bytes * localElements(step.before, sizes), n);
  case StepKind::ReduceScatter:
    return bytes * gatheredElements(step.after, step.before, step.dim, step.axes.size(), sizes);
  case StepKind::AllGather:
    return bytes * gatheredElements(step.before, step.after, step.fromDim, step.axes.size(), sizes);
  case StepKind::AllToAll:
  case StepKind::Exchange:
    return bytes * exchangedElements(step, sizes);
  case StepKind::Slice:
  case StepKind::ToPartial:
  case StepKind::ZeroFill:
    break;
  }
  return 0;
}

double stepUs(const RedistributeStep &step, double bytes, const cost::LinkCosts &links) {
  std::optional<CollectiveKind> kind = collectiveOf(step.kind);
  if (!kind)
    return 0;
  cost::LinkCost link = links.of(*kind, step.axes);
  return link.latencyUs + bytes * link.usPerByte;
}

double missingBytes(const Layout &from, const Layout &to, std::span<const int64_t> shape,
                    int64_t elementSize, const CostOptions &options) {
  return static_cast<double>(elementSize) *
         static_cast<double>(missingElements(from, to, resolve(shape, options), /*sent=*/false));
}

} // namespace shardc
