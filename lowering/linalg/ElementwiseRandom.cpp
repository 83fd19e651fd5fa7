// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Elementwise.h"

#include "dialects/aten/Random.h"

#include <array>

using namespace mlir;

namespace shardc {
namespace {

using Args = ArrayRef<Value>;

/// Philox4x32-10, with each word in 64 bits: products of 32 x 32 bits are whole then.
struct Philox {
  const ScalarBuilder &s;

  Value low(Value x) const { return s.make<arith::AndIOp>(x, s.constantInt(0xFFFFFFFF)); }
  Value high(Value x) const { return s.make<arith::ShRUIOp>(x, s.constantInt(32)); }
  Value exclusiveOr(Value x, Value y, Value z) const {
    return s.make<arith::XOrIOp>(s.make<arith::XOrIOp>(x, y), z);
  }

  Value word(Value element, Value seed, Value offset, unsigned number) const {
    std::array<Value, 4> counter = {low(element), high(element), low(offset), high(offset)};
    Value key[] = {low(seed), high(seed)};
    for (unsigned round = 0; round < 10; ++round) {
      if (round > 0) {
        key[0] = low(s.add(key[0], s.constantInt(0x9E3779B9)));
        key[1] = low(s.add(key[1], s.constantInt(0xBB67AE85)));
      }
      Value first = s.mul(counter[0], s.constantInt(0xD2511F53));
      Value second = s.mul(counter[2], s.constantInt(0xCD9E8D57));
      counter = {exclusiveOr(high(second), counter[1], key[0]), low(second),
                 exclusiveOr(high(first), counter[3], key[1]), low(first)};
    }
    return counter[number];
  }
};

Value philox(Operation *op, const ScalarBuilder &s, Args args) {
  return Philox{s}.word(args[0], args[1], args[2], cast<aten::PhiloxOp>(op).getWord());
}

Value dropout(Operation *op, const ScalarBuilder &s, Args args) {
  double p = cast<aten::DropoutOp>(op).getP().convertToDouble();
  Value scale = s.constant(p == 1 ? 0 : 1 / (1 - p));
  return s.mul(args[0], s.select(args[1], scale, s.constant(0)));
}

} // namespace

void addRandomRules(ElementwiseTable &table) {
  table.add<aten::PhiloxOp>(Operands::Result, philox);
  table.add<aten::DropoutOp>(Operands::Own, dropout);
}

} // namespace shardc
