// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Elementwise.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace shardc {
namespace {

using Args = ArrayRef<Value>;
using Predicate = ScalarBuilder::Predicate;

/// One op of the math dialect.
template <typename MathOp> Value math(Operation *, const ScalarBuilder &s, Args args) {
  return s.make<MathOp>(args[0]);
}

/// The same, where integers stay as they are.
template <typename MathOp> Value rounding(Operation *, const ScalarBuilder &s, Args args) {
  return s.isFloat() ? s.make<MathOp>(args[0]) : args[0];
}

Value same(Operation *, const ScalarBuilder &, Args args) { return args[0]; }
Value source(Operation *, const ScalarBuilder &, Args args) { return args[1]; }

Value abs(Operation *, const ScalarBuilder &s, Args args) {
  if (s.isFloat())
    return s.make<math::AbsFOp>(args[0]);
  return s.isUnsigned() ? args[0] : s.make<math::AbsIOp>(args[0]);
}

Value neg(Operation *, const ScalarBuilder &s, Args args) { return s.neg(args[0]); }

/// (0 < x) - (x < 0): 0 for NaN, as PyTorch.
Value sign(Operation *, const ScalarBuilder &s, Args args) {
  if (s.isBool())
    return args[0];
  Value zero = s.constant(0), one = s.constant(1);
  Value positive = s.compare(Predicate::gt, args[0], zero);
  Value result = s.select(positive, one, zero);
  if (s.isUnsigned())
    return result;
  return s.select(s.compare(Predicate::lt, args[0], zero), s.constant(-1), result);
}

Value bitwiseNot(Operation *, const ScalarBuilder &s, Args args) {
  return s.make<arith::XOrIOp>(args[0], s.constantInt(-1));
}

Value reciprocal(Operation *, const ScalarBuilder &s, Args args) {
  return s.div(s.constant(1), args[0]);
}

Value rsqrt(Operation *, const ScalarBuilder &s, Args args) {
  return s.div(s.constant(1), s.make<math::SqrtOp>(args[0]));
}

Value logicalNot(Operation *, const ScalarBuilder &s, Args args) {
  return s.make<arith::XOrIOp>(s.isNonZero(args[0]), s.as(s.builder.getI1Type()).constantInt(1));
}

Value isNan(Operation *, const ScalarBuilder &s, Args args) {
  if (!s.isFloat())
    return s.as(s.builder.getI1Type()).constantInt(0);
  return s.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, args[0], args[0]);
}

Value isInf(Operation *, const ScalarBuilder &s, Args args) {
  if (!s.isFloat())
    return s.as(s.builder.getI1Type()).constantInt(0);
  return s.compare(Predicate::eq, s.make<math::AbsFOp>(args[0]), s.highest());
}

Value toCopy(Operation *op, const ScalarBuilder &s, Args args) {
  return s.convert(args[0], aten::elementTypeOf(op->getOperand(0)));
}

Value bitcast(Operation *op, const ScalarBuilder &s, Args args) {
  Type from = aten::elementTypeOf(op->getOperand(0)), to = aten::elementTypeOf(op->getResult(0));
  Value bits = s.as(from).store(args[0]);
  if (bits.getType() != storageType(to))
    bits = arith::BitcastOp::create(s.builder, s.loc, storageType(to), bits);
  return s.as(to).load(bits);
}

} // namespace

void addUnaryRules(ElementwiseTable &table) {
  using namespace aten;
  table.add<AbsOp>(Operands::Result, abs);
  table.add<NegOp>(Operands::Result, neg);
  table.add<SignOp>(Operands::Result, sign);
  table.add<FloorOp>(Operands::Result, rounding<math::FloorOp>);
  table.add<CeilOp>(Operands::Result, rounding<math::CeilOp>);
  table.add<TruncOp>(Operands::Result, rounding<math::TruncOp>);
  table.add<RoundOp>(Operands::Result, rounding<math::RoundEvenOp>);
  table.add<BitwiseNotOp>(Operands::Result, bitwiseNot);
  table.add<CloneOp>(Operands::Result, same);
  table.add<AliasOp>(Operands::Result, same);
  table.add<CopyOp>(Operands::Result, source);
  table.add<ExpOp>(Operands::Result, math<math::ExpOp>);
  table.add<Exp2Op>(Operands::Result, math<math::Exp2Op>);
  table.add<Expm1Op>(Operands::Result, math<math::ExpM1Op>);
  table.add<LogOp>(Operands::Result, math<math::LogOp>);
  table.add<Log2Op>(Operands::Result, math<math::Log2Op>);
  table.add<Log10Op>(Operands::Result, math<math::Log10Op>);
  table.add<Log1pOp>(Operands::Result, math<math::Log1pOp>);
  table.add<SqrtOp>(Operands::Result, math<math::SqrtOp>);
  table.add<RsqrtOp>(Operands::Result, rsqrt);
  table.add<ReciprocalOp>(Operands::Result, reciprocal);
  table.add<SinOp>(Operands::Result, math<math::SinOp>);
  table.add<CosOp>(Operands::Result, math<math::CosOp>);
  table.add<TanOp>(Operands::Result, math<math::TanOp>);
  table.add<AsinOp>(Operands::Result, math<math::AsinOp>);
  table.add<AcosOp>(Operands::Result, math<math::AcosOp>);
  table.add<AtanOp>(Operands::Result, math<math::AtanOp>);
  table.add<SinhOp>(Operands::Result, math<math::SinhOp>);
  table.add<CoshOp>(Operands::Result, math<math::CoshOp>);
  table.add<TanhOp>(Operands::Result, math<math::TanhOp>);
  table.add<ErfOp>(Operands::Result, math<math::ErfOp>);
  table.add<LogicalNotOp>(Operands::Promoted, logicalNot);
  table.add<IsnanOp>(Operands::Promoted, isNan);
  table.add<IsinfOp>(Operands::Promoted, isInf);
  table.add<ToCopyOp>(Operands::Own, toCopy);
  table.add<BitcastOp>(Operands::Own, bitcast);
}

} // namespace shardc
