// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/StepUpdate.h"

#include "passes/training/Optimizers.h"
#include "passes/training/core/StateLayout.h"

using namespace mlir;

namespace shardc::training {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static Layout layoutOf(Value value) { return dist::getLayout(value.getType()).getValue(); }

static RankedTensorType withLayout(RankedTensorType type, const Layout &layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               dist::LayoutAttr::get(type.getContext(), layout));
}

/// As of static sizes.
static SmallVector<OpFoldResult> sizesOf(RankedTensorType type, MLIRContext *context) {
  SmallVector<OpFoldResult> sizes;
  Builder builder(context);
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  return sizes;
}

Layout StepUpdate::stateLayout(const TrainedParameter &parameter) const {
  Layout layout = layoutOf(parameter.argument);
  if (training.zero == 0)
    return layout;
  return shardedState(layout, typeOf(parameter.argument).getShape(), dataAxes);
}

Layout StepUpdate::accumulatorLayout(const TrainedParameter &parameter) const {
  return training.zero >= 2 ? stateLayout(parameter)
                            : partialState(layoutOf(parameter.argument), dataAxes);
}

Value StepUpdate::addState(const llvm::Twine &name, RankedTensorType type, const Layout &layout,
                           bool isSaved) {
  ++numStates;
  return step.addState(name.str(), withLayout(type, layout), /*initial=*/0, isSaved);
}

void StepUpdate::accumulate() {
  for (const TrainedParameter &parameter : parameters) {
    Layout layout = accumulatorLayout(parameter);
    Value state = addState("gradient." + parameter.name, typeOf(parameter.argument), layout,
                           /*isSaved=*/false);
    step.addUpdate(state, emit.add(state, step.redistribute(parameter.gradient, layout)));
  }
}

/// With what micro-batches before have left, which is zero again after the step.
Value StepUpdate::gradientOf(const TrainedParameter &parameter, const Layout &layout) {
  if (training.microBatches == 1)
    return step.redistribute(parameter.gradient, layout);
  RankedTensorType type = typeOf(parameter.argument);
  Layout gathered = accumulatorLayout(parameter);
  Value state = addState("gradient." + parameter.name, type, gathered, /*isSaved=*/false);
  Value sum = emit.add(state, step.redistribute(parameter.gradient, gathered));
  Value zeros = emit.zeros(sizesOf(type, type.getContext()), type.getElementType());
  step.addUpdate(state, step.redistribute(zeros, gathered));
  Value gradient = step.redistribute(sum, layout);
  if (training.accumulation != "mean")
    return gradient;
  Value part =
      emit.scalar(1.0 / double(training.microBatches), Emitter::accumulator(type.getElementType()));
  return emit.mul(gradient, part);
}

Value StepUpdate::findNonFinite(Value loss, ArrayRef<Entry> entries) {
  Builder builder(emit.getBuilder().getContext());
  auto countIn = [&](Value x) {
    Value isBad =
        emit.binary<aten::LogicalOrOp>(emit.unary<aten::IsnanOp>(x), emit.unary<aten::IsinfOp>(x));
    return emit.cast(isBad, builder.getF32Type());
  };
  // The loss may be partial so far; it is a scalar.
  SmallVector<Value> counts = {countIn(step.replicate(loss))};
  for (const Entry &entry : entries)
    counts.push_back(countIn(entry.gradient));
  return emit.binary<aten::GtOp>(step.sumOfAll(counts), emit.scalar(0, builder.getF32Type()));
}

void StepUpdate::clip(MutableArrayRef<Entry> entries) {
  if (training.clipValue)
    for (Entry &entry : entries) {
      Type element = Emitter::accumulator(typeOf(entry.gradient).getElementType());
      entry.gradient = aten::ClampOp::create(emit.getBuilder(), emit.getLoc(), entry.gradient,
                                             emit.scalar(-*training.clipValue, element),
                                             emit.scalar(*training.clipValue, element));
    }
  if (!training.clipNorm)
    return;
  SmallVector<Value> squares;
  for (Entry &entry : entries) {
    Value wide =
        emit.cast(entry.gradient, Emitter::accumulator(typeOf(entry.gradient).getElementType()));
    squares.push_back(emit.mul(wide, wide));
  }
  Value norm = emit.unary<aten::SqrtOp>(step.sumOfAll(squares));
  Type element = typeOf(norm).getElementType();
  // As torch.nn.utils.clip_grad_norm_ has it: max_norm / (norm + 1e-6), and at most 1.
  Value factor = emit.div(emit.scalar(*training.clipNorm, element),
                          emit.add(norm, emit.scalar(1e-6, element)));
  factor = emit.binary<aten::MinimumOp>(factor, emit.scalar(1, element));
  for (Entry &entry : entries)
    entry.gradient = emit.mul(entry.gradient, factor);
  step.layOut();
  step.addOutput(kGradNorm, norm);
}

Value StepUpdate::unlessSkipped(Value old, Value next) {
  return skipped ? emit.where(skipped, old, next) : next;
}

void StepUpdate::update(Value loss) {
  Builder builder(emit.getBuilder().getContext());
  Type f64 = builder.getF64Type(), i64 = builder.getI64Type();
  SmallVector<Entry> entries;
  for (const TrainedParameter &parameter : parameters) {
    Layout layout = stateLayout(parameter);
    entries.push_back({&parameter, layout, gradientOf(parameter, layout),
                       step.redistribute(parameter.argument, layout)});
  }
  if (training.nonFinite != "continue")
    skipped = findNonFinite(loss, entries);
  clip(entries);

  StepScalars scalars;
  scalars.learningRate = step.addInput(kLearningRate, f64);
  Value count = addState("train.step", RankedTensorType::get({}, i64),
                         Layout(layoutOf(parameters.front().argument).mesh));
  Value next = emit.add(count, emit.integer(1, i64));
  scalars.step = emit.cast(next, f64);
  scalars.isFirst = emit.binary<aten::EqOp>(count, emit.integer(0, i64));
  SmallVector<std::pair<Value, Value>> updates = {{count, unlessSkipped(count, next)}};
  // Where a training that goes on takes its batches from: steps that are skipped count too.
  if (training.nonFinite == "skip") {
    Value runs = addState("train.runs", RankedTensorType::get({}, i64),
                          Layout(layoutOf(parameters.front().argument).mesh));
    updates.push_back({runs, emit.add(runs, emit.integer(1, i64))});
  }
  SmallVector<std::pair<Value, Value>> moves;
  for (Entry &entry : entries) {
    auto optimizer = Optimizer::make(training.optimizer.name, entry.parameter->numbers);
    ParameterUpdate values{entry.value, entry.gradient, {}};
    for (StringRef name : optimizer->stateNames())
      values.states.push_back(addState("optimizer." + name + "." + entry.parameter->name,
                                       typeOf(entry.parameter->argument), entry.layout));
    SmallVector<Value> old = values.states;
    optimizer->update(emit, scalars, values);
    for (auto [before, after] : llvm::zip_equal(old, values.states))
      updates.push_back({before, unlessSkipped(before, after)});
    moves.push_back({entry.parameter->argument, unlessSkipped(entry.value, values.parameter)});
  }
  step.layOut();
  if (skipped)
    step.addOutput(kSkipped, skipped);
  for (auto &[argument, value] : moves)
    step.addUpdate(argument, value);
  for (auto &[state, value] : updates)
    step.addUpdate(state, value);
}

} // namespace shardc::training
