// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batch norm in inference and in training, by all of its overloads, and their backward.
//
// In training it becomes the mean and the variance of the batch, an `aten.batch_norm` with these as
// its statistics, and the new running statistics. So it is sharded, differentiated and compiled as
// what it is: reductions over the whole batch, wherever that lies, and an elementwise op.
#include "importers/torch_export/import/Adjoint.h"
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Standard.h"

#include "dialects/aten/TrainingNorm.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// What the overloads have in common; arguments that an overload does not have are null.
struct BatchNorm {
  Call &call;
  Value input, weight, bias, runningMean, runningVariance;
  double eps = 0, momentum = 0;
  bool training = false;

  explicit BatchNorm(Call &call) : call(call) {}

  static FailureOr<BatchNorm> of(Call &call) {
    BatchNorm norm(call);
    for (auto [name, value] :
         {std::pair("input", &norm.input), std::pair("weight", &norm.weight),
          std::pair("bias", &norm.bias), std::pair("running_mean", &norm.runningMean),
          std::pair("running_var", &norm.runningVariance)}) {
      if (!call.schema.find(name))
        continue;
      FailureOr<Value> found = call.tensor(name);
      if (failed(found))
        return failure();
      *value = *found;
    }
    // One of `epsilon` and `exponential_average_factor` belongs to libraries of devices.
    for (auto [value, names] :
         {std::pair(&norm.eps, std::pair("eps", "epsilon")),
          std::pair(&norm.momentum, std::pair("momentum", "exponential_average_factor"))}) {
      StringRef name = call.schema.find(names.first) ? names.first : names.second;
      if (!call.schema.find(name))
        continue; // a backward
      FailureOr<std::optional<double>> number = call.real(name);
      if (failed(number))
        return failure();
      if (!*number)
        return call.error() << "the argument '" << name << "' is missing";
      *value = **number;
    }
    StringRef packet = StringRef(call.schema.overload).split('.').first;
    norm.training = packet.starts_with("_batch_norm_with_update");
    for (StringRef name : {"training", "train", "update"}) {
      if (!call.schema.find(name))
        continue;
      FailureOr<bool> training = call.boolean(name);
      if (failed(training))
        return failure();
      norm.training = *training;
    }
    if (bool(norm.runningMean) != bool(norm.runningVariance))
      return call.error() << "has one of running mean and running variance; give both, or neither";
    if (!norm.training && !norm.runningMean)
      return call.error() << "batch norm needs running statistics where it is not in training";
    return norm;
  }

  /// The op with these statistics.
  FailureOr<Value> build(Value mean, Value variance) {
    SmallVector<aten::NamedOperand> operands = {{"input", {input}}};
    if (weight)
      operands.push_back({"weight", {weight}});
    if (bias)
      operands.push_back({"bias", {bias}});
    operands.push_back({"running_mean", {mean}});
    operands.push_back({"running_var", {variance}});
    return call.buildOne("aten.batch_norm", operands,
                         {call.builder.getNamedAttr("eps", call.builder.getF64FloatAttr(eps))});
  }
};

/// The statistics of a batch and what follows from them.
struct Training {
  BatchNorm &norm;
  Call &call;
  SmallVector<int64_t> dims;
  Standard standard;
  Emitter &emit;
  DistinctAttr mark; // of the ops of this norm; null without running statistics
  Value mean, variance;

  explicit Training(BatchNorm &norm)
      : norm(norm), call(norm.call), dims(dimsBesideChannels(aten::typeOf(norm.input).getRank())),
        standard(call, dims), emit(standard.emit) {
    if (norm.runningMean)
      mark = DistinctAttr::create(call.builder.getUnitAttr());
  }

  LogicalResult statistics() {
    Value x = standard.wide(norm.input);
    FailureOr<Value> mean = standard.mean(x, /*keepdim=*/false);
    FailureOr<Value> variance =
        call.buildOne("aten.var", {{"self", {x}}},
                      {call.integersAttr("dim", dims),
                       call.builder.getNamedAttr("correction", call.builder.getF64FloatAttr(0))});
    if (failed(mean) || failed(variance))
      return failure();
    this->mean = *mean;
    this->variance = *variance;
    return success();
  }

  Value part(Value statistic, StringRef name) {
    Value alias = standard.constant(statistic, aten::elementTypeOf(statistic));
    alias.getDefiningOp()->setAttr(aten::kTrainingNormAttr, mark);
    alias.getDefiningOp()->setAttr(aten::kTrainingPartAttr, call.builder.getStringAttr(name));
    return alias;
  }

  /// momentum * statistic + (1 - momentum) * running, which no gradient passes.
  Value updated(Value running, Value statistic, StringRef oldName, StringRef newName) {
    Type narrow = aten::elementTypeOf(running), wide = aten::elementTypeOf(statistic);
    Value old = part(running, oldName);
    Value kept = emit.mul(emit.cast(old, wide), emit.scalar(1 - norm.momentum, wide));
    Value added = emit.mul(statistic, emit.scalar(norm.momentum, wide));
    return part(emit.cast(emit.add(added, kept), narrow), newName);
  }
  Value newMean() { return updated(norm.runningMean, mean, aten::kOldMean, aten::kNewMean); }
  /// The running variance is the unbiased one.
  Value newVariance() {
    Type type = aten::elementTypeOf(variance);
    Value ratio;
    if (std::optional<int64_t> count = fixedCount(norm.input, dims)) {
      // Of one element it is not defined: 0 * infinity.
      ratio = emit.scalar(static_cast<double>(*count) / static_cast<double>(*count - 1), type);
    } else {
      Value number = countAlong(emit, norm.input, dims, type);
      ratio = emit.div(number, emit.sub(number, emit.scalar(1, type)));
    }
    return updated(norm.runningVariance, emit.mul(variance, ratio), aten::kOldVariance,
                   aten::kNewVariance);
  }
  Value scale() {
    Value shifted = emit.add(variance, emit.scalar(norm.eps, aten::elementTypeOf(variance)));
    return emit.unary<aten::RsqrtOp>(shifted);
  }
};

} // namespace

FailureOr<Results> buildBatchNorm(Call &call) {
  FailureOr<BatchNorm> norm = BatchNorm::of(call);
  if (failed(norm))
    return failure();
  // The last two results of a functional overload are the running statistics.
  size_t count = std::max<size_t>(call.results.size(), 1);
  StringRef packet = StringRef(call.schema.overload).split('.').first;
  bool isFunctional = packet.ends_with("_functional") && count >= 2;
  Results results(count);
  if (!norm->training) {
    FailureOr<Value> value = norm->build(norm->runningMean, norm->runningVariance);
    if (failed(value))
      return failure();
    results[0] = *value; // statistics are for the backward alone, which computes them again
    if (isFunctional) {
      results[count - 2] = norm->runningMean;
      results[count - 1] = norm->runningVariance;
    }
    return results;
  }
  Training training(*norm);
  if (failed(training.statistics()))
    return failure();
  if (norm->runningMean) {
    Value mean = training.newMean(), variance = training.newVariance();
    if (isFunctional) {
      // PyTorch records f32 for norms of shorter floats, and a cast behind them.
      Emitter emit(call.builder, call.loc);
      results[count - 2] = emit.cast(mean, call.resultElementType(count - 2));
      results[count - 1] = emit.cast(variance, call.resultElementType(count - 1));
    } else {
      call.write("running_mean", mean);
      call.write("running_var", variance);
    }
  }
  FailureOr<Value> value = norm->build(training.mean, training.variance);
  if (failed(value))
    return failure();
  results[0] = *value;
  if (training.mark)
    value->getDefiningOp()->setAttr(aten::kTrainingNormAttr, training.mark);
  if (call.isUsed(1))
    results[1] = training.standard.constant(training.mean, call.resultElementType(1));
  if (call.isUsed(2))
    results[2] = training.standard.constant(training.scale(), call.resultElementType(2));
  return results;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

/// In inference: that of the op. The forward is built without the bias, which every element of a
/// channel gets.
static FailureOr<SmallVector<Value>> cotangentsInInference(BatchNorm &norm, Value grad,
                                                           const OutputMask &mask) {
  Call &call = norm.call;
  FailureOr<Value> forward = norm.build(norm.runningMean, norm.runningVariance);
  if (failed(forward))
    return failure();
  return cotangentsOf(call, forward->getDefiningOp(), grad,
                      {0, norm.weight ? 1 : kNoOperand, kNoOperand}, mask);
}

/// In training: through the statistics too, which the forward has saved.
static FailureOr<SmallVector<Value>> cotangentsInTraining(BatchNorm &norm, Value grad,
                                                          const OutputMask &mask) {
  Call &call = norm.call;
  StringRef scaleName = call.schema.find("save_invstd") ? "save_invstd" : "save_var";
  FailureOr<Value> mean = call.tensor("save_mean"), scale = call.tensor(scaleName);
  if (failed(mean) || failed(scale))
    return failure();
  if (!*mean || !*scale)
    return call.error() << "needs the statistics that its forward saved";
  int64_t rank = aten::typeOf(norm.input).getRank();
  Standard standard(call, dimsBesideChannels(rank));
  Emitter &emit = standard.emit;
  auto perChannel = [&](Value x) {
    SmallVector<OpFoldResult> sizes(rank, call.builder.getIndexAttr(1));
    sizes[1] = sizesOf(call.builder, call.loc, x).front();
    return emit.view(standard.wide(x), sizes);
  };
  Value wideGrad = standard.wide(grad), wideScale = perChannel(*scale);
  Value value = emit.mul(emit.sub(standard.wide(norm.input), perChannel(*mean)), wideScale);
  SmallVector<Value> cotangents(3);
  if (mask.wants(call, 0)) {
    Value weighted = norm.weight ? emit.mul(wideGrad, perChannel(norm.weight)) : wideGrad;
    FailureOr<Value> ofInput = standard.ofInput(weighted, value, wideScale);
    if (failed(ofInput))
      return failure();
    cotangents[0] = emit.cast(*ofInput, aten::elementTypeOf(norm.input));
  }
  if (mask.wants(call, 1))
    cotangents[1] = emit.cast(emit.sum(emit.mul(wideGrad, value), standard.dims, /*keepdim=*/false),
                              call.resultElementType(mask.resultOf(1)));
  return cotangents;
}

FailureOr<Results> buildBatchNormBackward(Call &call) {
  StringRef gradName = call.schema.find("grad_out") ? "grad_out" : "grad_output";
  FailureOr<Value> grad = call.tensor(gradName);
  FailureOr<BatchNorm> norm = BatchNorm::of(call);
  if (failed(grad) || failed(norm))
    return failure();
  FailureOr<OutputMask> mask = OutputMask::of(call, 3);
  if (failed(mask))
    return failure();
  FailureOr<SmallVector<Value>> cotangents = norm->training
                                                 ? cotangentsInTraining(*norm, *grad, *mask)
                                                 : cotangentsInInference(*norm, *grad, *mask);
  if (failed(cotangents))
    return failure();
  if (mask->wants(call, 2)) {
    Emitter emit(call.builder, call.loc);
    Value sum = emit.sum(*grad, dimsBesideChannels(aten::typeOf(*grad).getRank()),
                         /*keepdim=*/false);
    (*cotangents)[2] = emit.cast(sum, call.resultElementType(mask->resultOf(2)));
  }
  return mask->results(*cotangents);
}

//===----------------------------------------------------------------------===//
// Instance norm
//===----------------------------------------------------------------------===//

// Each image of a batch has its own statistics; the running ones are means over the batch.
FailureOr<Results> buildInstanceNorm(Call &call) {
  FailureOr<Value> input = call.tensor("input"), weight = call.tensor("weight"),
                   bias = call.tensor("bias"), oldMean = call.tensor("running_mean"),
                   oldVariance = call.tensor("running_var");
  FailureOr<bool> ofInput = call.boolean("use_input_stats");
  FailureOr<std::optional<double>> momentum = call.real("momentum"), eps = call.real("eps");
  if (failed(input) || failed(weight) || failed(bias) || failed(oldMean) || failed(oldVariance) ||
      failed(ofInput) || failed(momentum) || failed(eps))
    return failure();
  if (!*ofInput) {
    BatchNorm norm(call);
    norm.input = *input;
    norm.weight = *weight;
    norm.bias = *bias;
    norm.eps = **eps;
    if (!*oldMean || !*oldVariance)
      return call.error()
             << "instance norm needs running statistics where it does not use those of "
                "its input";
    return one(norm.build(*oldMean, *oldVariance));
  }
  int64_t rank = aten::typeOf(*input).getRank();
  SmallVector<int64_t> spatial = dimRange(2, rank);
  Standard standard(call, spatial);
  Emitter &emit = standard.emit;
  Value x = standard.wide(*input);
  FailureOr<std::pair<Value, Value>> both = standard.statistics(x, **eps);
  if (failed(both))
    return failure();
  auto perChannel = [&](Value of) {
    SmallVector<OpFoldResult> sizes(rank - 1, call.builder.getIndexAttr(1));
    sizes.front() = sizesOf(call.builder, call.loc, of).front();
    return emit.view(standard.wide(of), sizes);
  };
  Value value = emit.mul(emit.sub(x, both->first), both->second);
  if (*weight)
    value = emit.mul(value, perChannel(*weight));
  if (*bias)
    value = emit.add(value, perChannel(*bias));
  for (auto [name, old, isMean] : {std::tuple("running_mean", *oldMean, true),
                                   std::tuple("running_var", *oldVariance, false)}) {
    if (!old)
      continue;
    Type wide = aten::elementTypeOf(x);
    // The unbiased variance.
    FailureOr<Value> each =
        isMean ? Standard(call, spatial).mean(x, /*keepdim=*/false)
               : call.buildOne(
                     "aten.var", {{"self", {x}}},
                     {call.integersAttr("dim", spatial),
                      call.builder.getNamedAttr("correction", call.builder.getF64FloatAttr(1))});
    if (failed(each))
      return failure();
    FailureOr<Value> mean = Standard(call, {0}).mean(*each, /*keepdim=*/false);
    if (failed(mean))
      return failure();
    Value kept = emit.mul(standard.wide(old), emit.scalar(1 - **momentum, wide));
    Value updated =
        emit.add(emit.mul(standard.constant(*mean, wide), emit.scalar(**momentum, wide)), kept);
    call.write(name, emit.cast(updated, aten::elementTypeOf(old)));
  }
  return Results{emit.cast(value, aten::elementTypeOf(*input))};
}

} // namespace shardc::torch_export
