// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/executor/Executor.h"

namespace shardc::rt {

namespace {
constexpr size_t stagingAlignment = 64;
} // namespace

void checkSizes(std::span<const int64_t> sizes, int64_t atMost) {
  for (int64_t size : sizes)
    if (size < 0 || size > atMost)
      throw Failure(SHARDRT_PROGRAM_ERROR, "the program computed that a piece of a tensor has " +
                                               std::to_string(size) + " elements, where 0 to " +
                                               std::to_string(atMost) + " are possible");
}

uint8_t *Executor::arena(size_t bytes) {
  if (bytes > arenaMemory.size())
    arenaMoves();
  arenaMemory.reserve(memory().exchanged(), bytes, SHARDRT_ARENA_ALIGNMENT, "the arena");
  return arenaMemory.data();
}

void *Executor::staging(size_t slot, size_t bytes) {
  if (stagingMemory.size() <= slot)
    stagingMemory.resize(slot + 1);
  stagingMemory[slot].reserve(memory().exchanged(), bytes, stagingAlignment, "staging");
  return stagingMemory[slot].data();
}

HostTransport &Executor::hostTransportOf(Communicator &communicator, const Manifest &manifest) {
  HostTransport *transport = communicator.hostTransport();
  if (!transport)
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  "the communicator does not move data in host memory, where programs for " +
                      manifest.targetKind + " compute");
  return *transport;
}

} // namespace shardc::rt
