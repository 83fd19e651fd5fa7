// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All ranks of a program in this process.
#ifndef SHARDC_TOOLS_SHARD_RUN_SESSION_H
#define SHARDC_TOOLS_SHARD_RUN_SESSION_H

#include "runtime/include/shardrt.hpp"
#include "runtime/manifest/Manifest.h"
#include "tools/shard-run/Options.h"
#include "tools/shard-run/Tensors.h"

#include <functional>
#include <mutex>

namespace shardc::run {

struct Timing {
  double loadMs = 0;
  std::vector<double> stepMs; ///< by step; the slowest rank's
};

class Session {
public:
  /// Opens the program, makes the ranks, loads parameters and reads inputs. Throws UsageError with
  /// everything that is wrong with them.
  explicit Session(const Options &options);

  /// Runs all steps. Throws the error that came first.
  void run();
  void writeOutputs() const;
  void writeTrace() const;

  /// Ends all ranks; from any thread.
  void abort(const std::string &reason);

  int ranks() const { return world; }
  const rt::EntrySpec &entry() const { return *spec; }
  const Timing &timing() const { return times; }
  std::vector<const shardrt_model *> models() const;
  const std::vector<std::vector<OutputTensor>> &outputs() const { return results; }

private:
  /// What one rank passes to the runtime.
  struct Call {
    std::vector<shardrt_tensor> inputs, outputs;
    std::vector<std::vector<int64_t>> globalExtents; ///< of local inputs
  };
  void chooseEntry();
  void load();
  void eachRank(const std::function<void(int rank)> &body);
  void readInputs();
  void readRankInputs(int rank, std::vector<FileTensor> &inputs);
  void inferGlobalExtents();
  void allocateOutputs();
  void progress(const std::string &text) const;

  const Options &options;
  shardrt::Artifact artifact;
  rt::Manifest manifest;
  int world;
  const rt::EntrySpec *spec = nullptr;
  std::vector<shardrt::Communicator> ends;
  std::vector<std::unique_ptr<shardrt::Model>> ranksModels;
  std::vector<std::vector<FileTensor>> files;     ///< inputs by rank (one set if global)
  std::vector<std::vector<OutputTensor>> results; ///< by rank (one set if global)
  std::vector<Call> calls;
  Timing times;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_SESSION_H
