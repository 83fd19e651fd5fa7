// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/FunctionGraph.h"
#include "passes/placement/Passes.h"

#include "dialects/dist/Dist.h"

namespace shardc {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "passes/placement/Passes.h.inc"
} // namespace shardc

using namespace mlir;

namespace shardc {
namespace {

class PropagateShardingsPass : public impl::PropagateShardingsBase<PropagateShardingsPass> {
public:
  using PropagateShardingsBase::PropagateShardingsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return markAllAnalysesPreserved();
    auto &analysis = getAnalysis<PropagationAnalysis>();
    if (!analysis.function)
      return signalPassFailure();
    const Propagation &propagation = analysis.propagation;
    numVisits += propagation.visits;
    if (failed(report(*analysis.function, propagation.remarks, propagation.errors)))
      return signalPassFailure();
    for (auto [id, op] : llvm::enumerate(analysis.function->operations))
      if (op && !isa<dist::ConstrainOp>(op))
        show(*analysis.function, propagation, id, op);
    markAnalysesPreserved<PropagationAnalysis>();
  }

private:
  /// Writes down what was found for the results of an op, if it was anything.
  void show(const FunctionGraph &function, const Propagation &propagation, OpId id, Operation *op) {
    const PropagationGraph &graph = function.graph;
    unsigned axes = graph.numAxes();
    SmallVector<Attribute> layouts;
    bool any = false;
    for (TensorId tensor : graph.results(id)) {
      SmallVector<AxisPlacement> placements;
      for (unsigned a = 0; a < axes; ++a)
        placements.push_back(propagation.states[size_t(tensor) * axes + a].placement);
      std::optional<Layout> layout =
          compose(graph.mesh, graph.shape(tensor), std::span(placements.data(), placements.size()));
      if (!layout)
        return;
      bool sharded = !layout->isFullyReplicated();
      any |= sharded;
      numSharded += sharded;
      for (unsigned a = 0; a < axes; ++a)
        if (placements[a].kind == PlacementKind::Open)
          layout->placements[a] = Placement::open();
      layouts.push_back(dist::LayoutAttr::get(&getContext(), *layout));
    }
    if (any)
      op->setAttr(kPropagatedAttr, ArrayAttr::get(&getContext(), layouts));
  }
};

} // namespace
} // namespace shardc
