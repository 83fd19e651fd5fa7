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

std::vector<std::pair<std::string, std::string>> checkpointMetadata(const Manifest &manifest) {
  std::string states;
  for (size_t i : savedParameters(manifest))
    if (manifest.parameters[i].isState())
      states += (states.empty() ? "" : "\n") + manifest.parameters[i].name;
  return {{"format", "pt"},
          {checkpointKey, checkpointValue},
          {"version", "1"},
          {"model", manifest.name},
          {checkpointStatesKey, states}};
}

namespace {

/// The name of a file is on the disk when its folder is.
void syncFolderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); handle >= 0) {
    fsync(handle);
    close(handle);
  }
}

std::string temporaryOf(const std::string &path) {
  return path + ".tmp" + std::to_string(getpid());
}

[[noreturn]] void failToWrite(const std::string &path, const std::string &what) {
  std::string reason = std::strerror(errno);
  throw Failure(SHARDRT_BAD_FILE, path + ": cannot write the checkpoint: " + what + ": " + reason);
}

} // namespace

void CheckpointFile::fail(const std::string &what) const { failToWrite(path, what); }

CheckpointFile::CheckpointFile(std::vector<shardc::SafetensorsEntry> tensors,
                               const std::vector<std::pair<std::string, std::string>> &metadata,
                               const std::string &path)
    : path(path), temporary(temporaryOf(path)) {
  const std::string header = shardc::safetensorsHeader(tensors, metadata);
  size = header.size();
  for (const shardc::SafetensorsEntry &tensor : tensors) {
    begins.push_back(header.size() + tensor.begin);
    size = header.size() + tensor.end;
  }
  open();
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
    if (isNamed)
      unlink(temporary.c_str());
    throw;
  }
}

void CheckpointFile::open() {
  // A file without a name gets one by the name that its descriptor has.
  if (access("/proc/self/fd", X_OK) == 0) {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    descriptor = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (descriptor >= 0)
      return;
  }
  descriptor = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    fail("cannot make " + temporary);
  isNamed = true;
}

CheckpointFile::~CheckpointFile() {
  if (bytes)
    munmap(bytes, size);
  if (descriptor >= 0) {
    close(descriptor);
    if (isNamed)
      unlink(temporary.c_str());
  }
}

void CheckpointFile::commit() {
  if (msync(bytes, size, MS_SYNC) != 0 || fsync(descriptor) != 0)
    fail("the disk failed");
  if (!isNamed) {
    std::string own = "/proc/self/fd/" + std::to_string(descriptor);
    unlink(temporary.c_str());
    if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0)
      fail("cannot name it " + temporary);
    isNamed = true;
  }
  if (rename(temporary.c_str(), path.c_str()) != 0)
    fail("cannot rename " + temporary);
  close(descriptor);
  descriptor = -1;
  syncFolderOf(path);
}

void replaceFile(const std::string &path, std::string_view text) {
  const std::string temporary = temporaryOf(path);
  int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    failToWrite(path, "cannot make " + temporary);
  bool good = true;
  while (good && !text.empty()) {
    ssize_t written = write(descriptor, text.data(), text.size());
    if (written > 0)
      text.remove_prefix(size_t(written));
    else
      good = written < 0 && errno == EINTR;
  }
  good = good && fsync(descriptor) == 0;
  int code = errno;
  close(descriptor);
  if (good && rename(temporary.c_str(), path.c_str()) == 0)
    return syncFolderOf(path);
  code = good ? errno : code;
  unlink(temporary.c_str());
  errno = code;
  failToWrite(path, good ? "cannot replace it" : "the disk failed");
}

} // namespace shardc::rt
