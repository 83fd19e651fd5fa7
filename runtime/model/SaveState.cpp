// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model's checkpoints: in one file that rank 0 writes, or in a file of each rank.
#include "runtime/model/Checkpoint.h"
#include "runtime/model/Model.h"
#include "runtime/model/ShardedCheckpoint.h"
#include "runtime/support/Types.h"

#include <memory>

namespace shardc::rt {

namespace {

constexpr const char *beginTopic = "the beginning of a checkpoint";
constexpr const char *partsTopic = "the parts of a checkpoint";
constexpr const char *endTopic = "the end of a checkpoint";

RootStatement statementOf(const char *what) {
  RootStatement mine;
  mine.entry = what;
  mine.tensors = "none";
  return mine;
}

/// What goes wrong in `action`; SHARDRT_OK if nothing does.
template <typename Action> Failure failureOf(Action action) {
  try {
    action();
  } catch (const Failure &failure) {
    return failure;
  } catch (const std::exception &error) {
    return Failure(SHARDRT_INTERNAL, error.what());
  }
  return Failure(SHARDRT_OK, "");
}

} // namespace

void Model::resumeFile(const std::string &path) {
  adoptParameters(ParameterSet::fromFile(manifest, program, coordinates[0], executor->memory(),
                                         path, ParameterSet::Reading::Checkpoint));
  log.write(SHARDRT_LOG_INFO, "resumed " + path);
}

void Model::save(const std::string &path) {
  ++runNumber;
  const RootStatement mine = statementOf("a checkpoint");
  const std::vector<size_t> saved = savedParameters(manifest);
  std::unique_ptr<CheckpointFile> file;
  Failure reason = failureOf([&] {
    checkLoaded();
    if (self != 0)
      return;
    std::vector<shardc::SafetensorsEntry> entries;
    for (size_t i : saved) {
      const ParameterSpec &spec = manifest.parameters[i];
      entries.push_back(
          {spec.name, shardc::elementTypeFromRuntime(spec.type).value(), spec.extents()});
    }
    file = std::make_unique<CheckpointFile>(std::move(entries), checkpointMetadata(manifest), path);
  });
  agreeToStart(beginTopic, mine, reason);
  try {
    for (size_t k = 0; k < saved.size(); ++k) {
      const ParameterSpec &spec = manifest.parameters[saved[k]];
      const std::vector<int64_t> extents = spec.extents();
      Slice slice = Slice::make(spec.layout, extents, coordinates[0]);
      shardrt_tensor whole{};
      whole.type = spec.type;
      whole.rank = int32_t(extents.size());
      whole.extents = extents.data();
      whole.scope = SHARDRT_ROOT;
      if (file)
        whole.data = file->dataOf(k);
      returnOutput(spec, slice, {parameters.pointers()[saved[k]], true}, whole);
    }
  } catch (const Failure &failure) {
    failRun(failure);
  }
  // Rank 0 alone can fail now, and nothing depends on it: the world goes on.
  reason = failureOf([&] {
    if (file)
      file->commit();
  });
  agreeToStart(endTopic, mine, reason);
  log.write(SHARDRT_LOG_INFO, "saved " + path);
}

void Model::saveSharded(const std::string &folder) {
  ++runNumber;
  RootStatement mine = statementOf("a checkpoint in a file of each rank");
  Failure reason = failureOf([&] {
    checkLoaded();
    if (folder.empty())
      throw Failure(SHARDRT_INVALID_ARGUMENT, "the folder of a checkpoint has no name");
    if (self == 0)
      mine.note = ShardedCheckpoint::begin(folder);
  });
  const std::string save = agreeToStart(beginTopic, mine, reason)[0].note;
  const ShardedCheckpoint checkpoint(manifest, folder, save);
  try {
    reason = failureOf(
        [&] { checkpoint.write(uint32_t(self), parameters.pointers(), executor->memory()); });
    agreeToStart(partsTopic, mine, reason);
    reason = failureOf([&] {
      if (self == 0)
        checkpoint.commit();
    });
    if (reason.status != SHARDRT_OK)
      checkpoint.discard();
  } catch (...) {
    if (self == 0)
      checkpoint.discard();
    throw;
  }
  agreeToStart(endTopic, mine, reason);
  log.write(SHARDRT_LOG_INFO, "saved " + folder + ", save " + save);
}

} // namespace shardc::rt
