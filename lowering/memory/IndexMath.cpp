// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace shardc::memory {
namespace {

/// An op on these operands, made once.
template <typename Op> Value makeOp(const IndexMath &math, Size a, Size b) {
  Value left = math.value(a), right = math.value(b);
  OpBuilder detached(math.builder.getContext());
  OwningOpRef<Op> op = Op::create(detached, math.loc, left, right);
  return math.values.clone(math.builder, *op, {left, right});
}

/// The value of a polynomial that was computed before, else a new op. (One of many terms is not
/// followed; the same op on the same operands is one all the same.)
template <typename Op>
Size make(const IndexMath &math, Size a, Size b, const std::optional<Polynomial> &polynomial) {
  if (polynomial)
    if (std::optional<int64_t> constant = polynomial->constant())
      return math.constant(*constant);
  if (polynomial)
    if (std::optional<Size> known = math.values.find(*polynomial))
      return *known;
  if (!polynomial)
    return makeOp<Op>(math, a, b);
  Value result = Op::create(math.builder, math.loc, math.value(a), math.value(b)).getResult();
  math.values.note(result, *polynomial);
  return result;
}

/// An op that is no polynomial: made once for the same operands. Its result is not negative where
/// neither operand is.
template <typename Op> Size makeOnce(const IndexMath &math, Size a, Size b) {
  bool nonNegative = math.isNonNegative(a) && math.isNonNegative(b);
  Value result = makeOp<Op>(math, a, b);
  if (nonNegative)
    math.values.noteNonNegative(result);
  return result;
}

} // namespace

Value IndexMath::value(Size size) const {
  return getValueOrCreateConstantIndexOp(builder, loc, size);
}

Value IndexMath::constantValue(int64_t value) const {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Size IndexMath::add(Size a, Size b) const {
  return make<arith::AddIOp>(*this, a, b, Polynomial::add(values.of(a), values.of(b)));
}

Size IndexMath::sub(Size a, Size b) const {
  return make<arith::SubIOp>(*this, a, b, Polynomial::add(values.of(a), values.of(b), -1));
}

Size IndexMath::mul(Size a, Size b) const {
  return make<arith::MulIOp>(*this, a, b, Polynomial::multiply(values.of(a), values.of(b)));
}

Size IndexMath::ceilDiv(Size a, int64_t b) const {
  if (std::optional<int64_t> known = getConstantIntValue(a))
    return constant(llvm::divideCeilSigned(*known, b));
  return b == 1 ? a : makeOnce<arith::CeilDivSIOp>(*this, a, constant(b));
}

Size IndexMath::max(Size a, Size b) const {
  std::optional<Polynomial> difference = Polynomial::add(values.of(a), values.of(b), -1);
  if (difference && values.isNonNegative(*difference))
    return a;
  std::optional<Polynomial> reverse = Polynomial::add(values.of(b), values.of(a), -1);
  if (reverse && values.isNonNegative(*reverse))
    return b;
  Size result = makeOnce<arith::MaxSIOp>(*this, a, b);
  if (isNonNegative(a) || isNonNegative(b))
    values.noteNonNegative(cast<Value>(result));
  return result;
}

Size IndexMath::min(Size a, Size b) const {
  std::optional<Polynomial> difference = Polynomial::add(values.of(a), values.of(b), -1);
  if (difference && values.isNonNegative(*difference))
    return b;
  std::optional<Polynomial> reverse = Polynomial::add(values.of(b), values.of(a), -1);
  if (reverse && values.isNonNegative(*reverse))
    return a;
  return makeOnce<arith::MinSIOp>(*this, a, b);
}

Size IndexMath::product(ArrayRef<Size> sizes) const {
  Size result = constant(1);
  for (Size size : sizes)
    result = mul(result, size);
  return result;
}

Size IndexMath::fromEnd(Size start, Size size) const {
  if (std::optional<int64_t> known = getConstantIntValue(start))
    return *known >= 0 ? start : add(start, size);
  if (isNonNegative(start))
    return start;
  Value negative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, value(start),
                                         constantValue(0));
  return arith::SelectOp::create(builder, loc, negative, value(add(start, size)), value(start))
      .getResult();
}

int64_t staticSize(Size size) { return getConstantIntValue(size).value_or(ShapedType::kDynamic); }

SmallVector<int64_t> staticSizes(ArrayRef<Size> sizes) {
  return llvm::map_to_vector(sizes, staticSize);
}

} // namespace shardc::memory
