// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products: operands as matrices with one stride of 1, or copies of them.

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Grouped.h"
#include "dialects/exec/GroupedOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::memory {
namespace {

struct Product {
  HostProgram &program;
  Operation *op;
  IndexMath math;

  Product(HostProgram &program, Operation *op)
      : program(program), op(op), math(program.math(op->getLoc())) {}

  /// Whether BLAS takes the last two dims as a matrix: one stride is 1, the other at least its
  /// extent.
  bool isMatrix(const StridedView &view) {
    size_t rank = view.rank();
    auto ordered = [&](size_t outer, size_t inner) {
      if (!isConstant(view.strides[inner], 1) && !isConstant(view.sizes[inner], 1))
        return false;
      std::optional<int64_t> stride = getConstantIntValue(view.strides[outer]);
      std::optional<int64_t> extent = getConstantIntValue(view.sizes[inner]);
      if (isConstant(view.sizes[outer], 1))
        return true;
      if (!stride || !extent) // row strides of dense buffers are products of sizes
        return !stride || *stride > 0;
      return *stride >= *extent;
    };
    return ordered(rank - 2, rank - 1) || ordered(rank - 1, rank - 2);
  }

  StridedView matrix(const StridedView &view) {
    if (isMatrix(view))
      return view;
    StridedView result = program.allocate(op->getLoc(), view.elementType(), view.sizes);
    program.copy(op->getLoc(), view, result);
    return result;
  }

  /// All dims but the last `keep` as one; a copy where strides cannot express it.
  StridedView flatten(const StridedView &view, size_t keep) {
    return program.reshaped(op->getLoc(), view, flatSizes(view.sizes, keep));
  }
  Sizes flatSizes(const Sizes &from, size_t keep) {
    size_t outer = from.size() - keep;
    Sizes sizes{math.product(ArrayRef<Size>(from).take_front(outer))};
    sizes.append(from.begin() + outer, from.end());
    return sizes;
  }

  /// Memory for the result as `[batch x] m x n`, and what it is copied to in the end if not that
  /// memory.
  LogicalResult emit(StridedView a, StridedView b, std::optional<StridedView> bias,
                     const Sizes &productSizes, double alpha, double beta,
                     std::optional<StridedView> addend) {
    FailureOr<Sizes> sizes = program.resultSizes(op, 0);
    if (failed(sizes))
      return failure();
    Value result = op->getResult(0);
    StridedView target = program.destination(result, *sizes, /*mustBeDense=*/false);
    program.views[result] = target;
    if (hasNoElements(target.sizes))
      return success();
    std::optional<StridedView> c = reshape(math, target, productSizes);
    bool direct =
        c && (isConstant(c->strides.back(), 1) || isConstant(c->sizes.back(), 1)) && isMatrix(*c);
    StridedView place =
        direct ? *c : program.allocate(op->getLoc(), target.elementType(), productSizes);
    if (addend)
      program.copy(op->getLoc(), broadcast(math, *addend, productSizes), place);
    if (bias && !isConstant(bias->strides[0], 1) && !isConstant(bias->sizes[0], 1))
      bias = program.dense(op->getLoc(), *bias);
    exec::GemmOp::create(program.builder, op->getLoc(), toMemref(math, matrix(a)),
                         toMemref(math, matrix(b)), bias ? toMemref(math, *bias) : Value(),
                         toMemref(math, place), llvm::APFloat(alpha), llvm::APFloat(beta),
                         program.builder.getStringAttr(op->getName().stripDialect()));
    if (!direct)
      program.copy(op->getLoc(), denseView(math, place.base, *sizes), target);
    return success();
  }

  LogicalResult linear(aten::LinearOp linear) {
    StridedView input = program.view(linear.getInput());
    StridedView weight = program.view(linear.getWeight());
    if (weight.rank() == 1)
      weight = insertDim(math, weight, 0);
    StridedView a = input.rank() == 1 ? insertDim(math, input, 0) : flatten(input, 1);
    StridedView b = permute(weight, {1, 0});
    std::optional<StridedView> bias;
    if (linear.getBias()) {
      bias = program.view(linear.getBias());
      if (bias->rank() == 0)
        bias = insertDim(math, *bias, 0);
    }
    return emit(a, b, bias, {a.sizes[0], b.sizes[1]}, 1, 0, std::nullopt);
  }

  /// beta * addend + alpha * a b. A vector along the columns is a bias.
  LogicalResult withAddend(Value addendTensor, Value aTensor, Value bTensor, double alpha,
                           double beta) {
    StridedView a = program.view(aTensor), b = program.view(bTensor);
    StridedView addend = program.view(addendTensor);
    Sizes sizes = a.sizes;
    sizes.back() = b.sizes.back();
    if (beta == 0)
      return emit(a, b, std::nullopt, sizes, alpha, 0, std::nullopt);
    bool isRow = addend.rank() >= 1 && sameSize(addend.sizes.back(), sizes.back()) &&
                 llvm::all_of(ArrayRef<Size>(addend.sizes).drop_back(),
                              [](Size size) { return isConstant(size, 1); });
    if (beta == 1 && isRow) {
      while (addend.rank() > 1)
        addend = dropDim(addend, 0);
      return emit(a, b, addend, sizes, alpha, 0, std::nullopt);
    }
    return emit(a, b, std::nullopt, sizes, alpha, beta, addend);
  }

  LogicalResult matmul(aten::MatmulOp matmul) {
    StridedView a = program.view(matmul.getSelf()), b = program.view(matmul.getOther());
    if (a.rank() == 1)
      a = insertDim(math, a, 0);
    if (b.rank() == 1)
      b = insertDim(math, b, 1);
    if (b.rank() == 2 && a.rank() > 2) // rows of all batches against one matrix
      a = flatten(a, 1);
    if (a.rank() == 2 && b.rank() == 2)
      return emit(a, b, std::nullopt, {a.sizes[0], b.sizes[1]}, 1, 0, std::nullopt);
    Sizes batch(a.sizes.begin(), a.sizes.end() - 2), other(b.sizes.begin(), b.sizes.end() - 2);
    if (batch.size() < other.size())
      std::swap(batch, other);
    for (size_t i = 0; i < other.size(); ++i) {
      Size &size = batch[batch.size() - other.size() + i];
      if (isConstant(size, 1))
        size = other[i];
    }
    auto expand = [&](const StridedView &view) {
      Sizes sizes = batch;
      sizes.append(view.sizes.end() - 2, view.sizes.end());
      return flatten(broadcast(math, view, sizes), 2);
    };
    a = expand(a);
    b = expand(b);
    return emit(a, b, std::nullopt, {a.sizes[0], a.sizes[1], b.sizes[2]}, 1, 0, std::nullopt);
  }

  /// Free dims of self by summed ones, times summed dims by free ones of other.
  LogicalResult tensordot(aten::TensordotOp product) {
    auto asMatrix = [&](Value tensor, ArrayRef<int64_t> first, ArrayRef<int64_t> last) {
      SmallVector<int64_t> order(first);
      order.append(last.begin(), last.end());
      StridedView view = permute(program.view(tensor), order);
      ArrayRef<Size> sizes = view.sizes;
      return program.reshaped(op->getLoc(), view,
                              {math.product(sizes.take_front(first.size())),
                               math.product(sizes.drop_front(first.size()))});
    };
    StridedView a = asMatrix(product.getSelf(), product.getFreeDims(0), product.getDimsSelf());
    StridedView b = asMatrix(product.getOther(), product.getDimsOther(), product.getFreeDims(1));
    return emit(a, b, std::nullopt, {a.sizes[0], b.sizes[1]}, 1, 0, std::nullopt);
  }

  /// Rows of `a` by the matrices of `b` that the index names, or sums of outer products.
  LogicalResult grouped(StridedView a, StridedView b, Value index) {
    FailureOr<Sizes> sizes = program.resultSizes(op, 0);
    if (failed(sizes))
      return failure();
    Value result = op->getResult(0);
    StridedView target = program.destination(result, *sizes, /*mustBeDense=*/false);
    program.views[result] = target;
    if (hasNoElements(target.sizes))
      return success();
    bool direct = (isConstant(target.strides.back(), 1) || isConstant(target.sizes.back(), 1)) &&
                  isMatrix(target);
    StridedView place =
        direct ? target : program.allocate(op->getLoc(), target.elementType(), *sizes);
    exec::GroupedGemmOp::create(program.builder, op->getLoc(), toMemref(math, matrix(a)),
                                toMemref(math, matrix(b)), toMemref(math, program.view(index)),
                                toMemref(math, place),
                                program.builder.getStringAttr(op->getName().stripDialect()));
    if (!direct)
      program.copy(op->getLoc(), place, target);
    return success();
  }

  LogicalResult run() {
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case([&](aten::LinearOp op) { return linear(op); })
        .Case([&](aten::MatmulOp op) { return matmul(op); })
        .Case([&](aten::TensordotOp op) { return tensordot(op); })
        .Case<aten::MmOp, aten::BmmOp>([&](auto product) {
          StridedView a = program.view(product.getSelf()), b = program.view(product.getMat2());
          Sizes sizes = a.sizes;
          sizes.back() = b.sizes.back();
          return emit(a, b, std::nullopt, sizes, 1, 0, std::nullopt);
        })
        .Case([&](aten::IndexedMmOp op) {
          return grouped(program.view(op.getSelf()), program.view(op.getMat2()), op.getIndex());
        })
        .Case([&](aten::IndexedOuterOp op) {
          return grouped(permute(program.view(op.getSelf()), {1, 0}), program.view(op.getOther()),
                         op.getIndex());
        })
        .Case([&](aten::AddmmOp op) {
          return withAddend(op.getSelf(), op.getMat1(), op.getMat2(),
                            op.getAlpha().convertToDouble(), op.getBeta().convertToDouble());
        })
        .Case([&](aten::BaddbmmOp op) {
          return withAddend(op.getSelf(), op.getBatch1(), op.getBatch2(),
                            op.getAlpha().convertToDouble(), op.getBeta().convertToDouble());
        })
        .Default([&](Operation *) { return op->emitOpError("is no matrix product"); });
  }
};

} // namespace

LogicalResult lowerProduct(HostProgram &program, Operation *op) {
  return Product(program, op).run();
}

} // namespace shardc::memory
