// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/redistribute/Passes.h"

#include "dialects/dist/Dist.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/redistribute/core/RedistributeStep.h"

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

/// Whether `next` goes on where `step` ends, with the same kind of step along the same dim:
/// together they are one collective over the product of their groups. Its pieces are listed by
/// position, so they may be uneven; they must be known, and a piece must be one interval.
static bool isOneCollective(const RedistributeStep &step, const RedistributeStep &next,
                            ArrayRef<int64_t> shape) {
  bool gathers = step.kind == StepKind::AllGather && next.kind == step.kind;
  bool scatters = step.kind == StepKind::ReduceScatter && next.kind == step.kind &&
                  step.reduction == next.reduction;
  if (!gathers && !scatters)
    return false;
  int64_t dim = gathers ? step.fromDim : step.dim;
  const Layout &sharded = gathers ? step.before : next.after;
  auto isPlain = [&](unsigned axis) {
    return sharded.placements[axis].isShard(dim) && sharded.placements[axis].blocks == 1;
  };
  return !ShapedType::isDynamic(shape[dim]) && llvm::all_of(step.axes, isPlain) &&
         llvm::all_of(next.axes, isPlain);
}

/// The layouts that a value takes on its way, the last one included.
static SmallVector<Layout> layoutsOnTheWay(ArrayRef<RedistributeStep> steps,
                                           ArrayRef<int64_t> shape) {
  SmallVector<Layout> layouts;
  for (size_t i = 0; i < steps.size(); ++i)
    if (i + 1 == steps.size() || !isOneCollective(steps[i], steps[i + 1], shape))
      layouts.push_back(steps[i].after);
  return layouts;
}

/// Says so where a sequence makes more of a tensor whole than its target asks for: that costs bytes
/// and memory which nobody sees in the layouts at both ends.
static void remarkOnDetours(RedistributeOp op, ArrayRef<RedistributeStep> steps,
                            ArrayRef<int64_t> shape, int64_t elementSize) {
  const Layout &target = op.getTargetLayout().getValue();
  for (const RedistributeStep &step : steps) {
    bool wanted = llvm::all_of(step.axes, [&](unsigned axis) {
      return target.placements[axis].isReplicate() || target.placements[axis].isPartial();
    });
    if (step.kind != StepKind::AllGather || wanted)
      continue;
    op.emitRemark() << "the value of " << describePlace(op.getInput().getLoc())
                    << " is redistributed from " << op.getSourceLayout().getValue().str() << " to "
                    << target.str() << " by way of " << step.after.str() << ": "
                    << static_cast<int64_t>(bytesMoved(step, shape, elementSize))
                    << " bytes a rank to gather it";
  }
}

namespace {

class PlanRedistributionsPass
    : public shardc::impl::PlanRedistributionsBase<PlanRedistributionsPass> {
public:
  using PlanRedistributionsBase::PlanRedistributionsBase;

  void runOnOperation() override {
    SmallVector<RedistributeOp> all;
    getOperation().walk([&](RedistributeOp op) { all.push_back(op); });
    bool allPlanned = true;
    for (RedistributeOp op : all)
      allPlanned &= succeeded(plan(op));
    if (!allPlanned)
      signalPassFailure();
  }

private:
  LogicalResult plan(RedistributeOp op) {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    LayoutAttr from = op.getSourceLayout(), to = op.getTargetLayout();
    if (!from || !to)
      return op.emitOpError("has a tensor without layout");
    RedistributePlan plan = planRedistribution(from.getValue(), to.getValue(), type.getShape());
    for (const std::string &error : plan.errors)
      op.emitOpError() << error;
    if (!plan.errors.empty())
      return failure();
    remarkOnDetours(op, plan.steps, type.getShape(), bytesOf(type.getElementType()));
    SmallVector<Layout> layouts = layoutsOnTheWay(plan.steps, type.getShape());
    numSteps += layouts.size();
    numPlanned += layouts.size() > 1;

    OpBuilder builder(op);
    Location loc = fuseEnds(op);
    op->setLoc(loc);
    Value value = op.getInput();
    if (!layouts.empty())
      layouts.pop_back(); // the op itself goes to its own target
    for (const Layout &after : layouts) {
      auto layout = LayoutAttr::get(builder.getContext(), after);
      auto next = RankedTensorType::get(type.getShape(), type.getElementType(), layout);
      value = RedistributeOp::create(builder, loc, next, value, op.getBackward());
    }
    op.getInputMutable().assign(value);
    return success();
  }
};

} // namespace
