// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products. The cotangent of a matrix that all batches share is summed over the batches by the
// product itself (tensordot): the batch dims stay apart, so that each may be sharded.

#include "passes/gradient/differentiate/Models.h"

#include "dialects/interfaces/TensorView.h"

using namespace mlir;
using namespace shardc;

namespace {

/// x times the transpose of `weight`.
Expr linear(Expr x, Expr weight) {
  return x.with(aten::LinearOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value,
                                       weight.value, Value()));
}

/// The cotangent of a matrix: `rows` by `columns`, summed over their leading dims. Where the matrix
/// is the transpose of another (a weight that lies as [inputs, outputs]), the product is made as
/// that one lies. The cotangent of the transpose undoes this one, and whoever reads the gradient
/// with the weight, such as an optimizer, reads both in the order of their memory.
Expr ofMatrix(Expr matrix, Expr rows, Expr columns, ArrayRef<int64_t> leading) {
  std::optional<SmallVector<int64_t>> dims = permutationOf(matrix.value.getDefiningOp());
  if (dims && *dims == ArrayRef<int64_t>({1, 0}))
    return transpose(tensordot(columns, rows, leading, leading), 0, 1);
  return tensordot(rows, columns, leading, leading);
}

struct LinearGradient : GradientModel<LinearGradient, aten::LinearOp> {
  static LogicalResult run(Derivation &d, aten::LinearOp op) {
    Expr grad = d.grad(), input = d.of(op.getInput()), weight = d.of(op.getWeight());
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, weight.rank() == 2 ? matmul(grad, weight) : unsqueeze(grad, grad.rank()) * weight);
    if (d.needs(1)) {
      SmallVector<int64_t> batch = dimRange(0, input.rank() - 1);
      d.add(1, weight.rank() == 2 ? ofMatrix(weight, grad, input, batch)
                                  : tensordot(grad, input, batch, batch));
    }
    if (op.getBias() && d.needs(2))
      d.add(2, grad);
    return success();
  }
};

/// lhs times rhs, both of at least two dims, given the cotangent of the product. What a batch dim
/// was repeated along is summed by whoever adds the cotangent.
Expr ofLeft(Expr grad, Expr lhs, Expr rhs) {
  int64_t rank = grad.rank();
  if (lhs.rank() == 2 && rhs.rank() > 2) {
    SmallVector<int64_t> dims = dimRange(0, rank - 2);
    dims.push_back(rank - 1);
    return tensordot(grad, rhs, dims, dims);
  }
  if (rhs.rank() == 2)
    return linear(grad, rhs);
  return matmul(grad, transpose(rhs, rhs.rank() - 2, rhs.rank() - 1));
}

Expr ofRight(Expr grad, Expr lhs, Expr rhs) {
  if (rhs.rank() == 2) {
    SmallVector<int64_t> dims = dimRange(0, lhs.rank() - 1);
    return ofMatrix(rhs, lhs, grad, dims);
  }
  return matmul(transpose(lhs, lhs.rank() - 2, lhs.rank() - 1), grad);
}

struct MatmulGradient : GradientModel<MatmulGradient, aten::MatmulOp> {
  static LogicalResult run(Derivation &d, aten::MatmulOp op) {
    Expr grad = d.grad(), lhs = d.of(op.getSelf()), rhs = d.of(op.getOther());
    if (!grad)
      return success();
    // Vectors are matrices of one row or column.
    bool isRow = lhs.rank() == 1, isColumn = rhs.rank() == 1;
    if (isColumn) {
      rhs = unsqueeze(rhs, 1);
      grad = unsqueeze(grad, grad.rank());
    }
    if (isRow) {
      lhs = unsqueeze(lhs, 0);
      grad = unsqueeze(grad, grad.rank() - 1);
    }
    if (d.needs(0)) {
      Expr left = ofLeft(grad, lhs, rhs);
      d.add(0, isRow ? squeeze(left, left.rank() - 2) : left);
    }
    if (d.needs(1)) {
      Expr right = ofRight(grad, lhs, rhs);
      d.add(1, isColumn ? squeeze(right, right.rank() - 1) : right);
    }
    return success();
  }

  static Expr squeeze(Expr x, int64_t dim) {
    return x.with(
        aten::SqueezeOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, ArrayRef(dim)));
  }
};

/// mm and bmm.
template <typename OpT> struct ProductGradient : GradientModel<ProductGradient<OpT>, OpT> {
  static LogicalResult run(Derivation &d, OpT op) {
    Expr grad = d.grad(), lhs = d.of(op.getSelf()), rhs = d.of(op.getMat2());
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, ofLeft(grad, lhs, rhs));
    if (d.needs(1))
      d.add(1, ofRight(grad, lhs, rhs));
    return success();
  }
};

/// addmm and baddbmm: beta * operand 0 + alpha * operand 1 times operand 2.
template <typename OpT>
struct SumWithProductGradient : GradientModel<SumWithProductGradient<OpT>, OpT> {
  static LogicalResult run(Derivation &d, OpT op) {
    Expr grad = d.grad(), lhs = d.of(op->getOperand(1)), rhs = d.of(op->getOperand(2));
    if (!grad)
      return success();
    double alpha = op.getAlpha().convertToDouble();
    if (d.needs(0))
      d.add(0, grad * op.getBeta().convertToDouble());
    if (d.needs(1))
      d.add(1, ofLeft(grad, lhs, rhs) * alpha);
    if (d.needs(2))
      d.add(2, ofRight(grad, lhs, rhs) * alpha);
    return success();
  }
};

struct TensordotGradient : GradientModel<TensordotGradient, aten::TensordotOp> {
  static LogicalResult run(Derivation &d, aten::TensordotOp op) {
    Expr grad = d.grad(), self = d.of(op.getSelf()), other = d.of(op.getOther());
    if (!grad)
      return success();
    SmallVector<int64_t> freeSelf = op.getFreeDims(0), freeOther = op.getFreeDims(1);
    auto ofSelf = static_cast<int64_t>(freeSelf.size());
    if (d.needs(0)) {
      // [free dims of self, summed dims in the order that they have in other]
      Expr product = tensordot(grad, other, dimRange(ofSelf, grad.rank()), freeOther);
      SmallVector<int64_t> order = freeSelf;
      order.append(inOrderOf(op.getDimsOther(), op.getDimsSelf()));
      d.add(0, backInPlace(product, order));
    }
    if (d.needs(1)) {
      // [summed dims in the order that they have in self, free dims of other]
      Expr product = tensordot(self, grad, freeSelf, dimRange(0, ofSelf));
      SmallVector<int64_t> order = inOrderOf(op.getDimsSelf(), op.getDimsOther());
      order.append(freeOther);
      d.add(1, backInPlace(product, order));
    }
    return success();
  }

  /// `values`, ordered as `keys` ascend.
  static SmallVector<int64_t> inOrderOf(ArrayRef<int64_t> keys, ArrayRef<int64_t> values) {
    SmallVector<std::pair<int64_t, int64_t>> pairs;
    for (auto [key, value] : llvm::zip_equal(keys, values))
      pairs.emplace_back(key, value);
    llvm::sort(pairs);
    return llvm::map_to_vector(pairs, [](auto pair) { return pair.second; });
  }
  /// Dim i of `x` becomes dim `to[i]`.
  static Expr backInPlace(Expr x, ArrayRef<int64_t> to) {
    if (llvm::is_sorted(to))
      return x;
    SmallVector<int64_t> dims(to.size());
    for (auto [from, dim] : llvm::enumerate(to))
      dims[dim] = static_cast<int64_t>(from);
    return x.with(aten::PermuteOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, dims));
  }
};

} // namespace

void shardc::attachContractionGradients(MLIRContext *context) {
  aten::LinearOp::attachInterface<LinearGradient>(*context);
  aten::MatmulOp::attachInterface<MatmulGradient>(*context);
  aten::MmOp::attachInterface<ProductGradient<aten::MmOp>>(*context);
  aten::BmmOp::attachInterface<ProductGradient<aten::BmmOp>>(*context);
  aten::AddmmOp::attachInterface<SumWithProductGradient<aten::AddmmOp>>(*context);
  aten::BaddbmmOp::attachInterface<SumWithProductGradient<aten::BaddbmmOp>>(*context);
  aten::TensordotOp::attachInterface<TensordotGradient>(*context);
}
