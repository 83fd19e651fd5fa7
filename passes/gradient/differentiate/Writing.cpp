// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes at positions. What is written over gets no cotangent; of several values that are written
// to one place each gets that of the place, as in PyTorch.

#include "dialects/aten/Writing.h"
#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

struct ScatterDerivation {
  Derivation &d;
  aten::ScatterOp op;

  Expr read(Expr from) {
    return d.of(aten::GatherOp::create(d.builder, d.emit.getLoc(), from.value, op.getDim(),
                                       op.getIndex()));
  }
  Expr scatter(Expr self, Expr src, StringRef reduce) {
    return d.of(aten::ScatterOp::create(d.builder, d.emit.getLoc(), self.value, op.getDim(),
                                        op.getIndex(), src.value, reduce, /*skips=*/false));
  }
  Expr addedUp(Expr self, Expr src) {
    return d.of(aten::ScatterAddOp::create(d.builder, d.emit.getLoc(), self.value, op.getDim(),
                                           op.getIndex(), src.value));
  }

  void ofAssignment() {
    if (d.needs(0))
      d.add(0, scatter(d.grad(), d.zeros(d.sizes(op.getIndex()), d.grad().elementType()), "assign"));
    if (d.needs(2))
      d.add(2, read(d.grad()));
  }

  /// All that are the extreme share its cotangent.
  void ofExtremum() {
    Expr self = d.of(op.getSelf()), src = d.of(op.getSrc()), result = d.result();
    Type type = result.elementType();
    Expr selfCounts = cast(eq(self, result), type), srcCounts = cast(eq(src, read(result)), type);
    Expr share = d.grad() / addedUp(selfCounts, srcCounts);
    d.add(0, selfCounts * share);
    if (d.needs(2))
      d.add(2, srcCounts * read(share));
  }

  void ofProduct() {
    Expr self = d.of(op.getSelf()), src = d.of(op.getSrc()), result = d.result();
    // Without a zero of self: it would hide the other factors.
    Expr filled = where(eq(self, 0), 1, self);
    d.add(0, d.grad() * scatter(filled, src, "prod") / filled);
    if (!d.needs(2))
      return;
    Expr isZero = eq(src, 0);
    Expr zeros = read(addedUp(d.zerosLike(op.getSelf()), cast(isZero, src.elementType())));
    Expr isOnlyZero = logicalAnd(isZero, eq(zeros, 1));
    Expr others = scatter(self, where(isOnlyZero, 1, src), "prod");
    d.add(2, where(isOnlyZero, read(d.grad() * others),
                   read(d.grad() * result) / where(isZero, 1, src)));
  }
};

struct ScatterGradient : GradientModel<ScatterGradient, aten::ScatterOp> {
  static LogicalResult run(Derivation &d, aten::ScatterOp op) {
    if (!d.grad())
      return success();
    if (aten::shapeOf(op.getIndex()) != aten::shapeOf(op.getSrc())) {
      d.refuse() << "needs an index of as many elements as src";
      return failure();
    }
    ScatterDerivation derivation{d, op};
    if (op.getReduce() == "assign")
      derivation.ofAssignment();
    else if (op.getReduce() == "prod")
      derivation.ofProduct();
    else
      derivation.ofExtremum();
    return success();
  }
};

struct IndexWriteGradient : GradientModel<IndexWriteGradient, aten::IndexWriteOp> {
  static LogicalResult run(Derivation &d, aten::IndexWriteOp op) {
    if (!d.grad())
      return success();
    Expr none = d.of(d.emit.scalar(0, d.grad().elementType()));
    if (d.needs(0))
      d.add(0, d.of(aten::IndexWriteOp::create(d.builder, d.emit.getLoc(), d.grad().value,
                                               op.getIndices(), none.value, op.getIndicesAt(),
                                               /*skips=*/false)));
    unsigned values = op.getValuesMutable().getOperandNumber();
    if (d.needs(values))
      d.add(values, d.of(aten::IndexOp::create(d.builder, d.emit.getLoc(), d.grad().value,
                                               op.getIndices(), op.getIndicesAt())));
    return success();
  }
};

} // namespace

void shardc::attachWritingGradients(MLIRContext *context) {
  aten::ScatterOp::attachInterface<ScatterGradient>(*context);
  aten::IndexWriteOp::attachInterface<IndexWriteGradient>(*context);
}
