// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/Passes.h"
#include "passes/placement/PlaceRest.h"
#include "passes/placement/ShardingAttributes.h"
#include "passes/placement/core/Place.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/SignatureAttributes.h"

namespace shardc {
#define GEN_PASS_DEF_PLACETENSORS
#include "passes/placement/Passes.h.inc"
} // namespace shardc

using namespace mlir;

namespace shardc {
namespace {

/// Writes the core's decisions into the types of a function.
class Placer {
public:
  Placer(func::FuncOp function, const FunctionGraph &source, const PlacedGraph &placed)
      : function(function), source(source), graph(source.graph), placed(placed) {
    for (const Layout &layout : placed.layouts)
      layouts.push_back(dist::LayoutAttr::get(function.getContext(), layout));
  }

  /// Number of redistributions inserted.
  unsigned run() {
    auto replicated = dist::LayoutAttr::get(function.getContext(), Layout(graph.mesh));
    for (Value value : source.invariant) {
      auto type = cast<RankedTensorType>(value.getType());
      value.setType(RankedTensorType::get(type.getShape(), type.getElementType(), replicated));
    }
    for (auto [value, tensor] : source.tensorOf)
      if (!graph.finalLayout(tensor))
        setLayout(value, placed.tensorLayouts[tensor]);
    for (auto [id, op] : llvm::enumerate(source.operations)) {
      auto redistribute = dyn_cast_or_null<dist::RedistributeOp>(op);
      if (redistribute && !graph.operands(id).empty()) // else it comes from another mesh
        reuse(id, redistribute);
      else
        op ? placeOperands(id, op) : placeOutput(id);
    }
    for (dist::RedistributeOp op : replaced)
      op.erase();
    for (dist::ConstrainOp constraint : constraints) {
      constraint.replaceAllUsesWith(constraint.getInput());
      constraint.erase();
    }
    updateFunction();
    return inserted;
  }

private:
  RankedTensorType withLayout(Type type, LayoutId layout) const {
    auto tensor = cast<RankedTensorType>(type);
    return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layouts[layout]);
  }
  void setLayout(Value value, LayoutId layout) {
    value.setType(withLayout(value.getType(), layout));
  }

  /// The tensor in another layout: made once, where it is first needed, and used by all that need
  /// it.
  Value inLayout(TensorId tensor, LayoutId layout, Operation *user) {
    Value standIn = standIns.lookup(tensor), value = standIn ? standIn : source.values[tensor];
    if (placed.tensorLayouts[tensor] == layout)
      return value;
    Value &copy = redistributed[{tensor, layout}];
    if (!copy) {
      OpBuilder builder(user);
      copy = dist::RedistributeOp::create(
          builder, builder.getFusedLoc({value.getLoc(), user->getLoc()}),
          withLayout(value.getType(), layout), value, /*backward=*/false);
      ++inserted;
    }
    return copy;
  }

  /// A redistribution that the program has already is the copy for all that need its layout. One
  /// that was still to be placed goes where a user before it needed the same.
  void reuse(OpId id, dist::RedistributeOp op) {
    TensorId tensor = graph.operands(id)[0];
    Value &copy = redistributed[{tensor, placed.operandLayouts[graph.ops[id].firstOperand]}];
    if (!copy) {
      copy = op.getResult();
    } else if (!graph.finalLayout(tensor) || !graph.finalLayout(graph.results(id)[0])) {
      auto made = copy.getDefiningOp<dist::RedistributeOp>();
      made.setBackward(made.getBackward() || op.getBackward());
      op.getResult().replaceAllUsesWith(copy);
      standIns[graph.results(id)[0]] = copy;
      replaced.push_back(op);
    }
  }

  void placeOperands(OpId id, Operation *op) {
    for (auto [i, number] : llvm::enumerate(source.operandNumbers[id])) {
      TensorId tensor = graph.operands(id)[i];
      LayoutId layout = placed.operandLayouts[graph.ops[id].firstOperand + i];
      op->setOperand(number, inLayout(tensor, layout, op));
    }
    if (auto constraint = dyn_cast<dist::ConstrainOp>(op))
      constraints.push_back(constraint);
  }

  void placeOutput(OpId id) {
    // Outputs come in order of their numbers; some are not placed.
    while (source.outputs[nextOutput] != graph.results(id).front())
      ++nextOutput;
    unsigned number = nextOutput++;
    Operation *end = function.getBody().front().getTerminator();
    TensorId tensor = graph.operands(id).front();
    LayoutId layout = placed.operandLayouts[graph.ops[id].firstOperand];
    end->setOperand(number, inLayout(tensor, layout, end));
  }

  void updateFunction() {
    dist::SignatureAttributes signature(function);
    auto drop = [](NamedAttrList &attributes) {
      for (StringRef name : {dist::kAnnotationAttr, dist::kOriginAttr, dist::kStrengthAttr})
        attributes.erase(name);
    };
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      drop(signature.argument(i));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      drop(signature.result(i));
    signature.store();
    function.setType(
        FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(),
                          function.getBody().front().getTerminator()->getOperandTypes()));
  }

  func::FuncOp function;
  const FunctionGraph &source;
  const PropagationGraph &graph;
  const PlacedGraph &placed;
  std::vector<dist::LayoutAttr> layouts;
  llvm::DenseMap<std::pair<TensorId, LayoutId>, Value> redistributed;
  /// What the users of a redistribution that was replaced get in its place.
  llvm::DenseMap<TensorId, Value> standIns;
  SmallVector<dist::ConstrainOp> constraints;
  SmallVector<dist::RedistributeOp> replaced;
  unsigned inserted = 0;
  unsigned nextOutput = 0;
};

class PlaceTensorsPass : public impl::PlaceTensorsBase<PlaceTensorsPass> {
public:
  using PlaceTensorsBase::PlaceTensorsBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    FailureOr<Mesh> mesh = requireMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    FailureOr<FunctionGraph> function = buildFunctionGraph(getOperation(), *mesh);
    if (failed(function))
      return signalPassFailure();
    FailureOr<Propagation> propagation = readShardings(*function);
    if (failed(propagation))
      return signalPassFailure();
    PlacedGraph placed = place(function->graph, *propagation);
    if (!preferences)
      llvm::erase_if(placed.remarks,
                     [](const Remark &r) { return r.kind == Remark::Kind::Unfollowed; });
    if (failed(report(*function, placed.remarks, placed.errors)))
      return signalPassFailure();
    removeShardings(getOperation());
    numRounds += placed.delayRounds;
    numRedistributions += Placer(getOperation(), *function, placed).run();
  }
};

} // namespace

LogicalResult placeRest(func::FuncOp function, const Mesh &mesh) {
  FailureOr<FunctionGraph> source = buildFunctionGraph(function, mesh);
  if (failed(source))
    return failure();
  PlacedGraph placed = placeGraph(source->graph);
  if (failed(report(*source, {}, placed.errors)))
    return failure();
  removeShardings(function);
  Placer(function, *source, placed).run();
  return success();
}

} // namespace shardc
