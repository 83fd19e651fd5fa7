// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Training.h"

#include "importers/plan/Plan.h"
#include "support/JsonText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using llvm::StringRef;

namespace shardc::plan {

OptimizerNumbers OptimizerNumbers::over(const OptimizerNumbers &other) const {
  OptimizerNumbers result = *this;
  std::vector<const void *> defaults;
  visitNumbers(other, [&](StringRef, auto &field) { defaults.push_back(&field); });
  visitNumbers(result, [&, i = 0](StringRef, auto &field) mutable {
    auto &wanted = *static_cast<const std::remove_reference_t<decltype(field)> *>(defaults[i++]);
    if (!field)
      field = wanted;
  });
  return result;
}

OptimizerNumbers Training::numbersOf(llvm::ArrayRef<StringRef> names) const {
  OptimizerNumbers defaults{
      1.0,  optimizer.name == "adamw" ? 0.01 : 0.0, 0.0, 0.0, 1e-8, {{0.9, 0.999}}, false, false,
      false};
  OptimizerNumbers common = optimizer.numbers.over(defaults);
  for (const ParameterGroup &group : optimizer.groups)
    for (const std::string &pattern : group.parameters)
      for (StringRef name : names)
        if (matchesPattern(pattern, name))
          return group.numbers.over(common);
  return common;
}

namespace {

class TrainingValidator {
public:
  TrainingValidator(const Training &training, std::vector<std::string> &problems)
      : training(training), problems(problems) {}

  void run() {
    const Optimizer &optimizer = training.optimizer;
    oneOf("optimizer", optimizer.name, {"sgd", "adam", "adamw"});
    checkNumbers(optimizer.numbers, "optimizer");
    for (auto [i, group] : llvm::enumerate(optimizer.groups))
      checkNumbers(group.numbers, llvm::formatv("optimizer.groups[{0}]", i).str());
    if (training.zero < 0 || training.zero > 3)
      add("zero", "is 0, 1, 2 or 3, not " + std::to_string(training.zero));
    if (training.zero == 0 && !training.zeroAxes.empty())
      add("zero_axes", "says over which axes zero shards, but zero is 0");
    if (training.microBatches < 1)
      add("micro_batches", "is at least 1, not " + std::to_string(training.microBatches));
    oneOf("accumulation", training.accumulation, {"mean", "sum"});
    positive("clip_norm", training.clipNorm);
    positive("clip_value", training.clipValue);
    oneOf("non_finite", training.nonFinite, {"continue", "skip", "stop"});
    if (training.precision)
      checkPrecision(*training.precision);
    validateInitializers(training.init, problems);
  }

private:
  void add(const llvm::Twine &key, const llvm::Twine &what) {
    problems.push_back((key + " " + what).str());
  }
  void oneOf(StringRef key, StringRef value, llvm::ArrayRef<StringRef> allowed) {
    if (!llvm::is_contained(allowed, value))
      add(key, "is one of " + llvm::join(allowed, ", ") + ", not '" + value + "'");
  }
  void positive(StringRef key, std::optional<double> value) {
    if (value && !(*value > 0))
      add(key, "must be positive, not " + jsonNumber(*value));
  }
  void notNegative(const std::string &key, std::optional<double> value) {
    if (value && *value < 0)
      add(key, "must not be negative, not " + jsonNumber(*value));
  }
  void only(const std::string &key, bool given, bool isAdam) {
    if (given && isAdam != (training.optimizer.name != "sgd"))
      add(key, "is a number of " + std::string(isAdam ? "adam and adamw" : "sgd") +
                   ", and the optimizer is " + training.optimizer.name);
  }
  void checkPrecision(const Precision &precision) {
    if (!precision.compute.empty())
      oneOf("precision.compute", precision.compute, {"bf16", "f16"});
    oneOf("precision.masters", precision.masters, {"f32", "none"});
    oneOf("precision.reduce", precision.reduce, {"f32", "compute"});
    if (precision.scalesLoss() && precision.masters == "none")
      add("precision.masters", "is none, but gradients of a loss that is scaled are divided by the "
                               "scale in f32: use masters: f32, or loss_scale: off");
    const LossScale &scale = precision.lossScale;
    positive("precision.loss_scale", scale.fixed);
    positive("precision.loss_scale.init_scale", scale.initScale);
    if (scale.growthFactor && !(*scale.growthFactor > 1))
      add("precision.loss_scale.growth_factor",
          "is above 1, not " + jsonNumber(*scale.growthFactor));
    if (scale.backoffFactor && !(*scale.backoffFactor > 0 && *scale.backoffFactor < 1))
      add("precision.loss_scale.backoff_factor",
          "is between 0 and 1, not " + jsonNumber(*scale.backoffFactor));
    if (scale.growthInterval &&
        (*scale.growthInterval < 1 ||
         *scale.growthInterval > std::numeric_limits<int32_t>::max())) // the tracker is i32
      add("precision.loss_scale.growth_interval",
          "is at least 1 and below 2^31, not " + std::to_string(*scale.growthInterval));
  }
  void checkNumbers(const OptimizerNumbers &numbers, const std::string &where) {
    notNegative(where + ".weight_decay", numbers.weightDecay);
    notNegative(where + ".learning_rate_scale", numbers.learningRateScale);
    notNegative(where + ".momentum", numbers.momentum);
    notNegative(where + ".eps", numbers.eps);
    only(where + ".momentum", numbers.momentum.has_value(), false);
    only(where + ".dampening", numbers.dampening.has_value(), false);
    only(where + ".nesterov", numbers.nesterov.has_value(), false);
    only(where + ".betas", numbers.betas.has_value(), true);
    only(where + ".eps", numbers.eps.has_value(), true);
    only(where + ".amsgrad", numbers.amsgrad.has_value(), true);
    if (numbers.betas)
      for (double beta : *numbers.betas)
        if (!(beta >= 0 && beta < 1))
          add(where + ".betas", "are from 0 to below 1, not " + jsonNumber(beta));
    // As torch.optim.SGD has it.
    OptimizerNumbers common = numbers.over(training.optimizer.numbers);
    if (common.nesterov.value_or(false) &&
        (!(common.momentum.value_or(0) > 0) || common.dampening.value_or(0) != 0))
      add(where + ".nesterov", "needs a momentum, and no dampening");
  }

  const Training &training;
  std::vector<std::string> &problems;
};

/// Text that reads back as the same value.
class Printer {
public:
  std::string text;

  std::string quoted(StringRef value) {
    std::string result = "\"";
    for (char c : value) {
      if (c == '"' || c == '\\')
        result += '\\';
      result += c;
    }
    return result + "\"";
  }
  std::string print(const std::string &value) { return quoted(value); }
  std::string print(int64_t value) { return std::to_string(value); }
  std::string print(const std::optional<double> &value) { return jsonNumber(*value); }
  std::string print(const std::optional<bool> &value) { return *value ? "true" : "false"; }
  std::string print(const std::optional<std::array<double, 2>> &value) {
    return "[" + jsonNumber((*value)[0]) + ", " + jsonNumber((*value)[1]) + "]";
  }
  std::string print(const std::vector<std::string> &value) {
    std::string list;
    for (const std::string &item : value)
      list += (list.empty() ? "" : ", ") + quoted(item);
    return "[" + list + "]";
  }
  std::string print(const Optimizer &optimizer) {
    std::string list = "name: " + quoted(optimizer.name) + numbers(optimizer.numbers);
    std::string groups;
    for (const ParameterGroup &group : optimizer.groups)
      groups += (groups.empty() ? "{parameters: " : ", {parameters: ") + print(group.parameters) +
                numbers(group.numbers) + "}";
    return "{" + list + (groups.empty() ? "" : ", groups: [" + groups + "]") + "}";
  }
  std::string print(const std::vector<Initializer> &initializers) {
    std::string list;
    for (const Initializer &init : initializers) {
      list += (list.empty() ? "{parameters: " : ", {parameters: ") + print(init.parameters) +
              ", distribution: " + quoted(init.distribution);
      visitInitializer(init, [&](StringRef key, auto &field) {
        if (field != std::remove_cvref_t<decltype(field)>())
          list += ", " + key.str() + ": " + print(field);
      });
      list += "}";
    }
    return "[" + list + "]";
  }

  std::string print(const std::optional<int64_t> &value) { return std::to_string(*value); }
  std::string print(const std::optional<Precision> &precision) {
    std::string list = "masters: " + quoted(precision->masters);
    if (!precision->compute.empty())
      list += ", compute: " + quoted(precision->compute);
    if (precision->reduce != "f32")
      list += ", reduce: " + quoted(precision->reduce);
    if (precision->lossScale.kind != LossScale::Kind::Default)
      list += ", loss_scale: " + print(precision->lossScale);
    return "{" + list + "}";
  }
  std::string print(const LossScale &scale) {
    if (scale.kind == LossScale::Kind::Off)
      return "off";
    if (scale.fixed)
      return jsonNumber(*scale.fixed);
    std::string list;
    visitLossScale(scale, [&](StringRef key, auto &field) {
      if (field)
        list += (list.empty() ? "" : ", ") + key.str() + ": " + print(field);
    });
    return list.empty() ? "dynamic" : "{" + list + "}";
  }

private:
  std::string numbers(const OptimizerNumbers &given) {
    std::string list;
    visitNumbers(given, [&](StringRef key, auto &field) {
      if (field)
        list += ", " + key.str() + ": " + print(field);
    });
    return list;
  }
};

} // namespace

std::vector<std::string> Training::validate() const {
  std::vector<std::string> problems;
  TrainingValidator(*this, problems).run();
  return problems;
}

std::string printTraining(const Training &training) {
  const Training standard;
  std::vector<const void *> defaults;
  visitTraining(standard, [&](StringRef, auto &field) { defaults.push_back(&field); });
  Printer printer;
  std::string text;
  visitTraining(training, [&, i = 0](StringRef key, auto &field) mutable {
    auto &usual = *static_cast<const std::remove_reference_t<decltype(field)> *>(defaults[i++]);
    if (!(field == usual))
      text += (text.empty() ? "" : ", ") + key.str() + ": " + printer.print(field);
  });
  return "{" + text + "}";
}

} // namespace shardc::plan
