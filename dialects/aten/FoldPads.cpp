// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Zeros around an image that a window slides over are padding of the window: nothing is copied, and
// ranks that have parts of the image exchange rows once.
#include "dialects/aten/Spatial.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// As much before as after each of the last `spatial` dims, in order; nothing where it is
/// otherwise, or other dims are padded.
std::optional<SmallVector<int64_t>> evenWidths(ArrayRef<int64_t> pad, size_t spatial) {
  SmallVector<int64_t> widths(spatial, 0);
  for (size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    int64_t before = pad[2 * i], after = pad[2 * i + 1];
    if (before != after || before < 0 || (before != 0 && i >= spatial))
      return std::nullopt;
    if (i < spatial)
      widths[spatial - 1 - i] = before;
  }
  return widths;
}

template <typename Op> struct FoldZeroPad : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto pad = op->getOperand(0).template getDefiningOp<ConstantPadNdOp>();
    if (!pad || !pad.getValue().isZero())
      return failure();
    Windows windows = op.getWindows();
    std::optional<SmallVector<int64_t>> widths = evenWidths(pad.getPad(), windows.size());
    if (!widths)
      return failure();
    for (auto [width, window] : llvm::zip_equal(*widths, windows))
      width += window.padding;
    rewriter.modifyOpInPlace(op, [&] {
      op->setOperand(0, pad.getSelf());
      op.setPadding(*widths);
    });
    return success();
  }
};

} // namespace

void ConvolutionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldZeroPad<ConvolutionOp>>(context);
}

void WindowsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldZeroPad<WindowsOp>>(context);
}

} // namespace shardc::aten
