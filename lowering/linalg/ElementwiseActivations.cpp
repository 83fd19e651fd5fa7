// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Elementwise.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace shardc {
namespace {

using Args = ArrayRef<Value>;
using Predicate = ScalarBuilder::Predicate;

Value exp(const ScalarBuilder &s, Value x) { return s.make<math::ExpOp>(x); }

/// 1 + exp(-x)
Value onePlusExpNeg(const ScalarBuilder &s, Value x) {
  return s.add(s.constant(1), exp(s, s.neg(x)));
}

Value sigmoid(Operation *, const ScalarBuilder &s, Args args) {
  return s.div(s.constant(1), onePlusExpNeg(s, args[0]));
}

Value silu(Operation *, const ScalarBuilder &s, Args args) {
  return s.div(args[0], onePlusExpNeg(s, args[0]));
}

Value mish(Operation *, const ScalarBuilder &s, Args args) {
  Value softplus = s.make<math::Log1pOp>(exp(s, args[0]));
  return s.mul(args[0], s.make<math::TanhOp>(softplus));
}

Value relu(Operation *, const ScalarBuilder &s, Args args) { return s.max(args[0], s.constant(0)); }

Value gelu(Operation *op, const ScalarBuilder &s, Args args) {
  Value x = args[0];
  Value inner;
  if (cast<aten::GeluOp>(op).getApproximate() == "tanh") {
    Value cube = s.mul(s.mul(x, x), x);
    Value sum = s.add(x, s.mul(s.constant(0.044715), cube));
    inner = s.make<math::TanhOp>(s.mul(s.constant(std::sqrt(2.0 / M_PI)), sum));
  } else {
    inner = s.make<math::ErfOp>(s.mul(x, s.constant(M_SQRT1_2)));
  }
  return s.mul(s.mul(x, s.constant(0.5)), s.add(s.constant(1), inner));
}

/// min(max(x + 3, 0), 6)
Value relu6OfPlus3(const ScalarBuilder &s, Value x) {
  return s.min(s.max(s.add(x, s.constant(3)), s.constant(0)), s.constant(6));
}

Value hardswish(Operation *, const ScalarBuilder &s, Args args) {
  return s.div(s.mul(args[0], relu6OfPlus3(s, args[0])), s.constant(6));
}

Value hardsigmoid(Operation *, const ScalarBuilder &s, Args args) {
  return s.div(relu6OfPlus3(s, args[0]), s.constant(6));
}

Value leakyRelu(Operation *op, const ScalarBuilder &s, Args args) {
  double slope = cast<aten::LeakyReluOp>(op).getNegativeSlope().convertToDouble();
  Value positive = s.compare(Predicate::gt, args[0], s.constant(0));
  return s.select(positive, args[0], s.mul(args[0], s.constant(slope)));
}

Value elu(Operation *op, const ScalarBuilder &s, Args args) {
  auto elu = cast<aten::EluOp>(op);
  double alpha = elu.getAlpha().convertToDouble(), scale = elu.getScale().convertToDouble();
  double inputScale = elu.getInputScale().convertToDouble();
  Value negative = s.mul(s.make<math::ExpM1Op>(s.mul(args[0], s.constant(inputScale))),
                         s.constant(alpha * scale));
  Value isNegative = s.compare(Predicate::le, args[0], s.constant(0));
  return s.select(isNegative, negative, s.mul(args[0], s.constant(scale)));
}

Value hardtanh(Operation *op, const ScalarBuilder &s, Args args) {
  auto hardtanh = cast<aten::HardtanhOp>(op);
  return s.min(s.max(args[0], s.constant(hardtanh.getMinVal().convertToDouble())),
               s.constant(hardtanh.getMaxVal().convertToDouble()));
}

Value softplus(Operation *op, const ScalarBuilder &s, Args args) {
  auto softplus = cast<aten::SoftplusOp>(op);
  Value beta = s.constant(softplus.getBeta().convertToDouble());
  Value scaled = s.mul(args[0], beta);
  Value soft = s.div(s.make<math::Log1pOp>(exp(s, scaled)), beta);
  Value isLinear =
      s.compare(Predicate::gt, scaled, s.constant(softplus.getThreshold().convertToDouble()));
  return s.select(isLinear, args[0], soft);
}

} // namespace

void addActivationRules(ElementwiseTable &table) {
  using namespace aten;
  table.add<SigmoidOp>(Operands::Result, sigmoid);
  table.add<SiluOp>(Operands::Result, silu);
  table.add<MishOp>(Operands::Result, mish);
  table.add<ReluOp>(Operands::Result, relu);
  table.add<GeluOp>(Operands::Result, gelu);
  table.add<HardswishOp>(Operands::Result, hardswish);
  table.add<HardsigmoidOp>(Operands::Result, hardsigmoid);
  table.add<LeakyReluOp>(Operands::Result, leakyRelu);
  table.add<EluOp>(Operands::Result, elu);
  table.add<HardtanhOp>(Operands::Result, hardtanh);
  table.add<SoftplusOp>(Operands::Result, softplus);
}

} // namespace shardc
