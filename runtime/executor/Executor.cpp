// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/executor/Executor.h"

namespace shardc::rt {

namespace {
constexpr size_t stagingAlignment = 64;
} // namespace

void Executor::runChecked(const shardrt_entry &, const shardrt_variant &, shardrt_frame &, uint64_t,
                          std::vector<CheckedMemory>) {
  throw Failure(SHARDRT_INVALID_ARGUMENT,
                "programs for this target cannot be run with a check of memory; run without it");
}

uint8_t *Executor::arena(size_t bytes) {
  arenaMemory.reserve(memory().allocator(), bytes, SHARDRT_ARENA_ALIGNMENT, "the arena");
  return arenaMemory.data();
}

void *Executor::staging(size_t slot, size_t bytes) {
  if (stagingMemory.size() <= slot)
    stagingMemory.resize(slot + 1);
  stagingMemory[slot].reserve(memory().allocator(), bytes, stagingAlignment, "staging");
  return stagingMemory[slot].data();
}

} // namespace shardc::rt
