// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/SizeAlgebra.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shardc {

SizeAlgebra::~SizeAlgebra() = default;

Dim SizeAlgebra::compute(Operation operation, Dim a, Dim) {
  return operation == Operation::AsSize ? a : Dim();
}

Dim SizeAlgebra::apply(Operation operation, Dim a, Dim b) {
  return a.isKnown() && b.isKnown() ? compute(operation, a, b) : Dim();
}

Dim SizeAlgebra::add(Dim a, Dim b) {
  if (b.is(0))
    return a;
  if (a.is(0))
    return b;
  int64_t sum = 0;
  if (a.number() && b.number())
    return llvm::AddOverflow(*a.number(), *b.number(), sum) ? Dim() : Dim(sum);
  return apply(Operation::Add, a, b);
}

Dim SizeAlgebra::sub(Dim a, Dim b) {
  if (b.is(0))
    return a;
  int64_t difference = 0;
  if (a.number() && b.number())
    return llvm::SubOverflow(*a.number(), *b.number(), difference) ? Dim() : Dim(difference);
  return apply(Operation::Sub, a, b);
}

Dim SizeAlgebra::mul(Dim a, Dim b) {
  if (b.is(1))
    return a;
  if (a.is(1))
    return b;
  int64_t product = 0;
  if (a.number() && b.number())
    return llvm::MulOverflow(*a.number(), *b.number(), product) ? Dim() : Dim(product);
  return apply(Operation::Mul, a, b);
}

Dim SizeAlgebra::ceilDiv(Dim a, int64_t b) {
  if (b == 1)
    return a;
  if (a.number())
    return llvm::divideCeilSigned(*a.number(), b);
  return apply(Operation::CeilDiv, a, b);
}

Dim SizeAlgebra::min(Dim a, Dim b) {
  if (a.number() && b.number())
    return std::min(*a.number(), *b.number());
  return apply(Operation::Min, a, b);
}

Dim SizeAlgebra::max(Dim a, Dim b) {
  if (a.number() && b.number())
    return std::max(*a.number(), *b.number());
  return apply(Operation::Max, a, b);
}

Dim SizeAlgebra::fromEnd(Dim a, Dim size) {
  if (a.number())
    return *a.number() < 0 ? add(a, size) : a;
  return apply(Operation::FromEnd, a, size);
}

Dim SizeAlgebra::asSize(Dim a) {
  if (a.number())
    return std::max<int64_t>(*a.number(), 0);
  return apply(Operation::AsSize, a, Dim(0));
}

llvm::SmallVector<Dim> StaticSizes::sizesOf(Value tensor) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tensor.getType()).getShape();
  return llvm::SmallVector<Dim>(shape.begin(), shape.end());
}

Dim StaticSizes::valueOf(Value) { return {}; }

} // namespace shardc
