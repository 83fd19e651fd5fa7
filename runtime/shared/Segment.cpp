// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/shared/Segment.h"

#include "runtime/support/Failure.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardc::rt {

namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void failBySystem(shardrt_status status, const std::string &what) {
  throw Failure(status, what + ": " + systemError(errno));
}

} // namespace

Mapping::~Mapping() {
  if (base)
    munmap(base, bytes);
}

Descriptor makeSegment(size_t bytes) {
  Descriptor segment(memfd_create("shardrt", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment)
    failBySystem(SHARDRT_OUT_OF_MEMORY, "memory that processes share cannot be made");
  if (ftruncate(segment.get(), off_t(bytes)) != 0 || fcntl(segment.get(), F_ADD_SEALS, seals) != 0)
    failBySystem(SHARDRT_OUT_OF_MEMORY,
                 "no room for " + std::to_string(bytes) + " bytes that processes share");
  return segment;
}

Mapping mapSegment(const Descriptor &segment) {
  struct stat facts{};
  if (fstat(segment.get(), &facts) != 0)
    failBySystem(SHARDRT_INTERNAL, "memory that processes share");
  int found = fcntl(segment.get(), F_GET_SEALS);
  if (found < 0 || (found & seals) != seals || facts.st_size <= 0)
    throw Failure(SHARDRT_INTERNAL, "a descriptor of shared memory is of something else");
  auto bytes = size_t(facts.st_size);
  void *base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment.get(), 0);
  if (base == MAP_FAILED)
    failBySystem(SHARDRT_OUT_OF_MEMORY,
                 "no room for " + std::to_string(bytes) + " bytes that processes share");
  // Where the system allows it for shared memory; it need not.
  madvise(base, bytes, MADV_HUGEPAGE);
  return {static_cast<uint8_t *>(base), bytes};
}

} // namespace shardc::rt
