// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/redistribute/Passes.h"

#include "dialects/dist/Dist.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/cost/core/TargetDescription.h"
#include "passes/redistribute/AxisLinks.h"
#include "passes/redistribute/core/Planner.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace shardc {
#define GEN_PASS_DEF_PLANREDISTRIBUTIONS
#include "passes/redistribute/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Where the data comes from and where it goes: the redistribution itself, the op that made the
/// value and the first that uses it.
static Location fuseEnds(RedistributeOp op) {
  SmallVector<Location> locations{op.getLoc(), op.getInput().getLoc()};
  for (Operation *user : op->getUsers()) {
    locations.push_back(user->getLoc());
    break;
  }
  return FusedLoc::get(op.getContext(), locations);
}

static int64_t bytesOf(Type elementType) {
  return elementType.isIntOrFloat() ? (elementType.getIntOrFloatBitWidth() + 7) / 8 : 8;
}

/// Says so where a sequence makes more of a tensor whole than its target asks for: that costs bytes
/// and memory which nobody sees in the layouts at both ends.
static void remarkOnDetours(RedistributeOp op, ArrayRef<RedistributeStep> steps,
                            ArrayRef<int64_t> shape, int64_t elementSize) {
  const Layout &target = op.getTargetLayout().getValue();
  for (const RedistributeStep &step : steps) {
    if (step.kind != StepKind::AllGather || !(step.after.mesh == target.mesh))
      continue;
    bool wanted = llvm::all_of(step.axes, [&](unsigned axis) {
      return target.placements[axis].isReplicate() || target.placements[axis].isPartial();
    });
    if (wanted)
      continue;
    op.emitRemark() << "the value of " << describePlace(op.getInput().getLoc())
                    << " is redistributed from " << op.getSourceLayout().getValue().str() << " to "
                    << target.str() << " by way of " << step.after.str() << ": "
                    << static_cast<int64_t>(bytesMoved(step, shape, elementSize))
                    << " bytes a rank to gather it";
  }
}

namespace {

struct PlanRedistributionsPass
    : public shardc::impl::PlanRedistributionsBase<PlanRedistributionsPass> {
  using PlanRedistributionsBase::PlanRedistributionsBase;
  void runOnOperation() override;

private:
  /// A number, or a number for each axis; an error names the option and what is wrong with it. A
  /// name that is no axis is wrong where anything is redistributed.
  FailureOr<AxisNumbers> read(ArrayRef<std::string> entries, StringRef option,
                              ArrayRef<Mesh> meshes) {
    std::string bad;
    std::optional<AxisNumbers> numbers = AxisNumbers::parse(entries, bad);
    if (!numbers)
      return getOperation().emitError()
             << option << ": expected a number, or an axis and a number as in tp=5, got '" << bad
             << "'";
    std::vector<std::string> unknown = numbers->unknown(meshes);
    if (!unknown.empty() && !meshes.empty())
      return getOperation().emitError()
             << option << ": no mesh has an axis named '" << unknown.front() << "'";
    return *numbers;
  }
};

/// What one run of the pass knows.
class Plans {
public:
  Plans(PlannerKind planner, ArrayRef<Mesh> meshes) : planner(planner), meshes(meshes) {}

  std::vector<cost::LinkCosts> links; ///< of the meshes

  /// Models redistribute many tensors in the same way.
  const RedistributePlan &of(RedistributeOp op) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto [entry, isNew] = known.try_emplace({type, op.getResult().getType()});
    if (isNew)
      entry->second = make(op.getSourceLayout().getValue(), op.getTargetLayout().getValue(), type);
    return entry->second;
  }

private:
  PlannerOptions optionsFor(const Mesh &mesh, RankedTensorType type) const {
    PlannerOptions options;
    options.links = links[llvm::find(meshes, mesh) - meshes.begin()];
    options.elementSize = bytesOf(type.getElementType());
    return options;
  }

  RedistributePlan make(const Layout &from, const Layout &to, RankedTensorType type) const {
    ArrayRef<int64_t> shape = type.getShape();
    PlannerOptions options = optionsFor(from.mesh, type);
    if (!(from.mesh == to.mesh))
      return planBetweenMeshes(from, to, shape, options, optionsFor(to.mesh, type));
    return planner == PlannerKind::Greedy ? planGreedily(from, to, shape)
                                          : planCheapest(from, to, shape, options);
  }

  PlannerKind planner;
  ArrayRef<Mesh> meshes;
  DenseMap<std::pair<Type, Type>, RedistributePlan> known;
};

} // namespace

/// Puts an op for each step.
static void applyPlan(RedistributeOp op, ArrayRef<RedistributeStep> steps) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  OpBuilder builder(op);
  Location loc = fuseEnds(op);
  op->setLoc(loc);
  Value value = op.getInput();
  for (auto [i, step] : llvm::enumerate(steps)) {
    auto kind = StepKindAttr::get(builder.getContext(), step.kind);
    if (i + 1 == steps.size()) { // the op itself goes to its own target
      op.setStepAttr(kind);
      break;
    }
    auto layout = LayoutAttr::get(builder.getContext(), step.after);
    auto next = RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    value = RedistributeOp::create(builder, loc, next, value, op.getBackwardAttr(), kind);
  }
  op.getInputMutable().assign(value);
}

void PlanRedistributionsPass::runOnOperation() {
  std::string message;
  std::unique_ptr<cost::CostModel> model = cost::loadModel(topology, message);
  if (!model)
    getOperation().emitError() << "topology: " << StringRef(message).rtrim();

  SmallVector<RedistributeOp> all;
  SmallVector<Mesh> meshes;
  bool complete = true;
  getOperation().walk([&](RedistributeOp op) {
    if (op.getStep())
      return;
    all.push_back(op);
    for (LayoutAttr layout : {op.getSourceLayout(), op.getTargetLayout()})
      if (!layout)
        complete = false;
      else if (!llvm::is_contained(meshes, layout.getValue().mesh))
        meshes.push_back(layout.getValue().mesh);
    if (!op.getSourceLayout() || !op.getTargetLayout())
      op.emitOpError("has a tensor without layout");
  });
  FailureOr<AxisNumbers> latencies = read(latency, "latency", meshes),
                         bandwidths = read(bandwidth, "bandwidth", meshes);
  if (!model || !complete || failed(latencies) || failed(bandwidths))
    return signalPassFailure();

  Plans plans(planner, meshes);
  for (const Mesh &mesh : meshes)
    plans.links.push_back(linksOf(*model, mesh, *latencies, *bandwidths));
  for (RedistributeOp op : all) {
    const RedistributePlan &plan = plans.of(op);
    for (const std::string &error : plan.errors)
      op.emitOpError() << error;
    if (!plan.errors.empty()) {
      signalPassFailure();
      continue;
    }
    auto type = cast<RankedTensorType>(op.getInput().getType());
    remarkOnDetours(op, plan.steps, type.getShape(), bytesOf(type.getElementType()));
    numSteps += plan.steps.size();
    numPlanned += plan.steps.size() > 1;
    numExchanges += llvm::count_if(
        plan.steps, [](const RedistributeStep &step) { return step.kind == StepKind::Exchange; });
    applyPlan(op, plan.steps);
  }
}
