// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Parameters.h"

#include "runtime/model/Checkpoint.h"
#include "runtime/model/RootTensors.h"
#include "runtime/support/Copy.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"
#include "support/NearestNames.h"

#include <algorithm>
#include <unordered_set>

namespace shardc::rt {

namespace {

/// Copies a slice of a tensor that lies in blocks to dense memory.
void extractFromBlocks(void *to, const Slice &slice, std::span<const shardc::StoredBlock> blocks,
                       int64_t bytes) {
  const size_t rank = slice.local.size();
  std::vector<int64_t> dense(rank), strides(rank), extents(rank);
  denseStrides(slice.local, dense.data());
  for (const shardc::StoredBlock &block : blocks) {
    denseStrides(block.sizes, strides.data());
    slice.forEachBox([&](auto globalBegin, auto localBegin, auto boxExtents) {
      int64_t target = 0, source = 0;
      for (size_t d = 0; d < rank; ++d) {
        int64_t begin = std::max(globalBegin[d], block.begin[d]);
        extents[d] =
            std::min(globalBegin[d] + boxExtents[d], block.begin[d] + block.sizes[d]) - begin;
        if (extents[d] <= 0)
          return;
        target += (localBegin[d] + begin - globalBegin[d]) * dense[d];
        source += (begin - block.begin[d]) * strides[d];
      }
      copyBox(static_cast<char *>(to) + target * bytes, dense.data(),
              block.storage.data() + source * bytes, strides.data(), extents, bytes);
    });
  }
}

} // namespace

/// Takes sources one by one and collects what is wrong.
class ParameterSet::Builder {
public:
  Builder(const Manifest &manifest, const shardrt_program &program,
          const std::optional<shardc::Coordinate> &coordinate, ProgramMemory &memory)
      : manifest(manifest), program(program), coordinate(coordinate), memory(memory) {
    size_t count = manifest.parameters.size();
    set.slices.resize(count, nullptr);
    set.isSet.resize(count, false);
    set.owned.resize(count);
  }

  ParameterSet set;
  Problems problems;
  bool usesFile = false; ///< some slice is in place there

  void addConstants() {
    for (size_t i = 0; i < manifest.parameters.size(); ++i)
      if (manifest.parameters[i].isConstant)
        addConstant(i);
  }

  void addStates() {
    for (size_t i = 0; i < manifest.parameters.size(); ++i)
      if (manifest.parameters[i].isState() && !set.isSet[i])
        addInitial(i);
  }

  /// What every element of a state is at first.
  void addInitial(size_t index) {
    const ParameterSpec &spec = manifest.parameters[index];
    uint64_t element = 0; // room for one of any type
    encodeNumber(&element, spec.type, *spec.initial);
    ParameterSource source;
    source.type = spec.type;
    source.extents = spec.extents();
    source.strides.assign(source.extents.size(), 0);
    source.data = &element;
    add(index, spec.name, source);
  }

  /// Places for the values of weights, which have none yet.
  void addRoom() {
    for (size_t i = 0; i < manifest.parameters.size(); ++i) {
      const ParameterSpec &spec = manifest.parameters[i];
      if (!spec.isWeight() || !spec.isMutable)
        continue;
      Slice slice = Slice::make(spec.layout, spec.extents(), coordinate);
      size_t bytes = size_t(slice.elements() * typeBytes(spec.type));
      set.total += bytes;
      set.copied += bytes;
      set.owned[i] = Buffer(memory.exchanged(), bytes, copyAlignment, "a parameter");
      set.slices[i] = set.owned[i].data();
    }
  }

  /// Checks the source and takes this rank's slice of it, unless something was wrong before.
  void add(size_t index, const std::string &name, const ParameterSource &source) {
    const ParameterSpec &spec = manifest.parameters[index];
    Slice slice = Slice::make(spec.layout, spec.extents(), coordinate);
    const std::vector<int64_t> &wanted = source.local ? slice.local : slice.global;
    if (source.type != spec.type || source.extents != wanted) {
      problems.add(name + ": it is " + describe(source.type, source.extents) + ", expected " +
                   describe(spec.type, wanted));
      return;
    }
    if (!problems.empty())
      return;
    if (source.local) // all of it
      slice = Slice::whole(slice.local);
    if (source.blocks.empty())
      take(index, slice, source);
    else
      takeFromBlocks(index, slice, source);
  }

  /// Another name of a parameter that is already set: must have the same value.
  void compare(size_t index, const std::string &name, const ParameterSource &source) {
    const ParameterSpec &spec = manifest.parameters[index];
    Slice slice = Slice::make(spec.layout, spec.extents(), coordinate);
    bool same = source.type == spec.type && source.extents == slice.global;
    if (same && problems.empty()) {
      int64_t bytes = typeBytes(spec.type);
      Buffer copy(memory.host, size_t(slice.elements() * bytes), copyAlignment, "a tied parameter");
      if (source.blocks.empty())
        slice.extract(copy.data(), source.data, source.strides.data(), bytes);
      else
        extractFromBlocks(copy.data(), slice, source.blocks, bytes);
      same = copy.size() == 0 || memory.holds(set.slices[index], copy.data(), copy.size());
    }
    if (!same)
      problems.add(name + ": it is tied to " + spec.name + " in the program, but differs from it");
  }

  /// Throws if anything was wrong.
  ParameterSet finish(const std::string &headline, bool hasRoom = true) {
    problems.raise(SHARDRT_INVALID_ARGUMENT, headline);
    set.hasRoom = hasRoom;
    return std::move(set);
  }

private:
  void addConstant(size_t index) {
    const ParameterSpec &spec = manifest.parameters[index];
    for (uint32_t c = 0; c < program.n_constants; ++c) {
      const shardrt_constant &constant = program.constants[c];
      if (spec.name != constant.name)
        continue;
      ParameterSource source;
      source.type = constant.type;
      source.extents.assign(constant.extents, constant.extents + constant.rank);
      source.strides.resize(source.extents.size());
      denseStrides(source.extents, source.strides.data());
      source.data = constant.data;
      source.borrowed = true;
      add(index, spec.name, source);
      return;
    }
    problems.add(spec.name + ": the artifact lacks this constant");
  }

  /// Where one block has all of a slice, that part of the block; otherwise a copy of the pieces.
  void takeFromBlocks(size_t index, const Slice &slice, const ParameterSource &source) {
    ParameterSource part = source;
    part.blocks = {};
    for (const shardc::StoredBlock &block : source.blocks) {
      std::optional<Slice> inside = slice.within(block.begin, block.sizes);
      if (!inside)
        continue;
      part.extents = block.sizes;
      denseStrides(part.extents, part.strides.data());
      part.data = block.storage.data();
      return take(index, *inside, part);
    }
    const int64_t bytes = typeBytes(source.type);
    Buffer copy(memory.host, size_t(slice.elements() * bytes), copyAlignment,
                "parts of a parameter");
    extractFromBlocks(copy.data(), slice, source.blocks, bytes);
    part.extents = slice.local;
    denseStrides(part.extents, part.strides.data());
    part.data = copy.data();
    part.borrowed = false;
    take(index, Slice::whole(slice.local), part);
  }

  void take(size_t index, const Slice &slice, const ParameterSource &source) {
    const ParameterSpec &spec = manifest.parameters[index];
    int64_t elementBytes = typeBytes(spec.type);
    size_t bytes = size_t(slice.elements() * elementBytes);
    set.isSet[index] = true;
    set.total += bytes;
    if (bytes == 0)
      return;
    // For a state that runs only read, such as a seed, no file is kept.
    if (source.borrowed && !spec.isMutable && !spec.isState() && slice.isBox() &&
        isDense(slice.local, source.strides.data())) {
      auto *first = static_cast<const char *>(source.data) +
                    slice.offset(source.strides.data()) * elementBytes;
      if (reinterpret_cast<uintptr_t>(first) % uintptr_t(elementBytes) == 0 &&
          memory.reaches(first)) {
        usesFile |= source.inFile;
        set.slices[index] = const_cast<char *>(first);
        return;
      }
    }
    // Steps that update a shard also gather it; what is only read is mostly for this rank alone.
    const Allocator &allocator = spec.isMutable ? memory.exchanged() : memory.allocator();
    set.owned[index] = Buffer(allocator, bytes, copyAlignment, "a parameter");
    memory.take(set.owned[index].data(), slice, source.data, source.strides.data(), elementBytes);
    set.slices[index] = set.owned[index].data();
    set.copied += bytes;
  }

  const Manifest &manifest;
  const shardrt_program &program;
  const std::optional<shardc::Coordinate> &coordinate;
  ProgramMemory &memory;
};

namespace {

std::string storedText(const shardc::StoredTensor &tensor) {
  std::string text = std::string(shardc::elementTypeName(tensor.type)) + "[";
  for (size_t d = 0; d < tensor.sizes.size(); ++d)
    text += (d ? ", " : "") + std::to_string(tensor.sizes[d]);
  return text + "]";
}

ParameterSource sourceOf(const shardc::StoredTensor &tensor) {
  ParameterSource source;
  source.type = shardc::runtimeCodeOf(tensor.type);
  source.extents = tensor.sizes;
  source.strides = tensor.strides;
  source.data = tensor.storage.data() + tensor.offset * int64_t(shardc::byteWidth(tensor.type));
  source.blocks = tensor.blocks;
  source.borrowed = source.inFile = true;
  return source;
}

/// Names of the states of a checkpoint, which another program need not have.
std::unordered_set<std::string_view> statesOf(const shardc::TensorStore &store) {
  std::unordered_set<std::string_view> states;
  std::string_view text = store.metadata(checkpointStatesKey);
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    states.insert(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return states;
}

/// Names in the file that the program does not have. Of an archive only parameters count: its
/// buffers and constants may have been folded.
std::vector<const shardc::StoredTensor *> surplusTensors(const Manifest &manifest,
                                                         const shardc::TensorStore &store) {
  std::unordered_set<std::string_view> known = statesOf(store);
  for (const ParameterSpec &spec : manifest.parameters)
    known.insert(spec.names.begin(), spec.names.end());
  std::vector<const shardc::StoredTensor *> surplus;
  for (const shardc::StoredTensor &tensor : store.tensors()) {
    bool ignored = std::any_of(
        manifest.ignoredParameters.begin(), manifest.ignoredParameters.end(),
        [&](const std::string &pattern) { return matchesPattern(pattern, tensor.name); });
    if (!known.count(tensor.name) && !ignored && tensor.parameter)
      surplus.push_back(&tensor);
  }
  return surplus;
}

/// What wrappers of PyTorch put before the names of the module that they wrap, and how to be rid of
/// it.
constexpr std::pair<const char *, const char *> wrappers[] = {
    {"module.", "DistributedDataParallel and DataParallel: save model.module.state_dict()"},
    {"_orig_mod.", "torch.compile: save model._orig_mod.state_dict()"}};

/// Reports names that differ by such a prefix alone, and takes them out of the two lists.
void checkPrefixes(const shardc::TensorStore &store, std::vector<const ParameterSpec *> &missing,
                   std::vector<const shardc::StoredTensor *> &surplus, Problems &problems) {
  for (auto [prefix, wrapper] : wrappers) {
    std::unordered_set<std::string> explained;
    std::erase_if(missing, [&](const ParameterSpec *spec) {
      std::string wrapped = prefix + spec->name;
      return store.find(wrapped) && explained.insert(std::move(wrapped)).second;
    });
    std::erase_if(surplus, [&](const shardc::StoredTensor *tensor) {
      return explained.count(tensor->name) > 0;
    });
    if (!explained.empty())
      problems.add(std::to_string(explained.size()) + " names begin with '" + prefix +
                   "', such as " + *std::ranges::min_element(explained) + "; they are those of " +
                   wrapper);
  }
}

/// Reports missing and surplus names, each with the one of the other side that it may stand for.
void checkNames(const Manifest &manifest, const shardc::TensorStore &store,
                std::vector<const ParameterSpec *> missing, Problems &problems) {
  std::vector<const shardc::StoredTensor *> surplus = surplusTensors(manifest, store);
  checkPrefixes(store, missing, surplus, problems);
  std::vector<std::string> missingNames, surplusNames;
  for (const ParameterSpec *spec : missing)
    missingNames.insert(missingNames.end(), spec->names.begin(), spec->names.end());
  for (const shardc::StoredTensor *tensor : surplus)
    surplusNames.push_back(tensor->name);
  const shardc::NearestNames nearestMissing(missingNames), nearestSurplus(surplusNames);
  for (const ParameterSpec *spec : missing) {
    std::string near = nearestSurplus.find(spec->name);
    problems.add(spec->name + ": missing, expected " + describe(spec->type, spec->extents()) +
                 (near.empty() ? "" : "; the file has " + near));
  }
  for (const shardc::StoredTensor *tensor : surplus) {
    std::string near = nearestMissing.find(tensor->name);
    problems.add(tensor->name + ": the program has no such parameter (" + storedText(*tensor) +
                 ")" + (near.empty() ? "" : "; it lacks " + near));
  }
}

} // namespace

ParameterSet ParameterSet::fromFile(const Manifest &manifest, const shardrt_program &program,
                                    const std::optional<shardc::Coordinate> &coordinate,
                                    ProgramMemory &memory, const std::string &path,
                                    Reading reading) {
  std::string error;
  std::optional<shardc::TensorStore> opened = shardc::TensorStore::openWithBlocks(path, error);
  if (!opened)
    throw Failure(SHARDRT_BAD_FILE, error);
  auto store = std::make_shared<const shardc::TensorStore>(std::move(*opened));
  Builder builder(manifest, program, coordinate, memory);
  if (reading == Reading::Checkpoint && store->metadata(checkpointKey) != checkpointValue)
    builder.problems.add("it is no checkpoint of a training: give it as weights, with which a "
                         "training begins anew");
  std::vector<const ParameterSpec *> missing;
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const ParameterSpec &spec = manifest.parameters[i];
    if (spec.isConstant || (spec.isState() && (reading == Reading::Weights || !spec.isSaved)))
      continue;
    const shardc::StoredTensor *first = nullptr;
    for (const std::string &name : spec.names) {
      const shardc::StoredTensor *tensor = store->find(name);
      if (!tensor || (first && tensor->tiedTo(*first)))
        continue;
      if (!tensor->hasData())
        builder.problems.add(name + ": the file has its shape but no data (exported without "
                                    "weights)");
      else if (shardc::runtimeCodeOf(tensor->type) == 0)
        builder.problems.add(name + ": it is " + storedText(*tensor) + ", expected " +
                             describe(spec.type, spec.extents()));
      else if (first)
        builder.compare(i, name, sourceOf(*tensor));
      else
        builder.add(i, name, sourceOf(*tensor));
      first = first ? first : tensor;
    }
    if (!first)
      missing.push_back(&spec);
  }
  checkNames(manifest, *store, missing, builder.problems);
  builder.addConstants();
  // What has been copied need not be in memory twice beside the states.
  if (builder.usesFile)
    builder.set.file = std::move(store);
  else
    store.reset();
  if (builder.problems.empty())
    builder.addStates();
  return builder.finish((reading == Reading::Checkpoint ? "the checkpoint " : "parameters in ") +
                        path);
}

ParameterSet ParameterSet::fromCallback(const Manifest &manifest, const shardrt_program &program,
                                        const std::optional<shardc::Coordinate> &coordinate,
                                        ProgramMemory &memory, shardrt_find_parameter_fn find,
                                        void *context) {
  Builder builder(manifest, program, coordinate, memory);
  for (size_t i = 0; i < manifest.parameters.size(); ++i) {
    const ParameterSpec &spec = manifest.parameters[i];
    if (!spec.isWeight())
      continue;
    int32_t answer = 1;
    for (const std::string &name : spec.names) {
      shardrt_tensor tensor{};
      answer = find(context, name.c_str(), &tensor);
      if (answer == 1)
        continue;
      if (answer != 0)
        throw Failure(SHARDRT_INVALID_ARGUMENT, "parameter " + name +
                                                    ": the caller's function returned " +
                                                    std::to_string(answer));
      bool valid = tensor.rank >= 0 && tensor.rank <= SHARDRT_MAX_RANK &&
                   (tensor.rank == 0 || tensor.extents);
      int64_t bytes = valid ? checkedBytes(tensor.extents, size_t(tensor.rank),
                                           std::max<int64_t>(typeBytes(tensor.type), 1))
                            : -1;
      if (bytes < 0 || (bytes > 0 && !tensor.data) ||
          (tensor.scope != SHARDRT_GLOBAL && tensor.scope != SHARDRT_LOCAL)) {
        builder.problems.add(name + ": rank, extents, scope or data are not valid");
        break;
      }
      ParameterSource source;
      source.type = tensor.type;
      source.extents.assign(tensor.extents, tensor.extents + tensor.rank);
      source.strides.resize(source.extents.size());
      if (tensor.strides)
        source.strides.assign(tensor.strides, tensor.strides + tensor.rank);
      else
        denseStrides(source.extents, source.strides.data());
      source.data = tensor.data;
      source.local = tensor.scope == SHARDRT_LOCAL;
      builder.add(i, name, source);
      break;
    }
    if (answer == 1)
      builder.problems.add(spec.name + ": missing, expected " +
                           describe(spec.type, spec.extents()));
  }
  builder.addConstants();
  if (builder.problems.empty())
    builder.addStates();
  return builder.finish("parameters");
}

ParameterSet ParameterSet::fromConstants(const Manifest &manifest, const shardrt_program &program,
                                         const std::optional<shardc::Coordinate> &coordinate,
                                         ProgramMemory &memory) {
  Builder builder(manifest, program, coordinate, memory);
  builder.addConstants();
  bool isComplete = std::ranges::none_of(manifest.parameters, &ParameterSpec::isWeight);
  if (isComplete)
    builder.addStates();
  return builder.finish("constants", isComplete);
}

ParameterSet ParameterSet::withRoom(const Manifest &manifest, const shardrt_program &program,
                                    const std::optional<shardc::Coordinate> &coordinate,
                                    ProgramMemory &memory) {
  Builder builder(manifest, program, coordinate, memory);
  builder.addConstants();
  builder.addStates();
  builder.addRoom();
  return builder.finish("states");
}

std::vector<std::string> ParameterSet::unset(const Manifest &manifest) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < isSet.size(); ++i)
    if (!isSet[i])
      names.push_back(manifest.parameters[i].name);
  return names;
}

void ParameterSet::assign(size_t parameter, const Manifest &manifest, ProgramMemory &memory,
                          const Slice &part, const shardrt_tensor &tensor) {
  const ParameterSpec &spec = manifest.parameters[parameter];
  int64_t elementBytes = typeBytes(spec.type);
  size_t bytes = size_t(part.elements() * elementBytes);
  if (bytes == 0)
    return;
  if (owned[parameter].size() == 0) { // it is in place in a file
    const Allocator &allocator = spec.isMutable ? memory.exchanged() : memory.allocator();
    owned[parameter] = Buffer(allocator, bytes, copyAlignment, "a parameter");
    copied += bytes;
  }
  memory.take(owned[parameter].data(), part, tensor.data, stridesOf(tensor).data(), elementBytes);
  slices[parameter] = owned[parameter].data();
}

} // namespace shardc::rt
