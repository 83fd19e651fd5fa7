// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/DimOrigins.h"
#include "dialects/aten/passes/Passes.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENUNFLATTENPRODUCTS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

/// `bias + flat * weight`.
struct Product {
  Value flat, weight, bias; ///< [m, k], [k, n], and [n] or null
};

std::optional<Product> matchProduct(Operation *op) {
  if (auto mm = dyn_cast<MmOp>(op))
    return Product{mm.getSelf(), mm.getMat2(), Value()};
  auto addmm = dyn_cast<AddmmOp>(op);
  if (!addmm || addmm.getBeta().convertToDouble() != 1 || addmm.getAlpha().convertToDouble() != 1)
    return std::nullopt;
  // A bias of one element, or one for each row, is no bias of a linear layer.
  if (shapeOf(addmm.getSelf()) != shapeOf(addmm.getMat2()).drop_front() ||
      ShapedType::isDynamic(shapeOf(addmm.getSelf()).front()))
    return std::nullopt;
  return Product{addmm.getMat1(), addmm.getMat2(), addmm.getSelf()};
}

/// What a view made [m, k] of by merging all dims but the last.
Value unflattened(Value flat) {
  auto view = flat.getDefiningOp<ViewOp>();
  if (!view)
    return nullptr;
  ArrayRef<int64_t> shape = shapeOf(view.getSelf());
  // With no elements, leading dims could be any.
  bool keepsLast = shape.size() > 2 && shape.back() == shapeOf(flat).back() &&
                   !ShapedType::isDynamic(shape.back()) && shape.back() != 0;
  return keepsLast ? view.getSelf() : Value();
}

/// Whether the view gives [m, n] the leading dims of `x`.
bool restoresDims(ViewOp view, Value x, DimSizes &sizes) {
  ArrayRef<int64_t> shape = shapeOf(view.getResult()), wanted = shapeOf(x);
  if (shape.size() != wanted.size() || shape.back() != shapeOf(view.getSelf()).back() ||
      ShapedType::isDynamic(shape.back()) || shape.drop_back() != wanted.drop_back())
    return false;
  for (int64_t dim = 0, end = static_cast<int64_t>(shape.size()) - 1; dim < end; ++dim)
    if (!(sizes.of(view.getResult(), dim) == sizes.of(x, dim)))
      return false;
  return true;
}

Value transposed(OpBuilder &builder, Location loc, Value weight) {
  if (auto transpose = weight.getDefiningOp<TransposeOp>())
    if (transpose.getDim0() != transpose.getDim1())
      return transpose.getSelf();
  return PermuteOp::create(builder, loc, weight, SmallVector<int64_t>{1, 0});
}

struct UnflattenProducts : impl::AtenUnflattenProductsBase<UnflattenProducts> {
  void runOnOperation() override {
    DimSizes sizes;
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<MmOp, AddmmOp>(op))
        products.push_back(op);
    });
    for (Operation *op : products)
      numProducts += rewrite(op, sizes);
  }

  bool rewrite(Operation *op, DimSizes &sizes) {
    std::optional<Product> product = matchProduct(op);
    Value x = product ? unflattened(product->flat) : Value();
    if (!x || op->use_empty())
      return false;
    SmallVector<ViewOp> views;
    for (Operation *user : op->getUsers()) {
      auto view = dyn_cast<ViewOp>(user);
      if (!view || !restoresDims(view, x, sizes))
        return false;
      views.push_back(view);
    }
    OpBuilder builder(op);
    Value weight = transposed(builder, op->getLoc(), product->weight);
    auto linear =
        LinearOp::create(builder, op->getLoc(), views.front().getType(), x, weight, product->bias);
    for (ViewOp view : views) {
      view.replaceAllUsesWith(linear.getResult());
      view.erase();
    }
    Operation *flat = product->flat.getDefiningOp();
    op->erase();
    if (flat->use_empty())
      flat->erase();
    return true;
  }
};

} // namespace
} // namespace shardc::aten
