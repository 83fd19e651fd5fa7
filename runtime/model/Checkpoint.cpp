// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Checkpoint.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace shardc::rt {

std::vector<size_t> savedParameters(const Manifest &manifest) {
  std::vector<size_t> saved;
  for (size_t i = 0; i < manifest.parameters.size(); ++i)
    if (!manifest.parameters[i].isConstant && manifest.parameters[i].isSaved)
      saved.push_back(i);
  std::ranges::sort(
      saved, {}, [&](size_t i) { return std::pair(-typeBytes(manifest.parameters[i].type), i); });
  return saved;
}

void CheckpointFile::fail(const std::string &what) const {
  std::string reason = std::strerror(errno);
  throw Failure(SHARDRT_BAD_FILE, path + ": cannot write the checkpoint: " + what + ": " + reason);
}

CheckpointFile::CheckpointFile(const Manifest &manifest, const std::string &path)
    : path(path), temporary(path + ".tmp" + std::to_string(getpid())) {
  std::string states;
  std::vector<shardc::SafetensorsEntry> entries;
  const std::vector<size_t> saved = savedParameters(manifest);
  for (size_t i : saved) {
    const ParameterSpec &spec = manifest.parameters[i];
    entries.push_back(
        {spec.name, shardc::elementTypeFromRuntime(spec.type).value(), spec.extents()});
    if (spec.isState())
      states += (states.empty() ? "" : "\n") + spec.name;
  }
  const std::string header = shardc::safetensorsHeader(entries, {{"format", "pt"},
                                                                 {checkpointKey, checkpointValue},
                                                                 {"version", "1"},
                                                                 {"model", manifest.name},
                                                                 {checkpointStatesKey, states}});
  begins.resize(manifest.parameters.size());
  size = header.size();
  for (size_t k = 0; k < saved.size(); ++k) {
    begins[saved[k]] = header.size() + entries[k].begin;
    size = header.size() + entries[k].end;
  }
  descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    fail("cannot make " + temporary);
  try {
    // A page of a hole that finds the disk full later would end the process.
    if ((errno = posix_fallocate(descriptor, 0, off_t(size))) != 0)
      fail("no room for " + std::to_string(size) + " bytes");
    void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED)
      fail("cannot map it");
    bytes = static_cast<char *>(mapped);
    std::memcpy(bytes, header.data(), header.size());
  } catch (...) {
    close(descriptor);
    unlink(temporary.c_str());
    throw;
  }
}

CheckpointFile::~CheckpointFile() {
  if (bytes)
    munmap(bytes, size);
  if (descriptor >= 0) {
    close(descriptor);
    unlink(temporary.c_str());
  }
}

void *CheckpointFile::dataOf(size_t parameter) { return bytes + begins[parameter]; }

void CheckpointFile::commit() {
  if (msync(bytes, size, MS_SYNC) != 0 || fsync(descriptor) != 0)
    fail("the disk failed");
  if (rename(temporary.c_str(), path.c_str()) != 0)
    fail("cannot rename " + temporary);
  close(descriptor);
  descriptor = -1;
  // The name itself is on the disk when its folder is.
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
    fsync(handle);
    close(handle);
  }
}

} // namespace shardc::rt
