// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/gradient/partial/Passes.h"
#include "passes/gradient/partial/Unplace.h"

#include "dialects/dist/Shardings.h"
#include "passes/placement/FunctionGraph.h"
#include "passes/placement/PlaceRest.h"
#include "passes/placement/PlacedParts.h"
#include "passes/placement/core/TensorStates.h"
#include "passes/redistribute/core/Planner.h"

namespace shardc {
#define GEN_PASS_DEF_REWRITEPARTIALGRADIENTS
#include "passes/gradient/partial/Passes.h.inc"
} // namespace shardc

using namespace mlir;

namespace shardc {
namespace {

/// The axes on which a backward redistribution makes a partial value of a gradient that is none.
SmallVector<unsigned> axesMadePartial(dist::RedistributeOp op) {
  SmallVector<unsigned> axes;
  dist::LayoutAttr source = op.getSourceLayout(), target = op.getTargetLayout();
  if (!op.getBackward() || !source || !target)
    return axes;
  // What comes from another mesh is partial on no axis of this one.
  bool oneMesh = source.getMesh() == target.getMesh();
  for (unsigned axis : target.getValue().partialAxes())
    if (!oneMesh || !source.getValue().placements[axis].isPartial())
      axes.push_back(axis);
  return axes;
}

SmallVector<dist::RedistributeOp> findPartialGradients(func::FuncOp function) {
  return llvm::filter_to_vector(
      function.getOps<dist::RedistributeOp>(),
      [](dist::RedistributeOp op) { return !axesMadePartial(op).empty(); });
}

void makeReplicated(dist::RedistributeOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  Layout target = op.getTargetLayout().getValue();
  for (unsigned axis : axesMadePartial(op))
    target = target.with(axis, Placement::replicate());
  auto layout = dist::LayoutAttr::get(op.getContext(), target);
  op.getResult().setType(RankedTensorType::get(type.getShape(), type.getElementType(), layout));
}

/// Placement decides about the axes, and keeps what the target says of the others. Where that is no
/// sharding, they are replicated.
void leaveOpen(dist::RedistributeOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  std::optional<Sharding> wish = exactlyAs(op.getTargetLayout().getValue(), type.getShape());
  if (!wish)
    return makeReplicated(op);
  for (unsigned axis : axesMadePartial(op))
    wish->axes[axis] = AxisSharding();
  op.getResult().setType(RankedTensorType::get(type.getShape(), type.getElementType()));
  op->setDiscardableAttr(
      dist::kShardingAttr,
      ArrayAttr::get(op.getContext(), dist::ShardingAttr::get(op.getContext(), *wish)));
}

/// Bytes that a rank sends in all redistributions.
double bytesOf(func::FuncOp function) {
  double bytes = 0;
  for (auto op : function.getOps<dist::RedistributeOp>()) {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    int64_t elementSize = (type.getElementTypeBitWidth() + 7) / 8;
    bytes += cheapestBytes(op.getSourceLayout().getValue(), op.getTargetLayout().getValue(),
                           type.getShape(), elementSize);
  }
  return bytes;
}

class RewritePartialGradientsPass
    : public impl::RewritePartialGradientsBase<RewritePartialGradientsPass> {
public:
  using RewritePartialGradientsBase::RewritePartialGradientsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || gradients == PartialGradients::Off ||
        findPartialGradients(function).empty())
      return;
    FailureOr<Mesh> mesh = requireMesh(function);
    if (failed(mesh) || failed(checkIsPlaced(function)))
      return signalPassFailure();
    double before = bytesOf(function);
    FailureOr<unsigned> rewritten = gradients == PartialGradients::Replicate
                                        ? rewrite(function, *mesh, makeReplicated)
                                        : rewriteCheapest(function, *mesh);
    if (failed(rewritten))
      return signalPassFailure();
    double after = bytesOf(function);
    numRewritten += *rewritten;
    bytesSaved += static_cast<uint64_t>(std::max(0.0, before - after));
    bytesAdded += static_cast<uint64_t>(std::max(0.0, after - before));
  }

private:
  static LogicalResult checkIsPlaced(func::FuncOp function) {
    for (Operation &op : function.getBody().getOps())
      if (llvm::any_of(op.getResults(), isUnplacedTensor))
        return op.emitOpError("has a result without a layout: gradients are rewritten in placed "
                              "programs; run dist-propagate and dist-place first");
    return success();
  }

  /// Changes each target, and places what follows again. What is placed again may need a change of
  /// its own. A replicated target is never found again, so that the rounds end: as many as there
  /// are redistributions are enough, after which nothing is left open.
  static FailureOr<unsigned> rewrite(func::FuncOp function, const Mesh &mesh,
                                     function_ref<void(dist::RedistributeOp)> change) {
    unsigned rewritten = 0, rounds = 0;
    unsigned enough = llvm::range_size(function.getOps<dist::RedistributeOp>());
    for (auto found = findPartialGradients(function); !found.empty();
         found = findPartialGradients(function)) {
      unplaceFollowers(function, found);
      llvm::for_each(found, rounds++ < enough ? change : makeReplicated);
      if (failed(placeRest(function, mesh)))
        return failure();
      eraseIdleRedistributions(function);
      rewritten += found.size();
    }
    return rewritten;
  }

  /// The cheapest of what is there, replicated gradients, and those that placement chooses.
  static FailureOr<unsigned> rewriteCheapest(func::FuncOp function, const Mesh &mesh) {
    unsigned rewritten = 0;
    double least = bytesOf(function);
    func::FuncOp original = function.clone();
    auto consider = [&](function_ref<void(dist::RedistributeOp)> change) -> LogicalResult {
      OwningOpRef<func::FuncOp> other(original.clone());
      FailureOr<unsigned> count = rewrite(*other, mesh, change);
      if (failed(count))
        return failure();
      if (double bytes = bytesOf(*other); bytes < least) {
        least = bytes;
        rewritten = *count;
        function.getBody().takeBody(other->getBody());
        function.setType(other->getFunctionType());
      }
      return success();
    };
    LogicalResult done = consider(makeReplicated);
    if (succeeded(done))
      done = consider(leaveOpen);
    original.erase();
    return failed(done) ? FailureOr<unsigned>(failure()) : rewritten;
  }
};

} // namespace
} // namespace shardc
