// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions. The number of elements of a mean is that of the whole tensor (G6).

#include "dialects/interfaces/FewUsers.h"
#include "passes/gradient/differentiate/Models.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

namespace {

/// The reduced dims, and cotangent and result of a reduction with those dims as size 1.
template <typename OpT> struct Reduced {
  SmallVector<int64_t> dims;
  Expr self, grad;

  Reduced(Derivation &d, OpT op) : self(d.of(op.getSelf())) {
    dims = allOrThese(op.getDim(), self.rank());
    if (std::optional<Type> type = castType(op))
      self = cast(self, *type);
    if (!d.grad())
      return;
    grad = restored(d.grad(), op.getKeepdim());
    kept = op.getKeepdim();
    reduced = d.result();
  }

  /// The result, made when it is asked for.
  Expr result() const { return restored(reduced, kept); }

  static std::optional<Type> castType(OpT op) {
    if constexpr (requires { op.getDtype(); })
      return op.getDtype();
    else
      return std::nullopt;
  }

private:
  /// One element meets all others as it is.
  Expr restored(Expr x, bool keepdim) const {
    return x.rank() == 0 ? x : restoreDims(x, dims, keepdim);
  }

  Expr reduced;
  bool kept = false;
};

Expr repeated(Derivation &d, Expr grad, Value like) {
  return d.of(d.emit.full(d.sizes(like), grad.value));
}

struct SumGradient : GradientModel<SumGradient, aten::SumOp> {
  static LogicalResult run(Derivation &d, aten::SumOp op) {
    if (Reduced r(d, op); r.grad)
      d.add(0, repeated(d, r.grad, op.getSelf()));
    return success();
  }
};

struct MeanGradient : GradientModel<MeanGradient, aten::MeanOp> {
  static LogicalResult run(Derivation &d, aten::MeanOp op) {
    if (Reduced r(d, op); r.grad)
      d.add(0, repeated(d, r.grad / d.count(op.getSelf(), r.dims, r.grad.elementType()),
                        op.getSelf()));
    return success();
  }
};

/// A product of elements of which none is 0 is divided by each. With one 0, only that element
/// counts; with several, none does.
struct ProdGradient : GradientModel<ProdGradient, aten::ProdOp> {
  static LogicalResult run(Derivation &d, aten::ProdOp op) {
    Reduced r(d, op);
    if (!r.grad)
      return success();
    Expr isZero = eq(r.self, 0), others = where(isZero, 1, r.self);
    Expr zeros = sum(cast(isZero, r.self.elementType()), r.dims, /*keepdim=*/true);
    Expr product = d.of(aten::ProdOp::create(d.builder, d.emit.getLoc(), others.value,
                                             op.getDimAttr(), /*keepdim=*/true, TypeAttr()));
    if (r.dims.empty())
      product = others;
    Expr ofZero = where(eq(zeros, 1), product, 0);
    Expr ofOther = where(eq(zeros, 0), product / others, 0);
    d.add(0, r.grad * where(isZero, ofZero, ofOther));
    return success();
  }
};

/// Equal elements share the cotangent.
template <typename OpT> struct ExtremumGradient : GradientModel<ExtremumGradient<OpT>, OpT> {
  static LogicalResult run(Derivation &d, OpT op) {
    Reduced<OpT> r(d, op);
    if (!r.grad)
      return success();
    Expr isIt = cast(eq(r.self, r.result()), r.self.elementType());
    d.add(0, isIt * (r.grad / sum(isIt, r.dims, /*keepdim=*/true)));
    return success();
  }
};

struct LogsumexpGradient : GradientModel<LogsumexpGradient, aten::LogsumexpOp> {
  static LogicalResult run(Derivation &d, aten::LogsumexpOp op) {
    Reduced r(d, op);
    if (!r.grad)
      return success();
    d.add(0, r.grad * exp(r.self - r.result()));
    return success();
  }
};

struct VarGradient : GradientModel<VarGradient, aten::VarOp> {
  /// The mean of the same elements that the program has already, as a batch norm in training does.
  static Expr meanOf(Derivation &d, aten::VarOp op, const Reduced<aten::VarOp> &r) {
    if (!hasFewUsers(op.getSelf()))
      return mean(r.self, r.dims);
    for (Operation *user : op.getSelf().getUsers()) {
      auto found = dyn_cast<aten::MeanOp>(user);
      if (found && found.getDim() == op.getDim() && found->getBlock() == op->getBlock() &&
          found->isBeforeInBlock(op) &&
          aten::elementTypeOf(found.getResult()) == r.self.elementType()) {
        Expr mean = d.of(found.getResult());
        return mean.rank() == 0 ? mean : restoreDims(mean, r.dims, found.getKeepdim());
      }
    }
    return mean(r.self, r.dims);
  }

  static LogicalResult run(Derivation &d, aten::VarOp op) {
    Reduced r(d, op);
    if (!r.grad)
      return success();
    Type type = r.grad.elementType();
    Expr degrees = d.count(op.getSelf(), r.dims, type) - op.getCorrection().convertToDouble();
    d.add(0, (r.self - meanOf(d, op, r)) * (r.grad * (2.0 / degrees)));
    return success();
  }
};

struct VectorNormGradient : GradientModel<VectorNormGradient, aten::VectorNormOp> {
  /// A number of elements that are not 0 has no gradient in PyTorch.
  bool stopsGradient(Operation *op) const { return cast<aten::VectorNormOp>(op).getOrd().isZero(); }

  static LogicalResult run(Derivation &d, aten::VectorNormOp op) {
    Reduced r(d, op);
    double ord = op.getOrd().convertToDouble();
    if (!r.grad)
      return success();
    if (ord == 1) {
      d.add(0, r.grad * sign(r.self));
    } else if (std::isinf(ord)) {
      Expr isIt = cast(eq(abs(r.self), r.result()), r.self.elementType());
      d.add(0, sign(r.self) * isIt * (r.grad / sum(isIt, r.dims, /*keepdim=*/true)));
    } else if (ord == 2) {
      d.add(0, where(eq(r.result(), 0), 0, r.self * (r.grad / r.result())));
    } else {
      // sign(x) |x|^(p-1) / norm^(p-1); a power below 0 of an element that is 0 does not count.
      Expr power = sign(r.self) * pow(abs(r.self), ord - 1);
      if (ord < 1)
        power = where(eq(r.self, 0), 0, power);
      d.add(0, where(eq(r.result(), 0), 0, power * (r.grad / pow(r.result(), ord - 1))));
    }
    return success();
  }
};

} // namespace

void shardc::attachReductionGradients(MLIRContext *context) {
  aten::SumOp::attachInterface<SumGradient>(*context);
  aten::MeanOp::attachInterface<MeanGradient>(*context);
  aten::ProdOp::attachInterface<ProdGradient>(*context);
  aten::AmaxOp::attachInterface<ExtremumGradient<aten::AmaxOp>>(*context);
  aten::AminOp::attachInterface<ExtremumGradient<aten::AminOp>>(*context);
  aten::LogsumexpOp::attachInterface<LogsumexpGradient>(*context);
  aten::VarOp::attachInterface<VarGradient>(*context);
  aten::VectorNormOp::attachInterface<VectorNormGradient>(*context);
}
