// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/Neighbours.h"

#include "passes/localize/Exchange.h"

#include <set>

using namespace mlir;
using namespace shardc;

WantedRuns shardc::shiftedRuns(const Mesh &mesh, const SplitDim &held, int64_t shift,
                               int64_t size) {
  WantedRuns wanted;
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    std::vector<Run> &runs = wanted.emplace_back();
    for (Run run : held.split.runs(held.size, mesh.coordinateOfPosition(position))) {
      run.begin = std::clamp<int64_t>(run.begin + shift, 0, size);
      run.end = std::clamp<int64_t>(run.end + shift, 0, size);
      if (run.begin < run.end)
        runs.push_back(run);
    }
  }
  return wanted;
}

PartFetcher::PartFetcher(Localizer &localizer, OpBuilder &builder, unsigned operand, Value local)
    : localizer(localizer), builder(builder), operand(operand), value(local),
      sizes(localizer.operandSizes(builder, operand)) {}

void PartFetcher::fetch(int64_t dim, const WantedRuns &wanted, ArrayRef<unsigned> wantedAxes) {
  const Mesh &mesh = localizer.getMesh().getValue();
  SplitDim held = localizer.operandDim(operand, dim);
  std::set<unsigned> axes(wantedAxes.begin(), wantedAxes.end());
  for (const AxisSplit &axis : held.split.axes)
    axes.insert(axis.axis);
  StepExchange exchange{mesh, mesh, mesh, {axes.begin(), axes.end()}, {dim}, {}};
  Mesh byPosition(mesh.axes); // without device ids, ranks are positions
  for (std::vector<int64_t> &group : byPosition.groups(exchange.axes)) {
    std::vector<HeldBlock> before, after;
    for (int64_t position : group) {
      before.push_back({{held.split.runs(held.size, mesh.coordinateOfPosition(position))}});
      after.push_back({{wanted[static_cast<size_t>(position)]}});
    }
    exchange.groups.push_back(
        {std::move(group), BlockExchange(std::move(before), std::move(after))});
  }
  value = emitExchange(builder, localizer.getOp()->getLoc(), exchange, value, sizes);
  SmallVector<int64_t> extents;
  for (const std::vector<Run> &runs : wanted)
    extents.push_back(sizeOf(runs));
  sizes[dim] = getAsOpFoldResult(localizer.indices(builder).table(extents));
}
