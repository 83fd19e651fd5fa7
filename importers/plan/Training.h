// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan says about training: the section `train:` (docs/training.md).
#ifndef SHARDC_IMPORTERS_PLAN_TRAINING_H
#define SHARDC_IMPORTERS_PLAN_TRAINING_H

#include "importers/plan/Initialization.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardc::plan {

/// Numbers of an optimizer, named as in torch.optim; those that are not given have PyTorch's
/// defaults. The learning rate is an input of the step, and a group may scale it.
struct OptimizerNumbers {
  std::optional<double> learningRateScale, weightDecay, momentum, dampening, eps;
  std::optional<std::array<double, 2>> betas;
  std::optional<bool> nesterov, amsgrad, maximize;

  bool operator==(const OptimizerNumbers &) const = default;
  /// These where they are given, else those of `other`.
  OptimizerNumbers over(const OptimizerNumbers &other) const;
};

/// Calls `visit(key, field)` for each of them, in the order of the documentation.
template <typename Numbers, typename Visitor> void visitNumbers(Numbers &numbers, Visitor visit) {
  visit("learning_rate_scale", numbers.learningRateScale);
  visit("weight_decay", numbers.weightDecay);
  visit("momentum", numbers.momentum);
  visit("dampening", numbers.dampening);
  visit("nesterov", numbers.nesterov);
  visit("betas", numbers.betas);
  visit("eps", numbers.eps);
  visit("amsgrad", numbers.amsgrad);
  visit("maximize", numbers.maximize);
}

/// Parameters whose numbers differ from those of the others: the first group that matches counts.
struct ParameterGroup {
  std::vector<std::string> parameters; ///< patterns
  OptimizerNumbers numbers;

  bool operator==(const ParameterGroup &) const = default;
};

struct Optimizer {
  std::string name = "sgd"; ///< "sgd", "adam" or "adamw"
  OptimizerNumbers numbers;
  std::vector<ParameterGroup> groups;

  bool operator==(const Optimizer &) const = default;
};

/// How the loss is scaled before the backward, so that gradients in f16 do not become zero: the
/// keys and defaults of torch.amp.GradScaler.
struct LossScale {
  enum class Kind { Default, Off, Fixed, Dynamic };
  Kind kind = Kind::Default; ///< Default: dynamic where the step computes in f16, else off
  std::optional<double> fixed, initScale, growthFactor, backoffFactor;
  std::optional<int64_t> growthInterval;

  bool operator==(const LossScale &) const = default;
};

/// Calls `visit(key, field)` for each number of a scale that changes.
template <typename Scale, typename Visitor> void visitLossScale(Scale &scale, Visitor visit) {
  visit("init_scale", scale.initScale);
  visit("growth_factor", scale.growthFactor);
  visit("backoff_factor", scale.backoffFactor);
  visit("growth_interval", scale.growthInterval);
}

/// In which element types a step computes.
struct Precision {
  std::string compute; ///< "bf16" or "f16" of products; empty: as the model was exported
  /// What the optimizer updates where a parameter is of a shorter type: "f32", or "none" for the
  /// parameter itself.
  std::string masters = "f32";
  std::string reduce = "f32"; ///< "f32", or "compute": gradients are summed over ranks as computed
  LossScale lossScale;

  bool operator==(const Precision &) const = default;
  bool scalesLoss() const { return hasDynamicScale() || lossScale.fixed; }
  bool hasDynamicScale() const {
    return lossScale.kind == LossScale::Kind::Dynamic ||
           (lossScale.kind == LossScale::Kind::Default && compute == "f16");
  }
};

struct Training {
  std::string loss;                ///< an output, by name or number; empty: that of kind loss
  std::vector<std::string> frozen; ///< patterns of parameters that stay as they are
  Optimizer optimizer;
  /// What is sharded over the data axes: 0 nothing; 1 the optimizer's state; 2 accumulated
  /// gradients too; 3 parameters too.
  int64_t zero = 0;
  std::vector<std::string> zeroAxes; ///< mesh axes; empty: those that shard inputs
  int64_t microBatches = 1;
  std::string accumulation = "mean"; ///< of the micro-batches' losses: "mean" or "sum"
  std::optional<double> clipNorm, clipValue;
  /// What a step does whose loss or gradients are not finite: "continue", "skip" or "stop".
  std::string nonFinite = "continue";
  std::optional<Precision> precision; ///< none: everything is computed in the types of the model
  /// What parameters begin with; empty: they are loaded.
  std::vector<Initializer> init;

  bool operator==(const Training &) const = default;
  /// What is wrong with the values by themselves, each with the name of its key.
  std::vector<std::string> validate() const;
  /// Of a parameter with these names: what is not given has its default.
  OptimizerNumbers numbersOf(llvm::ArrayRef<llvm::StringRef> names) const;
};

/// The same of the keys of the section that are not in a mapping of their own.
template <typename Section, typename Visitor> void visitTraining(Section &training, Visitor visit) {
  visit("loss", training.loss);
  visit("frozen", training.frozen);
  visit("optimizer", training.optimizer);
  visit("zero", training.zero);
  visit("zero_axes", training.zeroAxes);
  visit("micro_batches", training.microBatches);
  visit("accumulation", training.accumulation);
  visit("clip_norm", training.clipNorm);
  visit("clip_value", training.clipValue);
  visit("non_finite", training.nonFinite);
  visit("precision", training.precision);
  visit("init", training.init);
}

/// Reads the section as it stands on one line, a YAML mapping. Mistakes are appended to `errors`,
/// each after `origin`.
void parseTraining(llvm::StringRef text, llvm::StringRef origin, Training &training,
                   std::vector<std::string> &errors);

/// Reads `KEY=VALUE`, one key of the section: `zero=1`, `optimizer.weight_decay=0.1`,
/// `frozen=[a.*, b]`.
void parseTrainSpec(llvm::StringRef spec, Training &training, std::vector<std::string> &errors);

/// The section on one line, as parseTraining reads it: what differs from its default.
std::string printTraining(const Training &training);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_TRAINING_H
