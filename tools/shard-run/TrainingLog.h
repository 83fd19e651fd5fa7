// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a training says of its steps.
#ifndef SHARDC_TOOLS_SHARD_RUN_TRAININGLOG_H
#define SHARDC_TOOLS_SHARD_RUN_TRAININGLOG_H

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace shardc::run {

struct StepReport {
  int64_t step = 0; ///< counts from 1
  double loss = 0;  ///< the mean of the step's micro-batches
  double learningRate = 0;
  std::optional<double> gradNorm;
  std::optional<bool> skipped;
  double seconds = 0;

  /// {"step": 1, "loss": 2.5, "learning_rate": 0.001, ...}; null stands for what is not finite.
  std::string json() const;
};

/// JSON lines in a file, each written out at once; without a file a line of progress on standard
/// error where that is a terminal, else JSON lines on standard output.
class TrainingLog {
public:
  /// `path`: empty, "-" for standard output, or a file. Of one that is there already a training
  /// that goes on behind step `begin` keeps the lines up to that. Throws std::runtime_error.
  TrainingLog(const std::string &path, int64_t begin, int64_t steps);
  ~TrainingLog();
  TrainingLog(const TrainingLog &) = delete;

  void add(const StepReport &report);

private:
  void showProgress(const StepReport &report);

  const std::string path;
  const int64_t steps;
  FILE *file = nullptr; ///< null: a terminal
  bool isShown = false;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_TRAININGLOG_H
