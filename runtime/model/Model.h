// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program bound to one rank: what shardrt_model is.
#ifndef SHARDC_RUNTIME_MODEL_MODEL_H
#define SHARDC_RUNTIME_MODEL_MODEL_H

#include "runtime/comm/Endpoint.h"
#include "runtime/executor/Executor.h"
#include "runtime/manifest/Manifest.h"
#include "runtime/model/Binding.h"
#include "runtime/model/Parameters.h"
#include "runtime/support/Log.h"

#include <map>

namespace shardc::rt {

class Model {
public:
  /// Checks the ABI version, the manifest, and that the tables fit it. Throws Failure.
  static Manifest parseArtifact(const shardrt_manifest &artifact);

  /// Throws Failure with everything that is missing or different.
  Model(const shardrt_manifest &artifact, const shardrt_config &config,
        const ExecutorRegistry &executors = ExecutorRegistry::builtIn());
  ~Model();
  Model(const Model &) = delete;

  void loadFile(const std::string &path);
  void loadCallback(shardrt_find_parameter_fn find, void *context);

  /// `entry` null: the first.
  void run(const char *entry, std::span<const shardrt_tensor> inputs,
           std::span<const shardrt_tensor> outputs);
  void outputShapes(const char *entry, std::span<const shardrt_tensor> inputs,
                    shardrt_shape *global, shardrt_shape *local, size_t count);
  void inputShard(const char *entry, size_t input, const int64_t *extents, int32_t rank,
                  shardrt_shape &local);
  void barrier();

  const EventLog &eventLog() const { return events; }
  void clearEvents() { events.clear(); }
  shardrt_memory memoryUsed() const;
  uint32_t rank() const { return uint32_t(self); }

private:
  /// An entry for one tuple of symbols.
  struct Plan {
    Shapes shapes;
    std::vector<int64_t> offsets;
    uint64_t arenaBytes = 0;
  };
  /// What an entry keeps between runs.
  struct EntryState {
    const shardrt_entry *program = nullptr;
    const EntrySpec *spec = nullptr;
    const shardrt_variant *variant = nullptr; ///< null: this rank has nothing to do
    Buffer persistent;
    std::map<SymbolValues, Plan> plans;
  };
  /// A tensor of one call, as the program sees it and as the caller gave it.
  struct Passed {
    void *data = nullptr; ///< dense, local
    bool staged = false;  ///< data is a staging buffer
  };

  /// The kind of executor for the artifact's target; throws if it cannot run here.
  const ExecutorKind &checkArtifact(const shardrt_config &config,
                                    const ExecutorRegistry &executors) const;
  EntryState &entryNamed(const char *name);
  void adoptParameters(ParameterSet parameters);
  Identity identity() const;

  Plan &planFor(EntryState &entry, const SymbolValues &symbols);
  shardrt_frame frameFor(EntryState &entry, const SymbolValues &symbols);
  void compareRanks();
  void execute(EntryState &entry, Plan &plan, const SymbolValues &symbols,
               std::span<const shardrt_tensor> inputs, std::span<const shardrt_tensor> outputs);
  [[noreturn]] void failRun(const Failure &failure);
  Passed passInput(size_t slot, const TensorSpec &spec, const Slice &slice,
                   const shardrt_tensor &tensor);
  Passed passOutput(size_t slot, const TensorSpec &spec, const Slice &slice,
                    const shardrt_tensor &tensor);
  void returnOutput(const TensorSpec &spec, const Slice &slice, const Passed &passed,
                    const shardrt_tensor &tensor);
  void gatherGlobal(const TensorSpec &spec, const Slice &slice, const void *local,
                    const shardrt_tensor &tensor);

  const Manifest manifest;
  const shardrt_program &program;
  const int32_t self;
  const Log log;
  const double timeout;
  const bool usesCollectives;               ///< of more than one rank
  const bool checksMemory;                  ///< SHARDRT_CHECK_MEMORY
  const std::shared_ptr<Endpoint> endpoint; ///< of an own world of one, if none was given
  Communicator &communicator;
  const Coordinates coordinates; ///< parameters are on the program's own mesh, the first
  EventLog events;
  std::vector<Group *> groups; ///< this rank's set of each group of the program; null: in none
  Group *everybody = nullptr;
  std::unique_ptr<Executor> executor;

  ParameterSet parameters;
  std::vector<EntryState> entries;
  bool ranksCompared = false;
  uint64_t runNumber = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_MODEL_H
