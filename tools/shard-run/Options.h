// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TOOLS_SHARD_RUN_OPTIONS_H
#define SHARDC_TOOLS_SHARD_RUN_OPTIONS_H

#include "tools/shard-run/Schedule.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardc::run {

/// A mistake of the user's; the message is complete.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string artifact;
  std::optional<int> ranks;
  bool processes = false; ///< ranks are processes that this one starts
  std::string weights;
  std::vector<std::string> inputs; ///< FILE or NAME=FILE
  std::string outputs;
  std::string entry; ///< empty: the first
  int steps = 1;
  std::vector<std::string> batches; ///< of a training; as `inputs`
  std::optional<double> learningRate;
  Schedule schedule; ///< without its peak and number of steps
  std::string log;   ///< of the steps of a training; empty: standard output or a line of progress
  std::string save;  ///< a checkpoint; empty: none
  int saveEvery = 0; ///< steps; 0: at the end only
  std::string resume;
  bool init = false;           ///< parameters begin as the plan says
  std::optional<int64_t> seed; ///< of random numbers
  std::string trace;
  std::string flightRecord; ///< a folder; empty: none is written
  std::string postmortem;   ///< a folder to report on; empty: run the program
  bool profile = false;
  bool progress = false;
  bool check = false;
  double timeout = 600;
  int threads = 0;
  std::string device; ///< a number or "emulated"; empty: by rank
  bool local = false;
  bool overlap = true;
  bool json = false;
  bool manifest = false;
  bool help = false;
  bool version = false;

  bool recordsEvents() const { return !trace.empty() || profile; }
};

/// Throws UsageError with everything that is wrong.
Options parseOptions(int argc, char **argv);
const char *helpText();

/// The parts of one message, a line each.
std::string lines(const std::vector<std::string> &texts);

/// A path for one rank: %r stands for its number.
std::string pathOfRank(const std::string &path, int rank);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_OPTIONS_H
