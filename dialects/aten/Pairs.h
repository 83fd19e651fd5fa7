// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Complex numbers. The dialect has no complex element type: a complex tensor of shape S is a real
// one of shape S + [2], of pairs (real part, imaginary part). Views, sums, moves between ranks and
// whatever else treats all elements alike are what they are on real tensors; here is the rest.
#ifndef SHARDC_DIALECTS_ATEN_PAIRS_H
#define SHARDC_DIALECTS_ATEN_PAIRS_H

#include "dialects/aten/Emitter.h"

namespace shardc {

/// Of a product of complex matrices: it computes in the element type that they have, whatever
/// products of real ones compute in.
inline constexpr llvm::StringLiteral kOfComplexAttr = "of_complex";

/// Builds operations on pairs. `z` and `w` are pairs, `x` is real; shapes broadcast.
class Pairs {
public:
  explicit Pairs(Emitter &emit) : emit(emit) {}

  mlir::Value real(mlir::Value z) { return part(z, 0); }
  mlir::Value imag(mlir::Value z) { return part(z, 1); }
  /// Of parts of one shape.
  mlir::Value make(mlir::Value real, mlir::Value imag);
  /// x + 0i
  mlir::Value ofReal(mlir::Value x);
  /// A number, as a tensor of shape [2].
  mlir::Value number(double real, double imag, mlir::Type elementType);
  /// A real tensor against pairs: one more dim of size 1.
  mlir::Value beside(mlir::Value x) { return emit.unsqueeze(x, aten::typeOf(x).getRank()); }

  /// A single op on z, which the importer may take for a view.
  mlir::Value conj(mlir::Value z);
  mlir::Value timesI(mlir::Value z);
  mlir::Value mul(mlir::Value z, mlir::Value w);
  mlir::Value scale(mlir::Value z, mlir::Value x) { return emit.mul(z, beside(x)); }
  mlir::Value div(mlir::Value z, mlir::Value w);
  mlir::Value reciprocal(mlir::Value w);
  /// Without overflow where the result has none. The derivative at 0 is 0.
  mlir::Value abs(mlir::Value z);
  mlir::Value angle(mlir::Value z);
  /// Whether z is 0, for each pair.
  mlir::Value isZero(mlir::Value z);

  mlir::Value exp(mlir::Value z);
  mlir::Value log(mlir::Value z);
  mlir::Value sqrt(mlir::Value z);
  mlir::Value sin(mlir::Value z);
  mlir::Value cos(mlir::Value z);
  mlir::Value sinh(mlir::Value z);
  mlir::Value cosh(mlir::Value z);
  mlir::Value tanh(mlir::Value z);
  /// z / |z|, and 0 where z is 0.
  mlir::Value sign(mlir::Value z);
  mlir::Value pow(mlir::Value z, int64_t exponent);
  mlir::Value pow(mlir::Value z, mlir::Value w);

  /// The product of matrices in the last two dims (before that of the pairs), with batch dims in
  /// front: one product of real matrices, where w becomes [[re, im], [-im, re]].
  mlir::Value matmul(mlir::Value z, mlir::Value w);

private:
  mlir::Value part(mlir::Value z, int64_t index);
  mlir::Value constant(double value, mlir::Value like) {
    return emit.scalar(value, aten::elementTypeOf(like));
  }
  mlir::Value neg(mlir::Value x) { return emit.unary<aten::NegOp>(x); }
  /// The larger part of each pair without its sign, as a constant to gradients; 1 where that is 0
  /// or infinite.
  mlir::Value magnitude(mlir::Value z);

  Emitter &emit;
};

} // namespace shardc

#endif // SHARDC_DIALECTS_ATEN_PAIRS_H
