// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/attention/BlockChain.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Emitter.h"

#include "mlir/IR/IRMapping.h"

#include <numeric>

using namespace mlir;
using namespace shardc;

static ArrayRef<int64_t> shapeOfValue(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The dim of `from` that is dim `dim` of `to`: of the same size, and with as many elements in
/// front of it, or, which is the same, behind it. Sizes that are not known say nothing.
static std::optional<int64_t> sameDim(ArrayRef<int64_t> from, ArrayRef<int64_t> to, int64_t dim) {
  auto count = [](ArrayRef<int64_t> sizes) -> std::optional<int64_t> {
    if (ShapedType::isDynamicShape(sizes))
      return std::nullopt;
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  std::optional<int64_t> inFront = count(to.take_front(dim)),
                         behind = count(to.drop_front(dim + 1));
  if (ShapedType::isDynamic(to[dim]))
    return std::nullopt;
  for (int64_t at = 0, rank = static_cast<int64_t>(from.size()); at < rank; ++at)
    if (from[at] == to[dim] && ((inFront && count(from.take_front(at)) == inFront) ||
                                (behind && count(from.drop_front(at + 1)) == behind)))
      return at;
  return std::nullopt;
}

std::optional<int64_t> shardc::dimBefore(Operation *op, int64_t dim) {
  if (isa<aten::CloneOp, aten::AliasOp, aten::ToCopyOp>(op))
    return dim;
  if (auto transpose = dyn_cast<aten::TransposeOp>(op)) {
    auto a = static_cast<int64_t>(transpose.getDim0()),
         b = static_cast<int64_t>(transpose.getDim1());
    return dim == a ? b : dim == b ? a : dim;
  }
  if (auto permute = dyn_cast<aten::PermuteOp>(op))
    return permute.getDims()[dim];
  if (auto unsqueeze = dyn_cast<aten::UnsqueezeOp>(op)) {
    auto at = static_cast<int64_t>(unsqueeze.getDim());
    return dim == at ? std::nullopt : std::optional<int64_t>(dim - (dim > at));
  }
  if (auto slice = dyn_cast<aten::SliceOp>(op))
    return static_cast<int64_t>(slice.getDim()) == dim ? std::nullopt : std::optional(dim);
  if (auto select = dyn_cast<aten::SelectOp>(op))
    return dim + (dim >= static_cast<int64_t>(select.getDim()));
  if (isa<aten::ExpandOp>(op)) {
    ArrayRef<int64_t> from = shapeOfValue(op->getOperand(0)), to = shapeOfValue(op->getResult(0));
    int64_t at = dim - static_cast<int64_t>(to.size() - from.size());
    bool isKept = at >= 0 && from[at] == to[dim] && !ShapedType::isDynamic(to[dim]);
    return isKept ? std::optional(at) : std::nullopt;
  }
  if (isa<aten::ViewOp>(op))
    return sameDim(shapeOfValue(op->getOperand(0)), shapeOfValue(op->getResult(0)), dim);
  return std::nullopt;
}

BlockChain BlockChain::to(Value value, int64_t dim) {
  BlockChain chain{value, dim, {}};
  while (Operation *op = chain.source.getDefiningOp()) {
    std::optional<int64_t> before = dimBefore(op, chain.sourceDim);
    if (!before)
      break;
    chain.views.push_back({op, chain.sourceDim});
    chain.source = op->getOperand(0);
    chain.sourceDim = *before;
  }
  std::reverse(chain.views.begin(), chain.views.end());
  return chain;
}

Value BlockChain::apply(OpBuilder &builder, Value block, OpFoldResult length, int64_t fixed) const {
  for (auto [op, dim] : views) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = fixed;
    Emitter emit(builder, op->getLoc());
    auto withLength = [&](SmallVector<OpFoldResult> sizes) {
      sizes[dim] = length;
      return sizes;
    };
    if (auto view = dyn_cast<aten::ViewOp>(op)) {
      block = emit.view(block, withLength(view.getMixedSize()));
    } else if (auto expand = dyn_cast<aten::ExpandOp>(op)) {
      SmallVector<int64_t> sizes;
      SmallVector<Value> dynamic;
      splitMixed(withLength(expand.getMixedSize()), sizes, dynamic);
      block = aten::ExpandOp::create(builder, op->getLoc(), block, sizes, dynamic);
    } else {
      IRMapping mapping;
      mapping.map(op->getOperand(0), block);
      block = builder.clone(*op, mapping)->getResult(0);
    }
    block.setType(RankedTensorType::get(shape, type.getElementType()));
  }
  return block;
}
