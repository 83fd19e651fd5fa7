// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of an entry: shapes, the caller's tensors in and out, the generated code.
#include "runtime/executor/WriteCheck.h"
#include "runtime/model/Model.h"
#include "runtime/support/Copy.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

namespace shardc::rt {

namespace {

constexpr size_t gatherAlignment = 64;
/// Plans of so many tuples of symbols are kept; a program that sees more starts over.
constexpr size_t maxPlans = 1024;

/// How global outputs are put together. Of static life, like the descriptors of an artifact: other
/// ranks' messages may name it at any time.
const shardrt_collective_operand bytesOperand{SHARDRT_U8, 1, 0, -1};
const shardrt_collective globalGather{"the gather of a global output",
                                      "",
                                      &bytesOperand,
                                      nullptr,
                                      SHARDRT_ALL_GATHER,
                                      SHARDRT_REDUCE_NONE,
                                      0,
                                      1,
                                      0,
                                      0,
                                      0};

/// Where this rank's part begins in the caller's memory, if it is dense and aligned there, and the
/// program can use it; else null.
void *inPlace(const ProgramMemory &memory, const Slice &slice, const shardrt_tensor &tensor,
              int64_t bytes) {
  std::vector<int64_t> strides = stridesOf(tensor);
  if (!slice.isBox() || slice.elements() == 0 || !isDense(slice.local, strides.data()))
    return nullptr;
  char *first = static_cast<char *>(tensor.data) + slice.offset(strides.data()) * bytes;
  bool aligned = reinterpret_cast<uintptr_t>(first) % uintptr_t(bytes) == 0;
  return aligned && memory.reaches(first) ? first : nullptr;
}

/// Which of these byte ranges overlap another one, in n log n. Only ranges marked as written
/// matter: two that are only read may overlap.
struct Range {
  const char *begin;
  size_t bytes;
  bool written;
  size_t index;
};
std::vector<size_t> overlappingWrites(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  std::vector<size_t> out;
  const char *readEnd = nullptr, *writeEnd = nullptr;
  size_t lastWritten = 0;
  for (const Range &range : ranges) {
    if (range.written && (range.begin < readEnd || range.begin < writeEnd))
      out.push_back(range.index);
    else if (!range.written && range.begin < writeEnd)
      out.push_back(lastWritten);
    const char *end = range.begin + range.bytes;
    if (range.written && end > writeEnd) {
      writeEnd = end;
      lastWritten = range.index;
    }
    if (!range.written)
      readEnd = std::max(readEnd, end);
  }
  return out;
}

} // namespace

Model::Plan &Model::planFor(EntryState &entry, const SymbolValues &symbols) {
  auto found = entry.plans.find(symbols);
  if (found != entry.plans.end())
    return found->second;
  if (entry.plans.size() >= maxPlans)
    entry.plans.clear();
  Plan plan;
  plan.shapes = evaluateShapes(*entry.spec, symbols, coordinates);
  if (const shardrt_variant *variant = entry.variant) {
    plan.offsets.resize(variant->n_offsets);
    plan.arenaBytes = variant->arena_bytes;
    if (variant->plan) {
      shardrt_frame frame = frameFor(entry, symbols);
      frame.offsets = plan.offsets.data();
      frame.arena_bytes = 0;
      executor->plan(*variant, frame);
      plan.arenaBytes = frame.arena_bytes;
    }
  }
  return entry.plans.emplace(symbols, std::move(plan)).first->second;
}

shardrt_frame Model::frameFor(EntryState &entry, const SymbolValues &symbols) {
  shardrt_frame frame{};
  frame.persistent = entry.persistent.data();
  frame.parameters = parameters.pointers();
  frame.symbols = symbols.data();
  frame.coordinates = coordinates[0] ? coordinates[0]->data() : nullptr;
  frame.rank = self;
  frame.world = manifest.worldSize;
  return frame;
}

Model::Passed Model::passInput(size_t slot, const TensorSpec &spec, const Slice &slice,
                               const shardrt_tensor &tensor) {
  int64_t bytes = typeBytes(spec.type);
  bool fromRoot = tensor.scope == SHARDRT_ROOT && manifest.worldSize > 1;
  if (fromRoot && self != 0) {
    void *data =
        slice.elements() > 0 ? executor->staging(slot, size_t(slice.elements() * bytes)) : nullptr;
    rootMover().scatter(partsOf(spec, slice, false), data, nullptr, bytes);
    return {data, true};
  }
  Passed passed = passOwnInput(slot, slice, tensor, bytes);
  if (fromRoot)
    rootMover().scatter(partsOf(spec, slice, false), passed.data, &tensor, bytes);
  return passed;
}

Model::Passed Model::passOwnInput(size_t slot, const Slice &slice, const shardrt_tensor &tensor,
                                  int64_t bytes) {
  const Slice &part = tensor.scope == SHARDRT_LOCAL ? Slice::whole(slice.local) : slice;
  if (part.elements() == 0)
    return {};
  if (void *data = inPlace(executor->memory(), part, tensor, bytes))
    return {data, false};
  void *data = executor->staging(slot, size_t(part.elements() * bytes));
  executor->memory().take(data, part, tensor.data, stridesOf(tensor).data(), bytes);
  return {data, true};
}

Model::Passed Model::passOutput(size_t slot, const TensorSpec &spec, const Slice &slice,
                                const shardrt_tensor &tensor) {
  int64_t bytes = typeBytes(spec.type);
  if (slice.elements() == 0)
    return {};
  if (tensor.scope == SHARDRT_LOCAL) {
    if (void *data = inPlace(executor->memory(), Slice::whole(slice.local), tensor, bytes))
      return {data, false};
  } else if ((tensor.scope == SHARDRT_SHARED || (tensor.scope == SHARDRT_ROOT && self == 0)) &&
             writesPart(spec.layout, coordinates[spec.mesh])) {
    if (void *data = inPlace(executor->memory(), slice, tensor, bytes))
      return {data, false};
  }
  return {executor->staging(slot, size_t(slice.elements() * bytes)), true};
}

void Model::returnOutput(const TensorSpec &spec, const Slice &slice, const Passed &passed,
                         const shardrt_tensor &tensor) {
  int64_t bytes = typeBytes(spec.type);
  if (tensor.scope == SHARDRT_GLOBAL) {
    gatherGlobal(spec, slice, passed.data, tensor);
    return;
  }
  if (tensor.scope == SHARDRT_ROOT) {
    rootMover().gather(partsOf(spec, slice, true), passed.data, self == 0 ? &tensor : nullptr,
                       bytes);
    if (self != 0)
      return;
  }
  if (!passed.staged)
    return;
  std::vector<int64_t> strides = stridesOf(tensor);
  if (tensor.scope == SHARDRT_LOCAL)
    executor->memory().give(tensor.data, strides.data(), Slice::whole(slice.local), passed.data,
                            bytes);
  else if (writesPart(spec.layout, coordinates[spec.mesh]))
    executor->memory().give(tensor.data, strides.data(), slice, passed.data, bytes);
}

void Model::gatherGlobal(const TensorSpec &spec, const Slice &slice, const void *local,
                         const shardrt_tensor &tensor) {
  int64_t bytes = typeBytes(spec.type);
  size_t world = size_t(manifest.worldSize);
  // Every writer's part, one after the other, as bytes; then each goes to its place.
  std::vector<Slice> parts;
  std::vector<int64_t> sizes;
  int64_t total = 0;
  for (size_t rank = 0; rank < world; ++rank) {
    auto where = spec.layout.mesh.coordinateOf(int64_t(rank));
    if (!writesPart(spec.layout, where))
      where.reset();
    parts.push_back(Slice::make(spec.layout, slice.global, where));
    // A scalar has one element even for a rank that is not to write it.
    sizes.push_back(where ? parts.back().elements() * bytes : 0);
    total += sizes.back();
  }
  Buffer all;
  const void *received = local;
  if (world > 1) {
    all =
        Buffer(executor->memory().exchanged(), size_t(total), gatherAlignment, "an output's parts");
    shardrt_collective_tensor operands{local, all.data(), &total, sizes.data(), nullptr, 0};
    executor->collective(globalGather, *everybody, runNumber, operands);
    received = all.data();
  }
  if (!tensor.data)
    return;
  std::vector<int64_t> strides = stridesOf(tensor);
  auto *from = static_cast<const char *>(received);
  for (size_t rank = 0; rank < world; ++rank) {
    if (sizes[rank] > 0)
      executor->memory().give(tensor.data, strides.data(), parts[rank], from, bytes);
    from += sizes[rank];
  }
}

void Model::compareRanks(const std::string &rootTensors) {
  if (ranksCompared)
    return;
  communicator.handshake(identity(rootTensors), runNumber, deadlineAfter(timeout));
  // What is scattered and gathered goes over all ranks, which may be no group of the program.
  std::vector<shardrt_group> connected(program.groups, program.groups + program.n_groups);
  const uint32_t begins[] = {0, everybody->size()};
  connected.push_back({"all ranks", begins, everybody->members.data(), 1, 0});
  communicator.connect(connected, deadlineAfter(timeout));
  executor->connect(connected, deadlineAfter(timeout));
  ranksCompared = true;
}

void Model::recordFlight(const Failure &failure) const {
  const char *folder = std::getenv("SHARDRT_FLIGHT_DIR");
  if (!folder || !*folder)
    return;
  FlightRecord record;
  record.rank = uint32_t(self);
  record.worldSize = communicator.worldSize();
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  record.host = host;
  record.pid = getpid();
  record.world = endpoint->world;
  record.artifact = manifest.name;
  record.artifactHash = manifest.artifactHash;
  record.run = runNumber;
  record.writtenUs = int64_t(std::chrono::duration_cast<std::chrono::microseconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count());
  record.status = statusName(failure.status);
  record.message = failure.message;
  executor->recordFlight(record);
  // What failed is worse than that nobody can read about it.
  if (std::string problem = record.write(folder); !problem.empty())
    log.write(SHARDRT_LOG_WARNING, "no flight record: " + problem);
}

void Model::failRun(const Failure &failure) {
  communicator.notePosition(nullptr);
  // The others must not wait for this rank; then nothing of it is in flight any more.
  bool alone = communicator.worldSize() == 1;
  if (!alone)
    communicator.abort(failure.status == SHARDRT_TIMEOUT || failure.status == SHARDRT_MISMATCH
                           ? failure.status
                           : SHARDRT_ABORTED,
                       failure.message);
  std::string record = executor->giveUp();
  recordFlight(failure);
  if (!alone && !record.empty())
    log.write(SHARDRT_LOG_ERROR, failure.message + "\n last collectives of rank " +
                                     std::to_string(self) + ":\n" + record);
  throw Failure(failure);
}

void Model::execute(EntryState &entry, Plan &plan, const SymbolValues &symbols,
                    std::span<const shardrt_tensor> inputs,
                    std::span<const shardrt_tensor> outputs) {
  const EntrySpec &spec = *entry.spec;
  uint8_t *arena = executor->arena(size_t(plan.arenaBytes));
  std::vector<Passed> in, out(spec.outputs.size());
  std::vector<Range> ranges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(passInput(i, spec.inputs[i], plan.shapes.inputs[i], inputs[i]));
    size_t bytes = size_t(plan.shapes.inputs[i].elements() * typeBytes(spec.inputs[i].type));
    if (in[i].data)
      ranges.push_back({static_cast<const char *>(in[i].data), bytes, false, i});
  }
  for (size_t u = 0; u < outputs.size(); ++u) {
    size_t o = spec.userOutputs[u];
    out[o] = passOutput(inputs.size() + o, spec.outputs[o], plan.shapes.outputs[o], outputs[u]);
    size_t bytes = size_t(plan.shapes.outputs[o].elements() * typeBytes(spec.outputs[o].type));
    if (out[o].data)
      ranges.push_back({static_cast<const char *>(out[o].data), bytes, true, o});
  }
  // Generated code may write outputs before it has read all inputs.
  for (size_t o : overlappingWrites(ranges)) {
    size_t bytes = size_t(plan.shapes.outputs[o].elements() * typeBytes(spec.outputs[o].type));
    out[o] = {executor->staging(inputs.size() + o, bytes), true};
  }
  for (size_t o = 0; o < spec.outputs.size(); ++o)
    if (spec.outputs[o].updates)
      out[o].data = parameters.pointers()[*spec.outputs[o].updates];

  std::vector<const void *> inputPointers;
  std::vector<void *> outputPointers;
  for (const Passed &passed : in)
    inputPointers.push_back(passed.data);
  for (const Passed &passed : out)
    outputPointers.push_back(passed.data);
  shardrt_frame frame = frameFor(entry, symbols);
  frame.arena = arena;
  frame.arena_bytes = plan.arenaBytes;
  frame.inputs = inputPointers.data();
  frame.outputs = outputPointers.data();
  frame.offsets = plan.offsets.data();

  bool gathers = std::ranges::any_of(
      outputs, [](const shardrt_tensor &tensor) { return tensor.scope == SHARDRT_GLOBAL; });
  if (usesCollectives || (gathers && manifest.worldSize > 1))
    compareRanks(RootStatement::tensorsOf(inputs, outputs));
  auto call = [&] { executor->run(*entry.program, *entry.variant, frame, runNumber); };
  if (entry.variant && checksMemory) {
    std::vector<CheckedMemory> memory{{arena, size_t(plan.arenaBytes), "", 1}};
    for (size_t o = 0; o < out.size(); ++o) {
      size_t bytes = size_t(typeBytes(spec.outputs[o].type));
      size_t elements = out[o].data ? size_t(plan.shapes.outputs[o].elements()) : 0;
      memory.push_back({out[o].data, elements * bytes, spec.outputs[o].name, bytes,
                        spec.outputs[o].updates.has_value()});
    }
    WriteCheck(std::move(memory), *entry.program).run(*executor, call);
  } else if (entry.variant) {
    call();
  }
  for (size_t u = 0; u < outputs.size(); ++u) {
    size_t o = spec.userOutputs[u];
    returnOutput(spec.outputs[o], plan.shapes.outputs[o], out[o], outputs[u]);
  }
  bool changesWeights = false, wasIncomplete = !parameters.unset(manifest).empty();
  for (const OutputSpec &output : spec.outputs)
    if (output.updates) {
      parameters.markSet(*output.updates);
      changesWeights |= !manifest.parameters[*output.updates].isState();
    }
  if (changesWeights && wasIncomplete)
    prepareEntries(); // nothing has been packed before
  else if (changesWeights)
    repackEntries();
  communicator.notePosition(nullptr);
}

void Model::tear(const Failure &failure) {
  torn =
      "a run failed when it had begun to change parameters and states, which are neither the old "
      "nor the new ones now: load a checkpoint, or weights, or make the model again. The run "
      "failed with: " +
      failure.message;
}

void Model::checkLoaded() const {
  if (!torn.empty())
    throw Failure(SHARDRT_TORN, torn);
  std::vector<std::string> unset = parameters.unset(manifest);
  if (unset.empty())
    return;
  // Some may be those that `init` keeps.
  const std::string init = manifest.training ? manifest.training->init : "";
  auto makes = [&](const OutputSpec &output) {
    return output.updates && manifest.parameters[*output.updates].name == unset.front();
  };
  bool isMade = std::ranges::any_of(manifest.entries, [&](const EntrySpec &entry) {
    return entry.name == init && std::ranges::any_of(entry.outputs, makes);
  });
  throw Failure(SHARDRT_INVALID_ARGUMENT, std::to_string(unset.size()) +
                                              " parameters have not been loaded, the first is " +
                                              unset.front() + ": load them before the first run" +
                                              (isMade ? ", or run " + init : ""));
}

void Model::makeRoom() {
  if (!parameters.isRoomy())
    adoptParameters(ParameterSet::withRoom(manifest, program, coordinates[0], executor->memory()));
}

Model::EntryState &Model::entryToRun(const char *name) {
  EntryState &entry = entryNamed(name);
  if (entry.spec->readsParameters || !torn.empty())
    checkLoaded();
  else
    makeRoom();
  return entry;
}

Model::Bound Model::bind(const char *entryName, std::span<const shardrt_tensor> inputs,
                         std::span<const shardrt_tensor> outputs) {
  Bound bound;
  bound.entry = &entryToRun(entryName);
  bound.symbols = bindSymbols(manifest, *bound.entry->spec, inputs, coordinates, true);
  bound.plan = &planFor(*bound.entry, bound.symbols);
  checkOutputs(*bound.entry->spec, bound.plan->shapes, outputs, self == 0);
  return bound;
}

Model::Bound Model::bindOrRefuse(const char *entryName, std::span<const shardrt_tensor> inputs,
                                 std::span<const shardrt_tensor> outputs) {
  try {
    return bind(entryName, inputs, outputs);
  } catch (const Failure &failure) {
    // Nothing has started here, but other ranks may have.
    communicator.refuse(runNumber, failure.message);
    recordFlight(failure);
    throw;
  }
}

void Model::run(const char *entryName, std::span<const shardrt_tensor> inputs,
                std::span<const shardrt_tensor> outputs) {
  ++runNumber;
  RootStatement said;
  std::vector<shardrt_tensor> completed;
  Bound bound;
  if (usesRoot(inputs, outputs)) {
    completed.assign(inputs.begin(), inputs.end());
    inputs = completed;
    bound = bindWithRoot(entryName, completed, outputs, said);
  } else {
    bound = bindOrRefuse(entryName, inputs, outputs);
  }
  compareRandomState(*bound.entry->spec);
  auto fail = [&](const Failure &failure) {
    if (executor->hasCommitted())
      tear(failure);
    failRun(failure);
  };
  try {
    executor->beginRun();
    execute(*bound.entry, *bound.plan, bound.symbols, inputs, outputs);
  } catch (const Failure &failure) {
    fail(failure);
  } catch (const std::exception &error) {
    fail(Failure(SHARDRT_INTERNAL, error.what()));
  }
}

void Model::outputShapes(const char *entryName, std::span<const shardrt_tensor> inputs,
                         shardrt_shape *global, shardrt_shape *local, size_t count) {
  EntryState &entry = entryNamed(entryName);
  const EntrySpec &spec = *entry.spec;
  if (count != spec.userOutputs.size())
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  "entry " + spec.name + " has " + std::to_string(spec.userOutputs.size()) +
                      " outputs, room was given for " + std::to_string(count));
  SymbolValues symbols = bindSymbols(manifest, spec, inputs, coordinates, false);
  Plan &plan = planFor(entry, symbols);
  for (size_t u = 0; u < count; ++u) {
    const Slice &slice = plan.shapes.outputs[spec.userOutputs[u]];
    shardrt_type type = spec.outputs[spec.userOutputs[u]].type;
    for (auto [shape, extents] :
         {std::pair(global, &slice.global), std::pair(local, &slice.local)}) {
      if (!shape)
        continue;
      shape[u].type = type;
      shape[u].rank = int32_t(extents->size());
      std::copy(extents->begin(), extents->end(), shape[u].extents);
    }
  }
}

} // namespace shardc::rt
