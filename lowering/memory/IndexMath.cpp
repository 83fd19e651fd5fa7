// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/IndexMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace shardc::memory {
namespace {

struct Pair {
  std::optional<int64_t> a, b;
  bool known() const { return a && b; }
};

Pair constants(Size a, Size b) { return {getConstantIntValue(a), getConstantIntValue(b)}; }

template <typename Op> Size make(const IndexMath &math, Size a, Size b) {
  return Op::create(math.builder, math.loc, math.value(a), math.value(b)).getResult();
}

} // namespace

Value IndexMath::value(Size size) const {
  return getValueOrCreateConstantIndexOp(builder, loc, size);
}

Value IndexMath::constantValue(int64_t value) const {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Size IndexMath::add(Size a, Size b) const {
  Pair p = constants(a, b);
  if (p.known())
    return constant(*p.a + *p.b);
  if (p.a == 0)
    return b;
  return p.b == 0 ? a : make<arith::AddIOp>(*this, a, b);
}

Size IndexMath::sub(Size a, Size b) const {
  Pair p = constants(a, b);
  if (p.known())
    return constant(*p.a - *p.b);
  return p.b == 0 ? a : make<arith::SubIOp>(*this, a, b);
}

Size IndexMath::mul(Size a, Size b) const {
  Pair p = constants(a, b);
  if (p.known())
    return constant(*p.a * *p.b);
  if (p.a == 0 || p.b == 0)
    return constant(0);
  if (p.a == 1)
    return b;
  return p.b == 1 ? a : make<arith::MulIOp>(*this, a, b);
}

Size IndexMath::ceilDiv(Size a, int64_t b) const {
  if (std::optional<int64_t> known = getConstantIntValue(a))
    return constant(llvm::divideCeilSigned(*known, b));
  return b == 1 ? a : make<arith::CeilDivSIOp>(*this, a, constant(b));
}

Size IndexMath::max(Size a, Size b) const {
  Pair p = constants(a, b);
  return p.known() ? constant(std::max(*p.a, *p.b)) : make<arith::MaxSIOp>(*this, a, b);
}

Size IndexMath::min(Size a, Size b) const {
  Pair p = constants(a, b);
  return p.known() ? constant(std::min(*p.a, *p.b)) : make<arith::MinSIOp>(*this, a, b);
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
