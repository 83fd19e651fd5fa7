// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/Optimizers.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace shardc::training {
namespace {

/// A scalar of the step as it meets elements of `like`: in their type, or f32 for shorter ones.
Value forElements(Emitter &emit, Value scalar, Value like) {
  return emit.cast(scalar, Emitter::accumulator(aten::elementTypeOf(like)));
}
Value times(Emitter &emit, Value x, double factor) {
  return factor == 1
             ? x
             : emit.mul(x, emit.scalar(factor, Emitter::accumulator(aten::elementTypeOf(x))));
}
/// x + factor * y.
Value plus(Emitter &emit, Value x, double factor, Value y) {
  return factor == 0 ? x : emit.add(x, times(emit, y, factor));
}

/// torch.optim.SGD: d = g + weight_decay p; b = momentum b + (1 - dampening) d, which is d in the
/// first step; p = p - lr (d + momentum b with nesterov, else b).
class Sgd final : public Optimizer {
public:
  explicit Sgd(const plan::OptimizerNumbers &numbers) : numbers(numbers) {}

  SmallVector<StringRef> stateNames() const override {
    return *numbers.momentum == 0 ? SmallVector<StringRef>()
                                  : SmallVector<StringRef>{"momentum_buffer"};
  }

  void update(Emitter &emit, const StepScalars &scalars, ParameterUpdate &values) const override {
    Value direction =
        *numbers.maximize ? emit.unary<aten::NegOp>(values.gradient) : values.gradient;
    direction = plus(emit, direction, *numbers.weightDecay, values.parameter);
    if (*numbers.momentum != 0) {
      Value &buffer = values.states.front();
      Value kept = times(emit, buffer, *numbers.momentum);
      Value next = plus(emit, kept, 1 - *numbers.dampening, direction);
      // The buffer is zero before the first step, so that it needs a case of its own with dampening
      // alone.
      buffer = *numbers.dampening == 0 ? next : emit.where(scalars.isFirst, direction, next);
      direction = *numbers.nesterov ? plus(emit, direction, *numbers.momentum, buffer) : buffer;
    }
    Value rate = times(emit, scalars.learningRate, *numbers.learningRateScale);
    values.parameter =
        emit.sub(values.parameter, emit.mul(direction, forElements(emit, rate, values.parameter)));
  }

private:
  const plan::OptimizerNumbers numbers;
};

/// torch.optim.Adam and AdamW: m = m + (1 - b1)(g - m); v = b2 v + (1 - b2) g g;
/// p = p - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps). Adam adds weight_decay p to g
/// first; AdamW multiplies p by 1 - lr weight_decay first. With amsgrad, the largest v so far takes
/// the place of v in the last formula.
class Adam final : public Optimizer {
public:
  Adam(const plan::OptimizerNumbers &numbers, bool isDecoupled)
      : numbers(numbers), isDecoupled(isDecoupled) {}

  SmallVector<StringRef> stateNames() const override {
    SmallVector<StringRef> names{"exp_avg", "exp_avg_sq"};
    if (*numbers.amsgrad)
      names.push_back("max_exp_avg_sq");
    return names;
  }

  void update(Emitter &emit, const StepScalars &scalars, ParameterUpdate &values) const override {
    auto [beta1, beta2] = *numbers.betas;
    Value &parameter = values.parameter;
    Value rate = times(emit, scalars.learningRate, *numbers.learningRateScale);
    Value gradient = *numbers.maximize ? emit.unary<aten::NegOp>(values.gradient) : values.gradient;
    if (isDecoupled && *numbers.weightDecay != 0) {
      Value one = emit.scalar(1, aten::elementTypeOf(rate));
      Value kept = emit.sub(one, times(emit, rate, *numbers.weightDecay));
      parameter = emit.mul(parameter, forElements(emit, kept, parameter));
    } else {
      gradient = plus(emit, gradient, *numbers.weightDecay, parameter);
    }
    Value &mean = values.states[0], &square = values.states[1];
    mean = emit.add(mean, times(emit, emit.sub(gradient, mean), 1 - beta1));
    square =
        emit.add(times(emit, square, beta2), times(emit, emit.mul(gradient, gradient), 1 - beta2));
    Value denominator = square;
    if (*numbers.amsgrad) {
      values.states[2] = emit.binary<aten::MaximumOp>(values.states[2], square);
      denominator = values.states[2];
    }
    Value correction = emit.unary<aten::SqrtOp>(correctionOf(emit, scalars.step, beta2));
    denominator =
        emit.div(emit.unary<aten::SqrtOp>(denominator), forElements(emit, correction, parameter));
    denominator =
        emit.add(denominator,
                 emit.scalar(*numbers.eps, Emitter::accumulator(aten::elementTypeOf(parameter))));
    Value size = emit.div(rate, correctionOf(emit, scalars.step, beta1));
    parameter = emit.sub(parameter,
                         emit.mul(emit.div(mean, denominator), forElements(emit, size, parameter)));
  }

private:
  /// 1 - beta^step.
  static Value correctionOf(Emitter &emit, Value step, double beta) {
    Type f64 = aten::elementTypeOf(step);
    Value power = emit.binary<aten::PowOp>(emit.scalar(beta, f64), step);
    return emit.sub(emit.scalar(1, f64), power);
  }

  const plan::OptimizerNumbers numbers;
  const bool isDecoupled;
};

} // namespace

std::unique_ptr<Optimizer> Optimizer::make(StringRef name, const plan::OptimizerNumbers &numbers) {
  using Maker = std::unique_ptr<Optimizer> (*)(const plan::OptimizerNumbers &);
  auto maker =
      llvm::StringSwitch<Maker>(name)
          .Case("sgd",
                [](auto &n) -> std::unique_ptr<Optimizer> { return std::make_unique<Sgd>(n); })
          .Case("adam",
                [](auto &n) -> std::unique_ptr<Optimizer> {
                  return std::make_unique<Adam>(n, false);
                })
          .Case(
              "adamw",
              [](auto &n) -> std::unique_ptr<Optimizer> { return std::make_unique<Adam>(n, true); })
          .Default(nullptr);
  if (!maker)
    llvm_unreachable("plan::Training::validate refuses other optimizers");
  return maker(numbers);
}

} // namespace shardc::training
