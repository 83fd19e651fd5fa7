// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop of a training: batches of files, the learning rate, the log and checkpoints.
#include "runtime/support/Types.h"
#include "tools/shard-run/Session.h"
#include "tools/shard-run/TrainingLog.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace shardc::run {

namespace {

/// How many steps a training has done, and with those that were skipped, where that may be.
constexpr const char *stepState = "train.step", *runState = "train.runs";

/// A path for one step: %s stands for its number.
std::string pathOfStep(std::string path, int64_t step) {
  for (size_t at = path.find("%s"); at != std::string::npos; at = path.find("%s", at))
    path.replace(at, 2, std::to_string(step));
  return path;
}

/// The value of a scalar output.
double numberIn(const OutputTensor &tensor) {
  switch (tensor.type) {
  case SHARDRT_F64: {
    double value = 0;
    std::memcpy(&value, tensor.bytes.data(), sizeof value);
    return value;
  }
  case SHARDRT_F32: {
    float value = 0;
    std::memcpy(&value, tensor.bytes.data(), sizeof value);
    return value;
  }
  case SHARDRT_BF16: {
    rt::BFloat16 value{};
    std::memcpy(&value, tensor.bytes.data(), sizeof value);
    return rt::toFloat(value);
  }
  case SHARDRT_F16: {
    rt::Float16 value{};
    std::memcpy(&value, tensor.bytes.data(), sizeof value);
    return rt::toFloat(value);
  }
  default:
    return tensor.bytes[0] != 0;
  }
}

} // namespace

int64_t Session::stepsDone(shardrt::Model &model) const {
  int64_t done = 0;
  shardrt_tensor tensor{};
  tensor.data = &done;
  tensor.type = SHARDRT_I64;
  tensor.scope = SHARDRT_LOCAL;
  model.getState(hasState(runState) ? runState : stepState, tensor);
  return done;
}

void Session::checkBatches(const std::vector<FileTensor> &tensors) {
  const int64_t microBatches = manifest.training->microBatches;
  std::vector<std::string> problems;
  const FileTensor *first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const rt::TensorSpec &input = spec->inputs[i];
    if (isLearningRate(i))
      continue;
    const FileTensor &tensor = tensors[i];
    if (tensor.extents.size() != input.rank() + 1) {
      problems.push_back("--batches: " + input.name + " has " +
                         std::to_string(tensor.extents.size()) + " dims, expected " +
                         std::to_string(input.rank() + 1) +
                         ": one of batches before those of the input");
      continue;
    }
    if (!first) {
      first = &tensor;
      batches = tensor.extents[0];
      if (batches == 0 || batches % microBatches != 0)
        problems.push_back("--batches: there are " + std::to_string(batches) +
                           " batches, which is no positive multiple of the " +
                           std::to_string(microBatches) + " micro-batches of a step");
    } else if (tensor.extents[0] != batches) {
      problems.push_back("--batches: " + input.name + " has " + std::to_string(tensor.extents[0]) +
                         " batches, another input has " + std::to_string(batches));
    }
  }
  if (!problems.empty())
    throw UsageError(lines(problems));
}

void Session::checkSavePath(int64_t step) const {
  if (options.save.empty() || !reports())
    return;
  namespace fs = std::filesystem;
  const std::string option = options.savesSharded ? "--save-sharded: " : "--save: ";
  fs::path path = trains() ? pathOfStep(options.save, step) : options.save;
  if (options.savesSharded && !path.has_filename())
    path = path.parent_path(); // "folder/"
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code ignored;
  auto refuse = [&](const std::string &what) {
    throw UsageError(option + path.string() + ": " + what);
  };
  if (fs::is_directory(path, ignored) != options.savesSharded && fs::exists(path, ignored))
    refuse(options.savesSharded ? "it is a file, and not the folder that a checkpoint with a file "
                                  "of each rank is"
                                : "it is a folder: give the name of a file, or use --save-sharded");
  const fs::path folder = options.savesSharded && fs::exists(path, ignored) ? path : parent;
  if (!fs::is_directory(folder, ignored))
    refuse("there is no folder " + folder.string());
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    refuse("cannot write to the folder " + folder.string() + ": " + std::strerror(errno));
}

bool Session::isLearningRate(size_t input) const {
  return trains() && spec->inputs[input].name == manifest.training->learningRate;
}

void Session::setBatch(Call &call, int64_t batch) const {
  if (files.empty())
    return; // rank 0 has them
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (!isLearningRate(i))
      call.inputs[i].data = static_cast<char *>(const_cast<void *>(files[0][i].data)) +
                            batch * files[0][i].strides[0] * shardrt_type_bytes(files[0][i].type);
}

void Session::trainRank(size_t index, TrainingLog *log, const Schedule &schedule, int64_t begin) {
  const rt::TrainingSpec &training = *manifest.training;
  shardrt::Model &model = *ranksModels[index];
  Call &call = calls[index];
  // Of `accumulate`: what it takes and returns is what the step takes and returns besides others.
  std::vector<size_t> accumulatedInputs, accumulatedOutputs;
  std::vector<const OutputTensor *> values(spec->userOutputs.size());
  if (rankOf(index) == 0)
    for (size_t o = 0; o < values.size(); ++o)
      values[o] = &results[0][o];
  auto outputNamed = [&](const std::string &name) {
    size_t o = 0;
    while (o < spec->userOutputs.size() && spec->outputs[spec->userOutputs[o]].name != name)
      ++o;
    return o;
  };
  for (const rt::EntrySpec &entry : manifest.entries) {
    if (training.accumulate.empty() || entry.name != training.accumulate)
      continue;
    for (size_t i = 0; i < spec->inputs.size(); ++i)
      if (!isLearningRate(i))
        accumulatedInputs.push_back(i);
    for (size_t o : entry.userOutputs)
      accumulatedOutputs.push_back(outputNamed(entry.outputs[o].name));
  }
  auto valueOf = [&](const std::string &name) -> std::optional<double> {
    return name.empty() ? std::nullopt
                        : std::optional<double>(numberIn(*values[outputNamed(name)]));
  };
  double rate = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (isLearningRate(i) && call.inputs[i].type == SHARDRT_F64)
      call.inputs[i].data = &rate;
  for (int64_t step = begin; step < options.steps; ++step) {
    if (step == begin + 1)
      shardrt_clear_events(model.get());
    StepReport report;
    report.step = step + 1;
    report.learningRate = schedule.rate(step);
    rate = report.learningRate;
    auto start = std::chrono::steady_clock::now();
    for (int64_t micro = 0; micro < training.microBatches; ++micro) {
      setBatch(call, (step * training.microBatches + micro) % batches);
      if (micro + 1 < training.microBatches) {
        std::vector<shardrt_tensor> inputs, outputs;
        for (size_t i : accumulatedInputs)
          inputs.push_back(call.inputs[i]);
        for (size_t o : accumulatedOutputs)
          outputs.push_back(call.outputs[o]);
        model.run(training.accumulate.c_str(), inputs, outputs);
      } else {
        model.run(training.step.c_str(), call.inputs, call.outputs);
      }
      // Then the outputs that threads share are complete, and nobody writes them before the next.
      if (world > 1)
        model.barrier();
      if (rankOf(index) == 0)
        report.loss += *valueOf(training.loss) / double(training.microBatches);
      if (world > 1)
        model.barrier();
    }
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (index == 0)
      times.stepMs.push_back(report.seconds * 1e3);
    if (rankOf(index) == 0) {
      report.gradNorm = valueOf(training.gradNorm);
      if (auto skipped = valueOf(training.skipped))
        report.skipped = *skipped != 0;
      log->add(report);
      // A scale that was too large is no reason: it is smaller in the next step.
      bool isOverflow = !training.lossScale.empty() && std::isfinite(report.loss);
      if (training.nonFinite == "stop" && report.skipped.value_or(false) && !isOverflow)
        throw std::runtime_error(
            "step " + std::to_string(report.step) +
            ": the loss or a gradient is not finite, and the plan says to stop then; parameters "
            "and states were left as they were before the step, and nothing was saved");
    }
    bool isLast = step + 1 == options.steps;
    if (!options.save.empty() &&
        (isLast || (options.saveEvery > 0 && (step + 1) % options.saveEvery == 0)))
      save(model, pathOfStep(options.save, step + 1));
  }
}

void Session::train() {
  int64_t begin = stepsDone(*ranksModels[0]);
  if (begin >= options.steps)
    throw UsageError("the checkpoint " + options.resume + " is of step " + std::to_string(begin) +
                     " already: --steps " + std::to_string(options.steps) +
                     " counts from the beginning of the training");
  Schedule schedule = options.schedule;
  schedule.peak = *options.learningRate;
  schedule.steps = options.steps;
  std::optional<TrainingLog> log;
  if (reports())
    log.emplace(options.log, begin, options.steps);
  eachRank([&](size_t index) {
    try {
      trainRank(index, log ? &*log : nullptr, schedule, begin);
    } catch (const shardrt::Error &) {
      throw; // all ranks know
    } catch (const std::exception &error) {
      abort(error.what());
      throw;
    }
  });
  collect();
}

} // namespace shardc::run
