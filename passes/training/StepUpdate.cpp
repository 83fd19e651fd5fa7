// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/StepUpdate.h"

#include "passes/training/Optimizers.h"
#include "passes/training/core/StateLayout.h"

using namespace mlir;

namespace shardc::training {

static Layout layoutOf(const TrainedParameter &parameter) {
  return dist::getLayout(parameter.argument.getType()).getValue();
}

/// The type of what belongs to a parameter and is updated with it.
static RankedTensorType updatedType(const TrainedParameter &parameter) {
  return RankedTensorType::get(aten::typeOf(parameter.argument).getShape(), parameter.updated);
}

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
  ArrayRef<int64_t> shape = aten::typeOf(parameter.argument).getShape();
  Layout layout = updatedLayout(layoutOf(parameter), shape);
  return training.zero == 0 ? layout : shardedState(layout, shape, dataAxes);
}

Layout StepUpdate::accumulatorLayout(const TrainedParameter &parameter) const {
  return training.zero >= 2
             ? stateLayout(parameter)
             : partialState(
                   updatedLayout(layoutOf(parameter), aten::typeOf(parameter.argument).getShape()),
                   dataAxes);
}

Value StepUpdate::addState(const llvm::Twine &name, RankedTensorType type, const Layout &layout,
                           bool isSaved) {
  ++numStates;
  return step.addState(name.str(), withLayout(type, layout), /*initial=*/0, isSaved);
}

Value StepUpdate::addScalarState(StringRef name, Type element, double initial) {
  ++numStates;
  auto type = RankedTensorType::get({}, element);
  return step.addState(name, withLayout(type, Layout(mesh.getValue())), initial, /*isSaved=*/true);
}

Value StepUpdate::scaleLoss(Value loss) {
  if (!precision() || !precision()->scalesLoss())
    return {};
  Builder builder(emit.getBuilder().getContext());
  const plan::LossScale &given = precision()->lossScale;
  Value cotangent;
  if (hasDynamicScale())
    cotangent = scale =
        addScalarState(kLossScale, builder.getF32Type(), given.initScale.value_or(65536));
  else
    cotangent = emit.scalar(*given.fixed, builder.getF32Type());
  // As whoever divides the loss by the number of micro-batches before it is scaled: so gradients
  // are as large as those of one batch.
  if (training.microBatches > 1 && training.accumulation == "mean")
    cotangent =
        emit.mul(cotangent, emit.scalar(1.0 / double(training.microBatches), builder.getF32Type()));
  return emit.cast(cotangent, aten::elementTypeOf(loss));
}

Value StepUpdate::badLossesSoFar() {
  if (training.microBatches == 1 || training.nonFinite == "continue")
    return {};
  ++numStates;
  auto type = RankedTensorType::get({}, Float32Type::get(emit.getBuilder().getContext()));
  return step.addState("micro_batches.bad_losses", withLayout(type, Layout(mesh.getValue())),
                       /*initial=*/0, /*isSaved=*/false);
}

void StepUpdate::accumulate(Value loss) {
  if (Value bad = badLossesSoFar())
    step.addUpdate(bad, emit.add(bad, emit.cast(findNonFinite({step.replicate(loss)}),
                                                aten::elementTypeOf(bad))));
  for (const TrainedParameter &parameter : parameters) {
    Layout layout = accumulatorLayout(parameter);
    Value state = addState("gradient." + parameter.name, updatedType(parameter), layout,
                           /*isSaved=*/false);
    step.addUpdate(state, emit.add(state, reduced(parameter, layout)));
  }
}

Value StepUpdate::reduced(const TrainedParameter &parameter, const Layout &layout) {
  return emit.cast(step.redistribute(parameter.gradient, layout), parameter.updated);
}

/// With what micro-batches before have left, which is zero again after the step.
Value StepUpdate::gradientOf(const TrainedParameter &parameter, const Layout &layout) {
  if (training.microBatches == 1)
    return reduced(parameter, layout);
  RankedTensorType type = updatedType(parameter);
  Layout gathered = accumulatorLayout(parameter);
  Value state = addState("gradient." + parameter.name, type, gathered, /*isSaved=*/false);
  Value sum = emit.add(state, reduced(parameter, gathered));
  Value zeros = emit.zeros(sizesOf(type, type.getContext()), type.getElementType());
  step.addUpdate(state, step.redistribute(zeros, gathered));
  Value gradient = step.redistribute(sum, layout);
  // The loss has the factor where it is scaled.
  if (training.accumulation != "mean" || (precision() && precision()->scalesLoss()))
    return gradient;
  Value part =
      emit.scalar(1.0 / double(training.microBatches), Emitter::accumulator(type.getElementType()));
  return emit.mul(gradient, part);
}

Value StepUpdate::findNonFinite(ArrayRef<Value> tensors) {
  Builder builder(emit.getBuilder().getContext());
  SmallVector<Value> counts;
  for (Value x : tensors) {
    Value isBad =
        emit.binary<aten::LogicalOrOp>(emit.unary<aten::IsnanOp>(x), emit.unary<aten::IsinfOp>(x));
    counts.push_back(emit.cast(isBad, builder.getF32Type()));
  }
  return emit.binary<aten::GtOp>(step.sumOfAll(counts), emit.scalar(0, builder.getF32Type()));
}

void StepUpdate::judge(Value loss, MutableArrayRef<Entry> entries) {
  Builder builder(emit.getBuilder().getContext());
  SmallVector<Value> gradients;
  for (const Entry &entry : entries)
    gradients.push_back(entry.gradient);
  // The loss may be partial so far; it is a scalar.
  if (hasDynamicScale()) {
    Value isOverflow = findNonFinite(gradients);
    skipped = isOverflow;
    if (training.nonFinite != "continue")
      skipped = emit.binary<aten::LogicalOrOp>(isOverflow, findNonFinite({step.replicate(loss)}));
    updateScale(isOverflow);
  } else if (training.nonFinite != "continue") {
    gradients.insert(gradients.begin(), step.replicate(loss));
    skipped = findNonFinite(gradients);
  }
  if (Value bad = badLossesSoFar()) {
    Value zero = emit.scalar(0, aten::elementTypeOf(bad));
    skipped = emit.binary<aten::LogicalOrOp>(skipped, emit.binary<aten::GtOp>(bad, zero));
    updates.push_back({bad, zero});
  }
  if (!precision() || !precision()->scalesLoss())
    return;
  Type f32 = builder.getF32Type(), f64 = builder.getF64Type();
  Value inverse = scale ? emit.cast(emit.unary<aten::ReciprocalOp>(emit.cast(scale, f64)), f32)
                        : emit.scalar(double(float(1.0 / *precision()->lossScale.fixed)), f32);
  for (Entry &entry : entries)
    entry.gradient = emit.mul(entry.gradient, inverse);
}

/// As torch.amp.GradScaler.update: factors are f64, the scale and its limits f32.
void StepUpdate::updateScale(Value isOverflow) {
  Builder builder(emit.getBuilder().getContext());
  Type f32 = builder.getF32Type(), f64 = builder.getF64Type(), i32 = builder.getI32Type();
  const plan::LossScale &given = precision()->lossScale;
  auto times = [&](double factor) {
    return emit.cast(emit.mul(emit.cast(scale, f64), emit.scalar(factor, f64)), f32);
  };
  Value tracker = addScalarState("loss_scale.growth_tracker", i32);
  Value good = emit.add(tracker, emit.integer(1, i32));
  Value grows =
      emit.binary<aten::EqOp>(good, emit.integer(given.growthInterval.value_or(2000), i32));
  Value larger = times(given.growthFactor.value_or(2));
  larger = emit.where(emit.unary<aten::IsinfOp>(larger), scale, larger);
  Value zero = emit.integer(0, i32);
  updates.push_back({scale, emit.where(isOverflow, times(given.backoffFactor.value_or(0.5)),
                                       emit.where(grows, larger, scale))});
  updates.push_back(
      {tracker, emit.where(emit.binary<aten::LogicalOrOp>(isOverflow, grows), zero, good)});
}

void StepUpdate::clip(MutableArrayRef<Entry> entries) {
  if (training.clipValue)
    for (Entry &entry : entries) {
      Type element = Emitter::accumulator(aten::elementTypeOf(entry.gradient));
      entry.gradient = aten::ClampOp::create(emit.getBuilder(), emit.getLoc(), entry.gradient,
                                             emit.scalar(-*training.clipValue, element),
                                             emit.scalar(*training.clipValue, element));
    }
  if (!training.clipNorm)
    return;
  SmallVector<Value> squares;
  for (Entry &entry : entries) {
    Value wide =
        emit.cast(entry.gradient, Emitter::accumulator(aten::elementTypeOf(entry.gradient)));
    squares.push_back(emit.mul(wide, wide));
  }
  Value norm = emit.unary<aten::SqrtOp>(step.sumOfAll(squares));
  Type element = aten::elementTypeOf(norm);
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

StepUpdate::Entry StepUpdate::enter(const TrainedParameter &parameter) {
  Layout layout = stateLayout(parameter);
  Entry entry{&parameter,
              layout,
              gradientOf(parameter, layout),
              step.redistribute(parameter.argument, layout),
              {}};
  Type own = aten::elementTypeOf(entry.value);
  if (own == parameter.updated)
    return entry;
  // A parameter that is not its master rounded was given by someone: it counts then.
  entry.master = addState("master." + parameter.name, updatedType(parameter), layout);
  Value isRounded = emit.binary<aten::EqOp>(emit.cast(entry.master, own), entry.value);
  entry.value = emit.where(isRounded, entry.master, emit.cast(entry.value, parameter.updated));
  return entry;
}

void StepUpdate::update(Value loss) {
  Builder builder(emit.getBuilder().getContext());
  Type f64 = builder.getF64Type(), i64 = builder.getI64Type();
  auto entries = llvm::map_to_vector(
      parameters, [&](const TrainedParameter &parameter) { return enter(parameter); });
  judge(loss, entries);
  clip(entries);

  StepScalars scalars;
  scalars.learningRate = step.addInput(kLearningRate, f64);
  Value count = addScalarState("train.step", i64);
  Value next = emit.add(count, emit.integer(1, i64));
  scalars.step = emit.cast(next, f64);
  scalars.isFirst = emit.binary<aten::EqOp>(count, emit.integer(0, i64));
  updates.push_back({count, unlessSkipped(count, next)});
  // Where a training that goes on takes its batches from: steps that are skipped count too.
  if (training.nonFinite == "skip" || hasDynamicScale()) {
    Value runs = addScalarState("train.runs", i64);
    updates.push_back({runs, emit.add(runs, emit.integer(1, i64))});
  }
  SmallVector<std::pair<Value, Value>> moves;
  for (Entry &entry : entries) {
    auto optimizer = Optimizer::make(training.optimizer.name, entry.parameter->numbers);
    ParameterUpdate values{entry.value, entry.gradient, {}};
    for (StringRef name : optimizer->stateNames())
      values.states.push_back(addState("optimizer." + name + "." + entry.parameter->name,
                                       updatedType(*entry.parameter), entry.layout));
    SmallVector<Value> old = values.states;
    optimizer->update(emit, scalars, values);
    // Of a parameter of 0 dims the scalars of the step decide the type.
    for (auto [before, after] : llvm::zip_equal(old, values.states))
      updates.push_back(
          {before, unlessSkipped(before, emit.cast(after, aten::elementTypeOf(before)))});
    Value moved = unlessSkipped(entry.value, values.parameter);
    if (entry.master)
      updates.push_back({entry.master, moved});
    moves.push_back({entry.parameter->argument,
                     emit.cast(moved, aten::elementTypeOf(entry.parameter->argument))});
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
