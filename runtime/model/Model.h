// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program bound to one rank: what shardrt_model is.
#ifndef SHARDC_RUNTIME_MODEL_MODEL_H
#define SHARDC_RUNTIME_MODEL_MODEL_H

#include "runtime/comm/Endpoint.h"
#include "runtime/executor/Executor.h"
#include "runtime/include/shardrt_states.h"
#include "runtime/manifest/Manifest.h"
#include "runtime/model/Binding.h"
#include "runtime/model/Parameters.h"
#include "runtime/model/RootTensors.h"
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
  /// Parameters and states of a checkpoint.
  void resumeFile(const std::string &path);
  void loadCallback(shardrt_find_parameter_fn find, void *context);

  /// Writes a checkpoint, together with all ranks.
  void save(const std::string &path);
  void getState(const std::string &name, const shardrt_tensor &to);
  void setState(const std::string &name, const shardrt_tensor &from);
  void visitStates(shardrt_state_fn visit, void *context) const;

  /// `entry` null: the first.
  void run(const char *entry, std::span<const shardrt_tensor> inputs,
           std::span<const shardrt_tensor> outputs);
  void outputShapes(const char *entry, std::span<const shardrt_tensor> inputs,
                    shardrt_shape *global, shardrt_shape *local, size_t count);
  void inputShard(const char *entry, size_t input, const int64_t *extents, int32_t rank,
                  shardrt_shape &local);
  void barrier();

  const EventLog &eventLog() const { return events; }
  /// Of all ranks, by rank 0; `path` is used there only.
  void writeWorldTrace(const char *path);
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
  /// Makes the packed forms of parameters again, of every entry or of none.
  void prepareEntries();
  /// Throws Failure if a parameter has no value.
  void checkLoaded() const;
  /// Gives states their initial values and parameters places, if nothing has been loaded.
  void makeRoom();
  /// What is to be read or written from outside must have a value.
  void checkAccess(const ParameterSpec &spec);
  /// Throws Failure if the program has none of this name.
  size_t parameterNamed(const std::string &name) const;
  /// Of this rank and its run.
  Identity identity(const std::string &rootTensors) const;

  /// The arguments of a run, checked.
  struct Bound {
    EntryState *entry = nullptr;
    SymbolValues symbols;
    Plan *plan = nullptr;
  };

  /// An entry whose parameters have values.
  EntryState &entryToRun(const char *name);
  Bound bind(const char *entryName, std::span<const shardrt_tensor> inputs,
             std::span<const shardrt_tensor> outputs);
  /// Tells other ranks if it fails.
  Bound bindOrRefuse(const char *entryName, std::span<const shardrt_tensor> inputs,
                     std::span<const shardrt_tensor> outputs);
  /// The same together with all ranks, where tensors are on rank 0 only: elsewhere the extents of
  /// `inputs` are set to those of rank 0, which `said` keeps.
  Bound bindWithRoot(const char *entryName, std::span<shardrt_tensor> inputs,
                     std::span<const shardrt_tensor> outputs, RootStatement &said);
  /// Tells all ranks whether this one can go on (`reason` has SHARDRT_OK), and throws what the
  /// first that cannot says; the world goes on. Returns what all ranks said.
  std::vector<RootStatement> agreeToStart(const char *topic, RootStatement mine,
                                          const Failure &reason);
  Plan &planFor(EntryState &entry, const SymbolValues &symbols);
  shardrt_frame frameFor(EntryState &entry, const SymbolValues &symbols);
  /// The seed or the offset of this rank's random state. A rank outside of the mesh has neither,
  /// but knows the seed that it was given.
  std::optional<int64_t> randomNumber(size_t index);
  /// That a parameter gets a value from the caller.
  void noteRandomNumber(size_t index, const shardrt_tensor &value);
  /// Before the first run of an entry that draws numbers: throws Failure on all ranks if they do
  /// not have the same seed and offset.
  void compareRandomState(const EntrySpec &entry);
  /// The one element that rank 0 has for a state. Collective.
  std::vector<std::byte> receiveState(const ParameterSpec &spec, const shardrt_tensor &from);

  /// `rootTensors`: which tensors of the run are on rank 0 only.
  void compareRanks(const std::string &rootTensors);
  void execute(EntryState &entry, Plan &plan, const SymbolValues &symbols,
               std::span<const shardrt_tensor> inputs, std::span<const shardrt_tensor> outputs);
  [[noreturn]] void failRun(const Failure &failure);
  /// Leaves a file with where this rank was, in the folder that SHARDRT_FLIGHT_DIR names.
  void recordFlight(const Failure &failure) const;
  Passed passInput(size_t slot, const TensorSpec &spec, const Slice &slice,
                   const shardrt_tensor &tensor);
  Passed passOwnInput(size_t slot, const Slice &slice, const shardrt_tensor &tensor, int64_t bytes);
  Passed passOutput(size_t slot, const TensorSpec &spec, const Slice &slice,
                    const shardrt_tensor &tensor);
  void returnOutput(const TensorSpec &spec, const Slice &slice, const Passed &passed,
                    const shardrt_tensor &tensor);
  /// Every rank's part of a tensor; nothing for those that do not write it, if `writersOnly`.
  std::vector<std::optional<Slice>> partsOf(const TensorSpec &spec, const Slice &mine,
                                            bool writersOnly) const;
  RootMover rootMover();
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

  Buffer rootPacked; ///< what rank 0 packs of tensors that only it has
  ParameterSet parameters;
  std::vector<EntryState> entries;
  bool ranksCompared = false;
  bool randomCompared = false;
  std::optional<int64_t> seedOutside; ///< see randomNumber
  uint64_t runNumber = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_MODEL_H
