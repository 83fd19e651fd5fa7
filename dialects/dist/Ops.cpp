// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Placement, futures and what a rank knows about itself: verifiers, folds, canonicalisations.

#include "dialects/dist/Dist.h"
#include "dialects/dist/ReadSizesSyntax.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static void printStepName(OpAsmPrinter &printer, Operation *, StepKindAttr step) {
  printer << stepKindName(step.getValue());
}

#define GET_OP_CLASSES
#include "dialects/dist/Ops.cpp.inc"

//===------------------------------------------------------------------------------------------===//
// constrain
//===------------------------------------------------------------------------------------------===//

LogicalResult ConstrainOp::verify() {
  auto type = cast<RankedTensorType>(getInput().getType());
  if (shardc::dist::getLayout(type))
    return emitOpError("is for tensors without a layout, got ") << type;
  return getLayout().verifyAnnotation(type.getShape(), [&] { return emitOpError(); });
}

OpFoldResult ConstrainOp::fold(FoldAdaptor) {
  // One that leaves everything open asks for nothing.
  if (llvm::all_of(getLayout().getValue().placements,
                   [](const Placement &placement) { return placement.isOpen(); }))
    return getInput();
  auto inner = getInput().getDefiningOp<ConstrainOp>();
  if (inner && inner.getLayout() == getLayout())
    return getInput();
  return {};
}

//===------------------------------------------------------------------------------------------===//
// redistribute
//===------------------------------------------------------------------------------------------===//

LogicalResult RedistributeOp::verify() {
  auto source = cast<RankedTensorType>(getInput().getType());
  auto target = cast<RankedTensorType>(getResult().getType());
  auto isUnplaced = [](RankedTensorType type) { return !type.getEncoding(); };
  if ((!getSourceLayout() && !isUnplaced(source)) || (!getTargetLayout() && !isUnplaced(target)))
    return emitOpError("is for layouts, not for other encodings, got ")
           << source << " and " << target;
  if (source.getShape() != target.getShape() || source.getElementType() != target.getElementType())
    return emitOpError("changes only the layout, but shape or element type differ: ")
           << source << " and " << target;
  if (!getStep())
    return success();
  if (!getSourceLayout() || !getTargetLayout())
    return emitOpError("names the step between two layouts, but a side has no layout: ")
           << source << " and " << target;
  std::string why;
  StepKind kind = getStep()->getValue();
  if (!makeStep(kind, getSourceLayout().getValue(), getTargetLayout().getValue(), source.getShape(),
                why))
    return emitOpError("has no step ")
           << std::string(stepKindName(kind)) << " from " << getSourceLayout().getValue().str()
           << " to " << getTargetLayout().getValue().str() << ": "
           << std::string(stepKindName(kind)) << " " << why;
  return success();
}

OpFoldResult RedistributeOp::fold(FoldAdaptor) {
  // Between two that are still to be placed it says that the layout may change here.
  if (getTargetLayout() && getInput().getType() == getResult().getType())
    return getInput();
  return {};
}

namespace {
/// redistribute(redistribute(x : A) : B) : C -> redistribute(x : A) : C. Exact for all layouts,
/// since both are the identity on the global value. Only where B has no other use: the first would
/// stay and its work be done twice. A mixed pair stays, for `backward` speaks about one of the two
/// alone; and so does a planned step.
struct MergeRedistributes : OpRewritePattern<RedistributeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RedistributeOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getInput().getDefiningOp<RedistributeOp>();
    if (!inner || !inner->hasOneUse() || inner.getBackward() != op.getBackward() ||
        inner.getStep() || op.getStep())
      return failure();
    auto fused = rewriter.getFusedLoc({inner.getLoc(), op.getLoc()});
    auto merged = RedistributeOp::create(rewriter, fused, op.getResult().getType(),
                                         inner.getInput(), op.getBackward());
    rewriter.replaceOp(op, merged);
    return success();
  }
};
} // namespace

void RedistributeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                 MLIRContext *context) {
  patterns.add<MergeRedistributes>(context);
}

//===------------------------------------------------------------------------------------------===//
// wait
//===------------------------------------------------------------------------------------------===//

LogicalResult WaitOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands,
                                       DictionaryAttr, OpaqueProperties, RegionRange,
                                       SmallVectorImpl<Type> &types) {
  for (Value future : operands)
    types.push_back(getDeliveredType(future.getType()));
  return success();
}

namespace {
/// A future that is listed twice is waited for once.
struct WaitOnce : OpRewritePattern<WaitOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(WaitOp op, PatternRewriter &rewriter) const override {
    llvm::SmallSetVector<Value, 4> unique(op.getFutures().begin(), op.getFutures().end());
    if (unique.size() == op.getFutures().size())
      return failure();
    auto wait = WaitOp::create(rewriter, op.getLoc(), unique.getArrayRef());
    SmallVector<Value> results;
    for (Value future : op.getFutures())
      results.push_back(wait.getResult(llvm::find(unique, future) - unique.begin()));
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

void WaitOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<WaitOnce>(context);
}

//===------------------------------------------------------------------------------------------===//
// axis_index, extent
//===------------------------------------------------------------------------------------------===//

OpFoldResult AxisIndexOp::fold(FoldAdaptor) {
  if (getGroup().getGroupSize() == 1)
    return IntegerAttr::get(IndexType::get(getContext()), 0);
  return {};
}

OpFoldResult ExtentOp::fold(FoldAdaptor) {
  if (std::optional<int64_t> constant = getExtents().getConstant())
    return IntegerAttr::get(IndexType::get(getContext()), *constant);
  return {};
}

//===------------------------------------------------------------------------------------------===//
// read_sizes
//===------------------------------------------------------------------------------------------===//

ParseResult ReadSizesOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseReadSizes(parser, state);
}
void ReadSizesOp::print(OpAsmPrinter &printer) { printReadSizes(*this, printer); }
LogicalResult ReadSizesOp::verify() { return verifyReadSizes(*this); }

//===------------------------------------------------------------------------------------------===//
// leave_mesh, enter_mesh
//===------------------------------------------------------------------------------------------===//

/// Only the extent may differ: it is known on the ranks of the mesh, and not on others.
template <typename Op> static LogicalResult verifyCrossing(Op op) {
  auto from = cast<RankedTensorType>(op.getInput().getType());
  auto to = cast<RankedTensorType>(op.getResult().getType());
  if (getLayout(from) || getLayout(to))
    return op.emitOpError("is for local tensors, but a type has a layout: ")
           << from << " and " << to;
  if (from.getElementType() != to.getElementType())
    return op.emitOpError("changes no data, but element types differ: ") << from << " and " << to;
  if (!from.isDynamicDim(0) && !to.isDynamicDim(0) && from != to)
    return op.emitOpError("changes no data, but extents differ: ") << from << " and " << to;
  return success();
}

LogicalResult LeaveMeshOp::verify() { return verifyCrossing(*this); }
LogicalResult EnterMeshOp::verify() { return verifyCrossing(*this); }
