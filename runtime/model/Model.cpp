// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Model.h"

#include "runtime/model/Trace.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <numeric>

namespace shardc::rt {

namespace {

/// Does everything about the configuration that can be checked without the manifest, so that
/// members can be initialised from it.
const shardrt_config &checked(const shardrt_config &config) {
  Problems problems;
  if (config.struct_bytes != sizeof(shardrt_config))
    problems.add("struct_bytes is " + std::to_string(config.struct_bytes) +
                 ": call shardrt_config_init first");
  problems.raise(SHARDRT_INVALID_ARGUMENT, "configuration");
  if (config.world_size < 1)
    problems.add("world_size is " + std::to_string(config.world_size));
  else if (config.rank < 0 || config.rank >= config.world_size)
    problems.add("rank is " + std::to_string(config.rank) + " in a world of " +
                 std::to_string(config.world_size));
  if (!(config.timeout_s > 0))
    problems.add("timeout_s must be positive");
  if (config.threads < 0)
    problems.add("threads is negative");
  if (!config.alloc != !config.free)
    problems.add("alloc and free must both be given, or neither");
  if (config.communicator) {
    Communicator &communicator = *config.communicator->endpoint->communicator;
    if (int64_t(communicator.worldSize()) != config.world_size ||
        int64_t(communicator.rank()) != config.rank)
      problems.add("the communicator is rank " + std::to_string(communicator.rank()) + " of " +
                   std::to_string(communicator.worldSize()) + ", the configuration rank " +
                   std::to_string(config.rank) + " of " + std::to_string(config.world_size));
    if (config.communicator->endpoint->bound)
      problems.add("the communicator is bound to another model");
  } else if (config.world_size > 1) {
    problems.add("a world of " + std::to_string(config.world_size) + " needs a communicator");
  }
  problems.raise(SHARDRT_INVALID_ARGUMENT, "configuration");
  return config;
}

} // namespace

Manifest Model::parseArtifact(const shardrt_manifest &artifact) {
  if (artifact.program_abi != SHARDRT_PROGRAM_ABI ||
      artifact.struct_bytes != sizeof(shardrt_manifest) || !artifact.json || !artifact.program)
    throw Failure(SHARDRT_INCOMPATIBLE,
                  "the artifact was compiled for program ABI " +
                      std::to_string(artifact.program_abi) + ", this runtime has ABI " +
                      std::to_string(SHARDRT_PROGRAM_ABI) +
                      ": compile the model again, or use the runtime that came with its compiler");
  Manifest manifest = Manifest::parse({artifact.json, size_t(artifact.json_bytes)});
  manifest.checkProgram(*artifact.program);
  return manifest;
}

Model::Model(const shardrt_manifest &artifact, const shardrt_config &config,
             const ExecutorRegistry &executors)
    : manifest(parseArtifact(artifact)), program(*artifact.program), self(checked(config).rank),
      log(config.log_level, config.rank, config.log, config.log_context), timeout(config.timeout_s),
      usesCollectives(config.world_size > 1 && artifact.program->n_collectives > 0),
      checksMemory(config.flags & SHARDRT_CHECK_MEMORY),
      endpoint(config.communicator
                   ? config.communicator->endpoint
                   : std::make_shared<Endpoint>(std::move(makeLocalWorld(1).front()))),
      communicator(*endpoint->communicator), coordinates(manifest.coordinatesOf(config.rank)),
      events(config.flags & SHARDRT_RECORD_EVENTS, config.rank) {
  const ExecutorKind &kind = checkArtifact(config, executors);
  std::vector<uint32_t> all(size_t(config.world_size));
  std::iota(all.begin(), all.end(), 0u);
  everybody = &communicator.group(all);
  for (uint32_t g = 0; g < program.n_groups; ++g) {
    const shardrt_group &group = program.groups[g];
    Group *mine = nullptr;
    for (uint32_t s = 0; s < group.n_sets && !mine; ++s) {
      std::span<const uint32_t> members(group.ranks + group.set_begin[s],
                                        group.ranks + group.set_begin[s + 1]);
      if (std::find(members.begin(), members.end(), uint32_t(self)) != members.end())
        mine = &communicator.group(members);
    }
    groups.push_back(mine);
  }
  for (size_t e = 0; e < manifest.entries.size(); ++e) {
    EntryState &state = entries.emplace_back();
    state.program = &program.entries[e];
    state.spec = &manifest.entries[e];
    uint32_t variant = state.program->variant_of_rank[self];
    if (variant != SHARDRT_NO_VARIANT)
      state.variant = &state.program->variants[variant];
  }
  shardrt_config fitted = config;
  if (fitted.threads == 0)
    fitted.threads = endpoint->threads;
  executor = kind.create({manifest, program, fitted, communicator, groups, events, log});
  adoptParameters(
      ParameterSet::fromConstants(manifest, program, coordinates[0], executor->memory()));
  endpoint->bound = true;
  log.write(SHARDRT_LOG_INFO,
            manifest.name + " (" + manifest.tool + "), rank " + std::to_string(self) + " of " +
                std::to_string(config.world_size) + ", " + executor->description());
}

Model::~Model() {
  communicator.notePosition(nullptr);
  if (std::string summary = communicator.summary(); !summary.empty())
    log.write(SHARDRT_LOG_DEBUG, summary);
  endpoint->bound = false;
}

const ExecutorKind &Model::checkArtifact(const shardrt_config &config,
                                         const ExecutorRegistry &executors) const {
  Problems problems;
  if (config.world_size != manifest.worldSize)
    problems.add("it was compiled for a world of " + std::to_string(manifest.worldSize) +
                 " ranks (mesh " + manifest.mesh.str() + "), not " +
                 std::to_string(config.world_size));
  const ExecutorKind *kind = executors.find(manifest.targetKind);
  if (kind)
    kind->check(manifest, problems);
  else
    problems.add("its target is " + manifest.targetKind +
                 ", which this runtime cannot run (it runs " + executors.names() + ")");
  bool incompatible = config.world_size == manifest.worldSize;
  problems.raise(incompatible ? SHARDRT_INCOMPATIBLE : SHARDRT_INVALID_ARGUMENT,
                 "the artifact " + manifest.name);
  return *kind;
}

Model::EntryState &Model::entryNamed(const char *name) {
  if (!name)
    return entries.front();
  std::string names;
  for (EntryState &entry : entries) {
    if (entry.spec->name == name)
      return entry;
    names += (names.empty() ? "" : ", ") + entry.spec->name;
  }
  throw Failure(SHARDRT_NOT_FOUND,
                "the program has no entry " + std::string(name) + "; its entries are " + names);
}

void Model::loadFile(const std::string &path) {
  adoptParameters(ParameterSet::fromFile(manifest, program, coordinates[0], executor->memory(),
                                         path, ParameterSet::Reading::Weights));
  log.write(SHARDRT_LOG_INFO, "loaded " + path + ": " + std::to_string(parameters.bytes()) +
                                  " bytes of parameters, " +
                                  std::to_string(parameters.copiedBytes()) + " of them copied");
}

void Model::loadCallback(shardrt_find_parameter_fn find, void *context) {
  adoptParameters(ParameterSet::fromCallback(manifest, program, coordinates[0], executor->memory(),
                                             find, context));
}

void Model::adoptParameters(ParameterSet fresh) {
  // Packed forms are made from the new parameters before anything old is given up.
  std::swap(parameters, fresh);
  randomCompared = false;
  seedOutside.reset();
  try {
    prepareEntries();
  } catch (...) {
    std::swap(parameters, fresh);
    throw;
  }
}

void Model::prepareEntries() {
  std::vector<Buffer> packed(entries.size());
  for (size_t e = 0; e < entries.size() && parameters.unset(manifest).empty(); ++e) {
    EntryState &entry = entries[e];
    if (!entry.variant || entry.variant->persistent_bytes == 0)
      continue;
    packed[e] = Buffer(executor->memory().allocator(), entry.variant->persistent_bytes,
                       SHARDRT_ARENA_ALIGNMENT, "packed parameters");
    shardrt_frame frame = frameFor(entry, {});
    frame.persistent = packed[e].data();
    executor->prepare(*entry.program, *entry.variant, frame);
  }
  for (size_t e = 0; e < entries.size(); ++e)
    if (packed[e].size() > 0)
      entries[e].persistent = std::move(packed[e]);
}

void Model::inputShard(const char *entryName, size_t input, const int64_t *extents, int32_t rank,
                       shardrt_shape &local) {
  EntryState &entry = entryNamed(entryName);
  if (input >= entry.spec->inputs.size())
    throw Failure(SHARDRT_INVALID_ARGUMENT, "entry " + entry.spec->name + " has " +
                                                std::to_string(entry.spec->inputs.size()) +
                                                " inputs");
  const TensorSpec &spec = entry.spec->inputs[input];
  if (rank < 0 || size_t(rank) != spec.rank() || (rank > 0 && !extents) ||
      checkedBytes(extents, spec.rank(), typeBytes(spec.type)) < 0)
    throw Failure(SHARDRT_INVALID_ARGUMENT, "input " + spec.name + " has " +
                                                std::to_string(spec.rank()) +
                                                " dims, and extents are not negative");
  std::vector<int64_t> global(extents, extents + rank);
  for (size_t d = 0; d < global.size(); ++d)
    if (spec.shape[d].isConstant() && spec.shape[d].value != global[d])
      throw Failure(SHARDRT_INVALID_ARGUMENT,
                    "dim " + std::to_string(d) + " of input " + spec.name + " is " +
                        std::to_string(spec.shape[d].value) + ", not " + std::to_string(global[d]));
  Slice slice = Slice::make(spec.layout, std::move(global), coordinates[spec.mesh]);
  local.type = spec.type;
  local.rank = rank;
  std::copy(slice.local.begin(), slice.local.end(), local.extents);
}

void Model::barrier() {
  if (communicator.worldSize() == 1)
    return;
  try {
    communicator.barrier(deadlineAfter(timeout));
  } catch (const Failure &failure) {
    recordFlight(failure);
    throw;
  }
}

void Model::writeWorldTrace(const char *path) {
  // What rank 0 cannot write is its own error, and nobody waits for it.
  std::string text = gatherTrace(events, communicator, timeout);
  if (self == 0)
    writeTraceText(text, path ? path : "");
}

shardrt_memory Model::memoryUsed() const {
  shardrt_memory used{};
  used.parameter_bytes = parameters.bytes();
  used.copied_bytes = parameters.copiedBytes();
  for (const EntryState &entry : entries)
    used.persistent_bytes += entry.persistent.size();
  executor->countMemory(used);
  return used;
}

Identity Model::identity(const std::string &rootTensors) const {
  return {{"artifact hash", manifest.artifactHash},
          {"collective sequence hash", manifest.sequenceHash},
          {"world size", std::to_string(manifest.worldSize)},
          {"mesh", manifest.mesh.str()},
          {"tensors of SHARDRT_ROOT", rootTensors}};
}

} // namespace shardc::rt
