// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ranks of a program that run in this process: all of them, or the one that a launcher has
// started this process for.
#ifndef SHARDC_TOOLS_SHARD_RUN_SESSION_H
#define SHARDC_TOOLS_SHARD_RUN_SESSION_H

#include "runtime/include/shardrt.hpp"
#include "runtime/manifest/Manifest.h"
#include "tools/shard-run/Options.h"
#include "tools/shard-run/Profile.h"
#include "tools/shard-run/Tensors.h"

#include <functional>
#include <mutex>
#include <optional>

namespace shardc::run {

struct Timing {
  double loadMs = 0;
  std::vector<double> stepMs; ///< by step; the slowest rank's
};

/// What went wrong before the first step or behind the last is known to all ranks, and rank 0 says
/// it.
struct ToldByRankZero : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "a, b"; "none".
std::string joined(const std::vector<std::string> &names);

class TrainingLog;

class Session {
public:
  /// Joins the launcher's world, if there is one.
  explicit Session(const Options &options);

  /// Opens the program, makes the ranks, loads parameters and reads inputs. Throws UsageError with
  /// everything that is wrong with them, on any rank (ToldByRankZero on the others).
  void prepare();
  /// Lets the program make the parameters, where the options say so. Throws the error that came
  /// first.
  void initialise();
  /// Whether the steps are those of a training, on batches.
  bool trains() const { return !options.batches.empty(); }
  /// Runs the steps of a training. Throws the error that came first.
  void train();
  /// Runs all steps. Throws the error that came first.
  void run();
  /// Writes the outputs and the trace. Throws if a rank cannot, on all ranks.
  void write();

  /// Ends all ranks; from any thread.
  void abort(const std::string &reason);

  int ranks() const { return world; }
  /// Whether the other ranks are other processes; then this is one of them.
  bool isDistributed() const { return launched != nullptr; }
  int rank() const { return firstRank; }
  /// Whether this process reports.
  bool reports() const { return firstRank == 0; }
  const rt::EntrySpec &entry() const { return *spec; }
  const Timing &timing() const { return times; }
  /// Of all ranks, after run.
  const Profile &profile() const { return total; }
  const std::vector<std::vector<OutputTensor>> &outputs() const { return results; }

private:
  /// What one rank passes to the runtime.
  struct Call {
    std::vector<shardrt_tensor> inputs, outputs;
    std::vector<std::vector<int64_t>> globalExtents; ///< of local inputs
  };
  void openArtifact();
  void chooseEntry();
  void load();
  void setSeed(shardrt::Model &model) const;
  /// Calls the body for each rank of this process, with its index here.
  void eachRank(const std::function<void(size_t index)> &body);
  void readInputs();
  void readRankInputs(int rank, std::vector<FileTensor> &inputs);
  /// Once all ranks have read theirs.
  void passInputs();
  void inferGlobalExtents();
  /// What the model has trained so far.
  int64_t stepsDone(shardrt::Model &model) const;
  bool isLearningRate(size_t input) const;
  void checkBatches(const std::vector<FileTensor> &tensors);
  /// Lets the inputs of a call be those of one batch.
  void setBatch(Call &call, int64_t batch) const;
  /// Throws UsageError where a checkpoint cannot be written later, as far as that can be told: a
  /// training is not to end with it.
  void checkSavePath(int64_t step) const;
  /// Writes a checkpoint, together with all ranks.
  void save(shardrt::Model &model, const std::string &path) const;
  void trainRank(size_t index, TrainingLog *log, const Schedule &schedule, int64_t begin);
  void allocateOutputs();
  bool hasState(const std::string &name) const;
  void writeOutputs() const;
  void writeTrace() const;
  /// Throws if a rank has a problem, on all ranks.
  void agree(const std::vector<std::string> &problems,
             const char *topic = "whether all ranks can start");
  /// What each rank passes, by rank.
  std::vector<std::string> exchange(const char *topic, const std::string &mine) const;
  /// Adds the times and profiles of all ranks.
  void collect();
  void progress(const std::string &text) const;
  int rankOf(size_t index) const { return firstRank + int(index); }
  size_t ranksHere() const { return isDistributed() ? 1 : size_t(world); }

  const Options &options;
  std::optional<shardrt::Artifact> artifact;
  // Behind it: what ranks say about each other names its ops.
  shardrt::Communicator launched; ///< null: all ranks are threads of this process
  int firstRank = 0;              ///< of this process
  rt::Manifest manifest;
  int world = 0;
  const rt::EntrySpec *spec = nullptr;
  std::mutex endsMutex;    ///< guards that `ends` changes, and the reason
  std::string abortReason; ///< of `abort`, for ranks that are not there yet; or empty
  std::vector<shardrt::Communicator> ends;
  // By index of the rank here.
  std::vector<std::unique_ptr<shardrt::Model>> ranksModels;
  std::vector<Call> calls;
  std::vector<std::vector<FileTensor>> files;     ///< inputs by rank (one set if global)
  std::vector<std::vector<OutputTensor>> results; ///< by rank (one set if global)
  int64_t batches = 1;                            ///< of a training, known to rank 0
  double anyRate = 0; ///< where the learning rate lies until it is known
  Timing times;
  Profile total;
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_SESSION_H
