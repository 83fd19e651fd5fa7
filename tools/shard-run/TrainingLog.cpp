// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/TrainingLog.h"

#include "support/JsonText.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

namespace shardc::run {

std::string StepReport::json() const {
  std::string text = "{\"step\": " + std::to_string(step) + ", \"loss\": " + jsonNumber(loss) +
                     ", \"learning_rate\": " + jsonNumber(learningRate);
  if (gradNorm)
    text += ", \"grad_norm\": " + jsonNumber(*gradNorm);
  if (skipped)
    text += std::string(", \"skipped\": ") + (*skipped ? "true" : "false");
  return text + ", \"seconds\": " + jsonNumber(seconds) + "}";
}

/// The lines of a file up to that of step `last`.
static std::string linesUpTo(const std::string &path, int64_t last) {
  std::string text, line;
  std::ifstream file(path);
  long long step = 0;
  while (last > 0 && std::getline(file, line))
    if (std::sscanf(line.c_str(), "{\"step\": %lld,", &step) == 1 && step <= last)
      text += line + "\n";
  return text;
}

TrainingLog::TrainingLog(const std::string &path, int64_t begin, int64_t steps)
    : path(path), steps(steps) {
  if (path.empty() && isatty(STDERR_FILENO))
    return;
  bool isFile = !path.empty() && path != "-";
  const std::string kept = isFile ? linesUpTo(path, begin) : "";
  file = isFile ? std::fopen(path.c_str(), "w") : stdout;
  if (!file || std::fputs(kept.c_str(), file) < 0)
    throw std::runtime_error(path + ": cannot write the log: " + std::strerror(errno));
}

TrainingLog::~TrainingLog() {
  if (file && file != stdout)
    std::fclose(file);
  if (isShown)
    std::fputc('\n', stderr);
}

void TrainingLog::add(const StepReport &report) {
  if (!file)
    return showProgress(report);
  if (std::fprintf(file, "%s\n", report.json().c_str()) < 0 || std::fflush(file) != 0)
    throw std::runtime_error((file == stdout ? "standard output" : path) +
                             ": cannot write the log: " + std::strerror(errno));
}

void TrainingLog::showProgress(const StepReport &report) {
  std::fprintf(stderr, "\rstep %lld of %lld  loss %.4f  learning rate %.3g  %.1f ms%s\x1b[K",
               static_cast<long long>(report.step), static_cast<long long>(steps), report.loss,
               report.learningRate, report.seconds * 1e3,
               report.skipped.value_or(false) ? "  skipped" : "");
  isShown = true;
}

} // namespace shardc::run
