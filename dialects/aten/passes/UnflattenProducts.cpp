// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/DimOrigins.h"
#include "dialects/aten/Emitter.h"
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

/// The dims that a view merges into dim 0 of a batch of matrices, where their sizes are known.
ArrayRef<int64_t> mergedBatch(Value batch) {
  auto view = batch.getDefiningOp<ViewOp>();
  int64_t count = shapeOf(batch).front(), product = 1;
  if (!view || ShapedType::isDynamic(count) || count == 0)
    return {};
  ArrayRef<int64_t> shape = shapeOf(view.getSelf());
  for (size_t dims = 0; dims < shape.size() && !ShapedType::isDynamic(shape[dims]); ++dims) {
    product *= shape[dims];
    if (product == count)
      return shape.take_front(dims + 1);
  }
  return {};
}

/// The matrices of a batch, by all dims of the batch.
Value byDims(OpBuilder &builder, Location loc, Value batch, ArrayRef<int64_t> dims) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : dims)
    sizes.push_back(builder.getIndexAttr(size));
  for (int64_t size : shapeOf(batch).drop_front())
    sizes.push_back(builder.getIndexAttr(size));
  return Emitter(builder, loc).view(batch.getDefiningOp<ViewOp>().getSelf(), sizes);
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
    SmallVector<BmmOp> batches;
    getOperation().walk([&](BmmOp op) { batches.push_back(op); });
    for (BmmOp op : batches)
      numProducts += rewriteBatch(op);
  }

  /// A batch of batch and heads stays as it is: it is sharded like either. Of more dims, as an
  /// einsum over the positions of an image makes them, several may be sharded.
  static bool rewriteBatch(BmmOp op) {
    constexpr size_t kFewDims = 2;
    ArrayRef<int64_t> dims = mergedBatch(op.getSelf());
    bool isStatic = op.getType().hasStaticShape() && typeOf(op.getSelf()).hasStaticShape() &&
                    typeOf(op.getMat2()).hasStaticShape();
    if (dims.size() <= kFewDims || !isStatic || mergedBatch(op.getMat2()) != dims ||
        op->use_empty())
      return false;
    for (Operation *user : op->getUsers()) {
      auto view = dyn_cast<ViewOp>(user);
      if (!view || shapeOf(view.getResult()).take_front(dims.size()) != dims)
        return false;
    }
    OpBuilder builder(op);
    Value product =
        MatmulOp::create(builder, op.getLoc(), byDims(builder, op.getLoc(), op.getSelf(), dims),
                         byDims(builder, op.getLoc(), op.getMat2(), dims));
    Operation *self = op.getSelf().getDefiningOp(), *other = op.getMat2().getDefiningOp();
    op.getResult().replaceAllUsesWith(product);
    op->erase();
    if (other != self && other->use_empty())
      other->erase();
    if (self->use_empty())
      self->erase();
    return true;
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
