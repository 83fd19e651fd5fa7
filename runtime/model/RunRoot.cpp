// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs in which tensors are on rank 0 only: what ranks agree on before, and moving the data.
#include "runtime/model/Model.h"

#include <algorithm>

namespace shardc::rt {

namespace {

constexpr const char *rootRunTopic = "the arguments of a run of which rank 0 has tensors";

/// Rank 0's inputs as it checks them.
std::vector<shardrt_tensor> asGlobal(std::span<const shardrt_tensor> inputs) {
  std::vector<shardrt_tensor> out(inputs.begin(), inputs.end());
  for (shardrt_tensor &tensor : out)
    if (tensor.scope == SHARDRT_ROOT)
      tensor.scope = SHARDRT_GLOBAL;
  return out;
}

} // namespace

std::vector<std::optional<Slice>> Model::partsOf(const TensorSpec &spec, const Slice &mine,
                                                 bool writersOnly) const {
  std::vector<std::optional<Slice>> parts(size_t(manifest.worldSize));
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    auto where = spec.layout.mesh.coordinateOf(int64_t(rank));
    if (!writersOnly || writesPart(spec.layout, where))
      parts[rank] = Slice::make(spec.layout, mine.global, where);
  }
  return parts;
}

RootMover Model::rootMover() {
  return RootMover(
      uint32_t(self), executor->memory(), rootPacked,
      [this](const shardrt_collective &collective, const shardrt_collective_tensor &operand) {
        executor->collective(collective, *everybody, runNumber, operand);
      });
}

std::vector<RootStatement> Model::agreeToStart(const char *topic, RootStatement mine,
                                               const Failure &reason) {
  mine.status = reason.status;
  mine.reason = reason.message;
  std::vector<RootStatement> all;
  try {
    compareRanks(mine.tensors);
    Clock::time_point deadline = deadlineAfter(timeout);
    for (const std::string &text :
         communicator.exchange({topic, runNumber}, mine.encode(), deadline))
      all.push_back(RootStatement::decode(text, uint32_t(all.size())));
    // One that cannot start may not know what it would have run.
    bool refused = std::ranges::any_of(all, &RootStatement::status);
    if (std::string problem = refused ? "" : rootDifferences(all); !problem.empty())
      throw Failure(SHARDRT_MISMATCH, topic + (": " + problem));
  } catch (const Failure &failure) {
    failRun(failure);
  }
  // All ranks know who refuses, and nobody has started: the world goes on.
  if (mine.status != SHARDRT_OK)
    throw Failure(mine.status, mine.reason);
  const char *what = topic == rootRunTopic ? " did not start this run: " : ": ";
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].status != SHARDRT_OK)
      throw Failure(all[rank].status, "rank " + std::to_string(rank) + what + all[rank].reason);
  return all;
}

Model::Bound Model::bindWithRoot(const char *entryName, std::span<shardrt_tensor> inputs,
                                 std::span<const shardrt_tensor> outputs, RootStatement &said) {
  RootStatement mine;
  Failure reason(SHARDRT_OK, "");
  Bound bound;
  mine.tensors = RootStatement::tensorsOf(inputs, outputs);
  try {
    mine.entry = entryToRun(entryName).spec->name;
    if (self == 0) {
      bound = bind(entryName, asGlobal(inputs), outputs);
      for (const shardrt_tensor &input : inputs)
        if (input.scope == SHARDRT_ROOT)
          mine.extents.emplace_back(input.extents, input.extents + input.rank);
    } else {
      checkInputCount(*entryNamed(entryName).spec, inputs.size());
      checkOutputCount(*entryNamed(entryName).spec, outputs.size());
    }
  } catch (const Failure &failure) {
    reason = failure;
  } catch (const std::exception &error) {
    reason = Failure(SHARDRT_INTERNAL, error.what());
  }
  std::vector<RootStatement> all = agreeToStart(rootRunTopic, mine, reason);
  if (self == 0)
    return bound;
  said = std::move(all[0]);
  auto next = said.extents.begin();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].scope != SHARDRT_ROOT || next == said.extents.end())
      continue;
    const TensorSpec &spec = entryNamed(entryName).spec->inputs[i];
    inputs[i] = {};
    inputs[i].scope = SHARDRT_ROOT;
    inputs[i].type = spec.type;
    inputs[i].rank = int32_t(next->size());
    inputs[i].extents = next->data();
    ++next;
  }
  return bindOrRefuse(entryName, inputs, outputs);
}

} // namespace shardc::rt
