// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model's parameters, buffers and states from outside of runs, one by its name.
#include "runtime/model/Model.h"
#include "runtime/support/Types.h"
#include "support/NearestNames.h"

#include <algorithm>

namespace shardc::rt {

namespace {

/// A run of no entry, which takes or returns one parameter: arguments are checked as those of runs.
EntrySpec passing(const char *what, const ParameterSpec &spec, bool out) {
  EntrySpec entry;
  entry.name = what + (" of " + spec.name);
  TensorSpec tensor = spec;
  if (out) {
    static_cast<TensorSpec &>(entry.outputs.emplace_back()) = std::move(tensor);
    entry.userOutputs.push_back(0);
  } else {
    entry.inputs.push_back(std::move(tensor));
  }
  return entry;
}

} // namespace

size_t Model::parameterNamed(const std::string &name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < manifest.parameters.size(); ++i)
    for (const std::string &one : manifest.parameters[i].names) {
      if (one == name)
        return i;
      names.push_back(one);
    }
  std::string near = shardc::NearestNames(names).find(name);
  throw Failure(SHARDRT_NOT_FOUND, "the program has no parameter, buffer or state " + name +
                                       (near.empty() ? "" : "; it has " + near));
}

void Model::checkAccess(const ParameterSpec &spec) {
  if (spec.isWeight() || !torn.empty())
    checkLoaded();
  else
    makeRoom();
}

void Model::getState(const std::string &name, const shardrt_tensor &to) {
  size_t index = parameterNamed(name);
  const ParameterSpec &spec = manifest.parameters[index];
  checkAccess(spec);
  if (spec.layout.hasPartial() && to.scope != SHARDRT_LOCAL)
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  name + " is a sum that ranks hold parts of: only its local parts can be read");
  EntrySpec entry = passing("the value", spec, true);
  Slice slice = Slice::make(spec.layout, spec.extents(), coordinates[0]);
  std::span<const shardrt_tensor> outputs(&to, 1);
  checkOutputs(entry, {{}, {slice}}, outputs, self == 0);
  try {
    bool moves = to.scope == SHARDRT_GLOBAL || to.scope == SHARDRT_ROOT;
    if (moves && manifest.worldSize > 1) {
      ++runNumber; // it is one to the communicator
      compareRanks(RootStatement::tensorsOf({}, outputs));
    }
    returnOutput(spec, slice, {parameters.pointers()[index], true}, to);
  } catch (const Failure &failure) {
    failRun(failure);
  }
}

void Model::setState(const std::string &name, const shardrt_tensor &given) {
  size_t index = parameterNamed(name);
  const ParameterSpec &spec = manifest.parameters[index];
  checkAccess(spec);
  if (spec.isConstant)
    throw Failure(SHARDRT_INVALID_ARGUMENT, name + " is a constant of the program");
  std::vector<int64_t> extents = spec.extents();
  bool isOne = std::ranges::all_of(extents, [](int64_t extent) { return extent == 1; });
  if (given.scope != SHARDRT_LOCAL && given.scope != SHARDRT_GLOBAL &&
      !(given.scope == SHARDRT_ROOT && isOne))
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  name +
                      ": a value is SHARDRT_GLOBAL or SHARDRT_LOCAL on every rank, or one number "
                      "of rank 0 (SHARDRT_ROOT)");
  shardrt_tensor from = given;
  std::vector<std::byte> received;
  if (given.scope == SHARDRT_ROOT) {
    received = receiveState(spec, given);
    from = {};
    from.data = received.data();
    from.type = spec.type;
    from.rank = int32_t(extents.size());
    from.extents = extents.data();
    from.scope = SHARDRT_GLOBAL;
  }
  EntrySpec entry = passing("the new value", spec, false);
  bindSymbols(manifest, entry, {&from, 1}, coordinates, true);
  noteRandomNumber(index, from);
  Slice slice = Slice::make(spec.layout, spec.extents(), coordinates[0]);
  if (from.scope == SHARDRT_LOCAL)
    slice = Slice::make(shardc::Layout(), slice.local, shardc::Coordinate());
  parameters.assign(index, manifest, executor->memory(), slice, from);
  prepareEntries();
}

void Model::visitStates(shardrt_state_fn visit, void *context) const {
  for (const ParameterSpec &spec : manifest.parameters) {
    if (spec.isConstant)
      continue;
    const std::vector<int64_t> extents = spec.extents();
    const Slice slice = Slice::make(spec.layout, extents, coordinates[0]);
    shardrt_state state{};
    state.name = spec.name.c_str();
    state.kind = spec.isState() ? SHARDRT_STATE : SHARDRT_PARAMETER;
    state.flags =
        (spec.isMutable ? SHARDRT_STATE_MUTABLE : 0u) | (spec.isSaved ? SHARDRT_STATE_SAVED : 0u);
    for (auto [shape, from] :
         {std::pair(&state.global, &extents), std::pair(&state.local, &slice.local)}) {
      shape->type = spec.type;
      shape->rank = int32_t(from->size());
      std::ranges::copy(*from, shape->extents);
    }
    visit(context, &state);
  }
}

} // namespace shardc::rt
