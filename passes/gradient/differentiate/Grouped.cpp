// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of rows with the matrices that they name. All cotangents are such products again, of the
// same rows.

#include "passes/gradient/differentiate/Grouped.h"

#include "dialects/aten/Grouped.h"
#include "dialects/interfaces/TensorView.h"
#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

/// `made` has the rows of `op`.
template <typename Op> Value ofRows(Operation *op, Op made) {
  aten::copyRowParts(op, made);
  return made;
}

/// Each row times its matrix transposed. `op` has these rows.
template <typename Op> Expr timesTransposed(Op op, Expr rows, Expr matrices) {
  return rows.with(ofRows(op, aten::IndexedMmOp::create(
                                  rows.emit->getBuilder(), rows.emit->getLoc(), rows.value,
                                  transpose(matrices, 1, 2).value, op.getIndex(), op.getSorted())));
}

struct IndexedMmGradient : GradientModel<IndexedMmGradient, aten::IndexedMmOp> {
  static LogicalResult run(Derivation &d, aten::IndexedMmOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, timesTransposed(op, grad, d.of(op.getMat2())));
    if (d.needs(1)) {
      SmallVector<int64_t> fixed;
      SmallVector<Value> dynamic;
      splitMixed(d.size(op.getMat2(), 0), fixed, dynamic);
      d.add(1, ofMatrices(d.of(op.getMat2()), d.of(op.getSelf()), grad, op, fixed, dynamic));
    }
    return success();
  }

  /// Where the matrices are the transposes of others (weights that lie as [outputs, inputs]), the
  /// sums are made as those lie.
  static Expr ofMatrices(Expr matrices, Expr rows, Expr columns, aten::IndexedMmOp op,
                         ArrayRef<int64_t> fixed, ValueRange dynamic) {
    std::optional<SmallVector<int64_t>> dims = permutationOf(matrices.value.getDefiningOp());
    bool isTransposed = dims && *dims == ArrayRef<int64_t>({0, 2, 1});
    if (isTransposed)
      std::swap(rows, columns);
    Expr sums =
        rows.with(ofRows(op, aten::IndexedOuterOp::create(
                                 rows.emit->getBuilder(), rows.emit->getLoc(), rows.value,
                                 columns.value, op.getIndex(), fixed, dynamic, op.getSorted())));
    return isTransposed ? transpose(sums, 1, 2) : sums;
  }
};

struct IndexedOuterGradient : GradientModel<IndexedOuterGradient, aten::IndexedOuterOp> {
  static LogicalResult run(Derivation &d, aten::IndexedOuterOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, timesTransposed(op, d.of(op.getOther()), grad));
    if (d.needs(1))
      d.add(1,
            d.of(ofRows(op, aten::IndexedMmOp::create(d.builder, d.emit.getLoc(), op.getSelf(),
                                                      grad.value, op.getIndex(), op.getSorted()))));
    return success();
  }
};

/// Each way undoes the other.
template <typename Op, typename Back>
struct RowsGradient : GradientModel<RowsGradient<Op, Back>, Op> {
  static LogicalResult run(Derivation &d, Op op) {
    if (d.grad() && d.needs(0))
      d.add(0, d.of(Back::create(d.builder, d.emit.getLoc(), d.grad().value, op.getOwner(),
                                 op.getBatches(), op.getParts(), op.getGranule())));
    return success();
  }
};
using DispatchGradient = RowsGradient<aten::DispatchRowsOp, aten::CollectRowsOp>;
using CollectGradient = RowsGradient<aten::CollectRowsOp, aten::DispatchRowsOp>;

} // namespace

void shardc::attachGroupedGradients(MLIRContext *context) {
  aten::DispatchRowsOp::attachInterface<DispatchGradient>(*context);
  aten::CollectRowsOp::attachInterface<CollectGradient>(*context);
  aten::IndexedMmOp::attachInterface<IndexedMmGradient>(*context);
  aten::IndexedOuterOp::attachInterface<IndexedOuterGradient>(*context);
}
