// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/CombineElements.h"

using namespace mlir;
using namespace shardc;

Value shardc::combineElements(OpBuilder &builder, Location loc, StringRef combine, Value before,
                              Value value) {
  if (combine == "assign")
    return value;
  Type type = value.getType();
  if (combine.consume_front("u"))
    type = builder.getIntegerType(type.getIntOrFloatBitWidth(), /*isSigned=*/false);
  ScalarBuilder s(builder, loc, type);
  Value x = s.load(before), y = s.load(value);
  // Sums and products of integers are the same with a sign and without.
  return s.store(combine == "add"        ? s.add(x, y)
                 : combine == "multiply" ? s.mul(x, y)
                 : combine == "max"      ? s.max(x, y)
                                         : s.min(x, y));
}
