// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The random state of a program, `random.seed` and `random.offset` (semantics.md N2): ranks that
// begin to draw numbers compare it, those outside of the mesh too.
#include "runtime/model/Model.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstring>

namespace shardc::rt {

namespace {

constexpr const char *randomTopic = "the comparison of random.seed and random.offset";
constexpr const char *rootStateTopic = "a state that rank 0 gives";
constexpr const char *seedName = "random.seed", *offsetName = "random.offset";

/// "SEED on rank 0, SEED on ranks 1 and 2"; empty where all that have one have the same.
std::string differences(const std::vector<std::string> &values) {
  std::map<std::string, std::vector<uint32_t>> ranksOf;
  for (uint32_t rank = 0; rank < values.size(); ++rank)
    if (!values[rank].empty())
      ranksOf[values[rank]].push_back(rank);
  std::string text;
  if (ranksOf.size() > 1)
    for (auto &[value, ranks] : ranksOf)
      text += (text.empty() ? "" : ", ") + value + " on " + rankList(ranks);
  return text;
}

} // namespace

std::optional<int64_t> Model::randomNumber(size_t index) {
  const ParameterSpec &spec = manifest.parameters[index];
  if (!coordinates[0])
    return spec.name == seedName ? seedOutside : std::nullopt;
  Slice slice = Slice::make(spec.layout, spec.extents(), coordinates[0]);
  int64_t value = 0;
  executor->memory().give(&value, nullptr, slice, parameters.pointers()[index], sizeof value);
  return value;
}

void Model::noteRandomNumber(size_t index, const shardrt_tensor &value) {
  const std::string &name = manifest.parameters[index].name;
  if (name != seedName && name != offsetName)
    return;
  randomCompared = false;
  if (coordinates[0] || name != seedName || value.scope != SHARDRT_GLOBAL || !value.data)
    return;
  seedOutside.emplace();
  std::memcpy(&*seedOutside, value.data, sizeof *seedOutside);
}

void Model::compareRandomState(const EntrySpec &entry) {
  bool draws = std::ranges::any_of(entry.outputs, [&](const OutputSpec &output) {
    return output.updates && manifest.parameters[*output.updates].name == offsetName;
  });
  if (!draws || randomCompared || manifest.worldSize == 1)
    return;
  std::string problem;
  try {
    compareRanks("none");
    std::string mine;
    for (const char *name : {seedName, offsetName}) {
      std::optional<int64_t> number = randomNumber(parameterNamed(name));
      mine += (number ? std::to_string(*number) : "") + "\n";
    }
    std::vector<std::string> all =
        communicator.exchange({randomTopic, runNumber}, mine, deadlineAfter(timeout));
    for (const char *name : {seedName, offsetName}) {
      std::vector<std::string> values;
      for (std::string &text : all) {
        size_t end = std::min(text.find('\n'), text.size());
        values.push_back(text.substr(0, end));
        text.erase(0, end + 1);
      }
      if (std::string differ = differences(values); !differ.empty())
        problem += (problem.empty() ? "ranks differ in " : "; ") + (name + (": " + differ));
    }
  } catch (const Failure &failure) {
    failRun(failure);
  }
  // All ranks say the same, and nothing has started: the world goes on.
  if (!problem.empty())
    throw Failure(SHARDRT_MISMATCH,
                  problem + ": set the same on every rank, or let rank 0 give it (SHARDRT_ROOT)");
  randomCompared = true;
}

std::vector<std::byte> Model::receiveState(const ParameterSpec &spec, const shardrt_tensor &from) {
  ++runNumber; // it is one to the communicator
  const size_t bytes = size_t(typeBytes(spec.type));
  std::string mine;
  if (self == 0 && from.data && from.type == spec.type)
    mine.assign(static_cast<const char *>(from.data), bytes);
  std::vector<std::string> all;
  try {
    compareRanks("none");
    all = communicator.exchange({rootStateTopic, runNumber}, mine, deadlineAfter(timeout));
  } catch (const Failure &failure) {
    failRun(failure);
  }
  if (all[0].size() != bytes)
    throw Failure(SHARDRT_INVALID_ARGUMENT, spec.name + ": rank 0 gives no value of its type");
  std::vector<std::byte> value(bytes);
  std::memcpy(value.data(), all[0].data(), bytes);
  return value;
}

} // namespace shardc::rt
