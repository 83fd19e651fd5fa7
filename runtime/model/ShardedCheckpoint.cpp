// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/ShardedCheckpoint.h"

#include "runtime/executor/Slice.h"
#include "runtime/model/Checkpoint.h"
#include "runtime/support/Copy.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"
#include "support/archive/ShardedArchive.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <dirent.h>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc::rt {

namespace {

/// Every file of a save is called "save-NAME-rank-R.safetensors".
constexpr const char *filePrefix = "save-", *fileSuffix = ".safetensors";

/// Whether a save writes files of this name, or has begun to: then ".tmpN" is behind it.
bool isOfASave(std::string_view name) {
  auto skip = [&](std::string_view text) {
    bool isThere = name.starts_with(text);
    name.remove_prefix(isThere ? text.size() : 0);
    return isThere;
  };
  auto skipDigits = [&](std::string_view digits) {
    size_t count = std::min(name.find_first_not_of(digits), name.size());
    name.remove_prefix(count);
    return count > 0;
  };
  constexpr std::string_view decimal = "0123456789", hexadecimal = "0123456789abcdef";
  bool isComplete = skip(filePrefix) && skipDigits(hexadecimal) && skip(".") &&
                    skipDigits(hexadecimal) && skip("-rank-") && skipDigits(decimal) &&
                    skip(fileSuffix);
  return isComplete && (name.empty() || (skip(".tmp") && skipDigits(decimal) && name.empty()));
}

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

} // namespace

std::string ShardedCheckpoint::begin(const std::string &folder) {
  struct stat status{};
  bool isThere = stat(folder.c_str(), &status) == 0;
  if (isThere && !S_ISDIR(status.st_mode))
    throw Failure(SHARDRT_BAD_FILE,
                  folder + ": cannot write the checkpoint: it is a file, and a checkpoint with a "
                           "file of each rank is a folder");
  if (!isThere && mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    std::string reason = std::strerror(errno);
    throw Failure(SHARDRT_BAD_FILE,
                  folder + ": cannot write the checkpoint: cannot make the folder: " + reason);
  }
  const std::string index = folder + "/" + shardc::ShardedIndex::fileName;
  std::string error;
  if (auto file = shardc::MappedFile::open(index, error)) {
    std::string_view text(reinterpret_cast<const char *>(file->bytes().data()),
                          file->bytes().size());
    if (!shardc::ShardedIndex::parse(text, error))
      throw Failure(SHARDRT_BAD_FILE, index +
                                          ": cannot write the checkpoint: there is a file that "
                                          "is no index of a checkpoint: " +
                                          error);
  }
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return hex(uint64_t(std::chrono::nanoseconds(now).count())) + "." + hex(uint64_t(getpid()));
}

std::string ShardedCheckpoint::fileOf(uint32_t rank) const {
  return filePrefix + save + "-rank-" + std::to_string(rank) + fileSuffix;
}

std::vector<ShardedCheckpoint::Block> ShardedCheckpoint::blocksOf(uint32_t rank) const {
  std::vector<Block> blocks;
  for (size_t i : savedParameters(manifest)) {
    const ParameterSpec &spec = manifest.parameters[i];
    auto where = spec.layout.mesh.coordinateOf(int64_t(rank));
    if (writesPart(spec.layout, where))
      Slice::make(spec.layout, spec.extents(), where)
          .forEachBox([&](auto begin, auto localBegin, auto extents) {
            blocks.push_back({i,
                              {begin.begin(), begin.end()},
                              {extents.begin(), extents.end()},
                              {localBegin.begin(), localBegin.end()}});
          });
  }
  return blocks;
}

void ShardedCheckpoint::write(uint32_t rank, void *const *values, ProgramMemory &memory) const {
  const std::vector<Block> blocks = blocksOf(rank);
  if (blocks.empty())
    return;
  std::vector<shardc::SafetensorsEntry> entries;
  for (const Block &block : blocks) {
    const ParameterSpec &spec = manifest.parameters[block.parameter];
    entries.push_back({shardc::ShardedBlock::keyOf(spec.name, block.begin, block.extents),
                       shardc::elementTypeFromRuntime(spec.type).value(), block.extents});
  }
  CheckpointFile file(std::move(entries), {{"format", "pt"}, {shardc::ShardedIndex::saveKey, save}},
                      folder + "/" + fileOf(rank));
  Buffer host; // the rank's part of a parameter that is more than one box
  for (size_t k = 0; k < blocks.size(); ++k) {
    const Block &block = blocks[k];
    const ParameterSpec &spec = manifest.parameters[block.parameter];
    const int64_t bytes = typeBytes(spec.type);
    const std::vector<int64_t> local =
        Slice::make(spec.layout, spec.extents(), spec.layout.mesh.coordinateOf(int64_t(rank)))
            .local;
    std::vector<int64_t> from(local.size()), to(local.size());
    denseStrides(local, from.data());
    denseStrides(block.extents, to.data());
    const Slice whole = Slice::whole(local);
    if (block.extents == local) {
      memory.give(file.dataOf(k), to.data(), whole, values[block.parameter], bytes);
      continue;
    }
    // Blocks of a parameter follow each other.
    if (k == 0 || blocks[k - 1].parameter != block.parameter) {
      host = Buffer(memory.host, size_t(whole.elements() * bytes), copyAlignment,
                    "a part of a checkpoint");
      memory.give(host.data(), from.data(), whole, values[block.parameter], bytes);
    }
    int64_t offset = 0;
    for (size_t d = 0; d < local.size(); ++d)
      offset += block.localBegin[d] * from[d];
    copyBox(file.dataOf(k), to.data(), host.data() + offset * bytes, from.data(), block.extents,
            bytes);
  }
  file.commit();
}

void ShardedCheckpoint::commit() const {
  shardc::ShardedIndex index;
  index.save = save;
  index.metadata = checkpointMetadata(manifest);
  std::map<size_t, size_t> places; // of parameters
  for (size_t i : savedParameters(manifest)) {
    const ParameterSpec &spec = manifest.parameters[i];
    places[i] = index.tensors.size();
    index.tensors.push_back(
        {spec.name, shardc::elementTypeFromRuntime(spec.type).value(), spec.extents(), {}});
  }
  Problems problems;
  for (int64_t rank = 0; rank < manifest.worldSize; ++rank) {
    const std::vector<Block> blocks = blocksOf(uint32_t(rank));
    const std::string file = fileOf(uint32_t(rank));
    if (!blocks.empty() && access((folder + "/" + file).c_str(), F_OK) != 0)
      problems.add("rank " + std::to_string(rank) + " has written " + file +
                   ", which rank 0 does not find: the folder must be one that all ranks share");
    for (const Block &block : blocks) {
      shardc::ShardedTensor &tensor = index.tensors[places[block.parameter]];
      tensor.blocks.push_back({file,
                               shardc::ShardedBlock::keyOf(tensor.name, block.begin, block.extents),
                               block.begin, block.extents});
    }
  }
  problems.raise(SHARDRT_BAD_FILE, folder);
  replaceFile(folder + "/" + shardc::ShardedIndex::fileName, index.json());
  removeFiles(true);
}

void ShardedCheckpoint::removeFiles(bool ofOthers) const {
  DIR *entries = opendir(folder.c_str());
  if (!entries)
    return;
  const std::string mine = filePrefix + save + "-rank-";
  std::vector<std::string> names;
  while (const dirent *entry = readdir(entries)) {
    std::string_view name = entry->d_name;
    // Whose writing of an index was interrupted.
    bool isTornIndex = name.starts_with(shardc::ShardedIndex::fileName + std::string(".tmp"));
    if (isOfASave(name) ? name.starts_with(mine) != ofOthers : isTornIndex && ofOthers)
      names.emplace_back(name);
  }
  closedir(entries);
  for (const std::string &name : names)
    unlink((folder + "/" + name).c_str());
}

} // namespace shardc::rt
