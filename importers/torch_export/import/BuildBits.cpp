// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads on integers that are products and quotients of others.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Formula.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// 2^by of this integer type, for by below the number of bits: the product of those powers of which
/// `by` has the bit.
Expr powerOfTwo(Formula &f, Expr by, unsigned bits) {
  Type type = by.elementType();
  auto number = [&](int64_t x) { return f.of(f.emit.integer(x, type)); };
  Expr power = number(1);
  for (unsigned bit = 1; bit < bits; bit *= 2) {
    Expr above = roundedQuotient(by, number(bit), "floor");
    Expr isOdd = eq(above - number(2) * roundedQuotient(above, number(2), "floor"), number(1));
    int64_t factor = bit < 64 ? static_cast<int64_t>(uint64_t(1) << bit) : 0;
    power = power * where(isOdd, number(factor), number(1));
  }
  return power;
}

} // namespace

// What is shifted by as many bits as it has, or by a negative number of them, is 0, or -1 where a
// negative number is shifted to the right.
FailureOr<Results> buildShift(Call &call) {
  Formula f(call);
  auto type = dyn_cast_or_null<IntegerType>(call.resultElementType());
  if (!type || type.getWidth() == 1)
    return call.error() << "only integers are shifted";
  Expr self = f.tensorOrNumber("self", type), by = f.tensorOrNumber("other", type);
  if (f.failed())
    return failure();
  self = cast(self, type);
  by = cast(by, type);
  unsigned bits = type.getWidth();
  auto number = [&](int64_t x) { return f.of(f.emit.integer(x, type)); };
  bool isLeft = StringRef(call.schema.overload).contains("lshift") ||
                StringRef(call.schema.overload).contains("left");
  // The largest power of two that a number with a sign can be is that of the second highest bit.
  unsigned most = isLeft || type.isUnsigned() ? bits - 1 : bits - 2;
  Expr isInside = logicalAnd(ge(by, number(0)), le(by, number(most)));
  Expr power = powerOfTwo(f, where(isInside, by, number(0)), bits);
  if (isLeft)
    return f.result(where(isInside, self * power, number(0)));
  Expr rest = type.isUnsigned() ? number(0) : where(lt(self, number(0)), number(-1), number(0));
  return f.result(where(isInside, roundedQuotient(self, power, "floor"), rest));
}

} // namespace shardc::torch_export
