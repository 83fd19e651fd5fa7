// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/Passes.h"
#include "passes/placement/PlacedParts.h"
#include "passes/placement/ShardingAttributes.h"

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
    func::FuncOp entry = getOperation();
    if (entry.isExternal())
      return;
    FailureOr<Mesh> mesh = requireMesh(entry);
    if (failed(mesh))
      return signalPassFailure();
    // What an earlier run left says nothing: annotations do, and what is placed already.
    if (!isHalfPlaced(entry, *mesh))
      removeShardings(entry);
    FailureOr<FunctionGraph> function = buildFunctionGraph(entry, *mesh);
    if (failed(function))
      return signalPassFailure();
    Propagation propagation = propagate(function->graph);
    numVisits += propagation.visits;
    SmallVector<Refusal> errors;
    for (const std::string &error : propagation.errors)
      errors.push_back({kNone, kNone, error});
    if (failed(report(*function, propagation.remarks, errors)))
      return signalPassFailure();
    removeShardings(entry);
    writeShardings(*function, propagation);
    numSharded += countSharded(*function, propagation);
  }

private:
  static unsigned countSharded(const FunctionGraph &function, const Propagation &propagation) {
    unsigned axes = function.graph.numAxes(), count = 0;
    for (OpId op = 0; op < function.graph.ops.size(); ++op)
      if (function.operations[op] && !isa<dist::ConstrainOp>(function.operations[op]))
        for (TensorId tensor : function.graph.results(op))
          count += llvm::any_of(ArrayRef(propagation.states).slice(size_t(tensor) * axes, axes),
                                [](const AxisState &state) { return state.placement.isShard(); });
    return count;
  }
};

} // namespace
} // namespace shardc
