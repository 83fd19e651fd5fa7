// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What generated code calls where threads wait: for each other and for asynchronous copies. Each of
// these calls can be left out (Block::leaves), which mutation tests do.
#include "tools/cuda-emulator/Block.h"

#include <cstring>

namespace shardc::emulator {
namespace {

void trap(Block *block, uint32_t thread, uint32_t site) {
  block->fail(CUDA_ERROR_LAUNCH_FAILED, thread, site, "the kernel has ended itself");
}

void barrier(Block *block, uint32_t thread, uint32_t site) {
  if (block->leaves(site))
    return;
  block->state[thread].state = EmulatedThread::AtBarrier;
  block->state[thread].site = site;
  block->fibers.suspend();
}

void warp(Block *block, uint32_t thread, uint32_t operation, uint32_t mask, const uint32_t *in,
          uint32_t *out, uint32_t site) {
  EmulatedThread &t = block->state[thread];
  if (block->leaves(site)) {
    if (WarpOperation(operation) == WarpOperation::Sync)
      return;
    mask &= mask - 1; // without its first lane
  }
  if (!(mask >> thread % warpThreads & 1))
    block->fail(CUDA_ERROR_LAUNCH_FAILED, thread, site,
                std::string(nameOf(WarpOperation(operation))) +
                    " with a mask that the thread's own lane is not in");
  if (uint32_t matrices = matricesOf(WarpOperation(operation));
      block->checks && thread % warpThreads < matrices * 8) {
    uint64_t row;
    std::memcpy(&row, in, 8);
    if (row % 16)
      block->misaligned(row, 16, thread, site);
    block->sharedAccess(row, 16, false, thread, site);
  }
  t.state = EmulatedThread::AtWarp;
  t.operation = WarpOperation(operation);
  t.mask = mask;
  t.in = in;
  t.out = out;
  t.site = site;
  block->fibers.suspend();
}

void asyncCopy(Block *block, uint32_t thread, uint64_t to, uint64_t from, uint32_t bytes,
               uint32_t fromBytes, uint32_t site) {
  if (to % bytes || from % bytes)
    block->misaligned(to % bytes ? to : from, bytes, thread, site);
  block->access(from, fromBytes, false, false, thread, site);
  if (block->checks) {
    block->sharedAccess(to, bytes, true, thread, site);
    std::memset(block->sharedStates.data() + (to - reinterpret_cast<uint64_t>(block->shared)),
                InFlight, bytes);
  }
  block->state[thread].copies.push_back({to, from, bytes, fromBytes, site});
}

void finishCopies(Block *block, uint32_t thread, size_t n) {
  std::vector<AsyncCopy> &copies = block->state[thread].copies;
  for (size_t i = 0; i < n; ++i) {
    const AsyncCopy &copy = copies[i];
    if (block->checks) {
      uint8_t *states =
          block->sharedStates.data() + (copy.to - reinterpret_cast<uint64_t>(block->shared));
      std::memset(states, Unwritten, copy.bytes);
      block->sharedAccess(copy.to, copy.bytes, true, thread, copy.site);
    }
    uint8_t *to = reinterpret_cast<uint8_t *>(copy.to);
    std::memcpy(to, reinterpret_cast<const void *>(copy.from), copy.fromBytes);
    std::memset(to + copy.fromBytes, 0, copy.bytes - copy.fromBytes);
  }
  copies.erase(copies.begin(), copies.begin() + n);
}

void commitCopies(Block *block, uint32_t thread, uint32_t site) {
  if (block->leaves(site))
    return;
  EmulatedThread &t = block->state[thread];
  uint32_t sum = 0;
  for (uint32_t n : t.committed)
    sum += n;
  t.committed.push_back(uint32_t(t.copies.size()) - sum);
}

void waitCopies(Block *block, uint32_t thread, uint32_t groups, uint32_t site) {
  if (block->leaves(site))
    return;
  EmulatedThread &t = block->state[thread];
  size_t n = 0;
  while (t.committed.size() > groups) {
    n += t.committed.front();
    t.committed.erase(t.committed.begin());
  }
  finishCopies(block, thread, n);
}

void waitAllCopies(Block *block, uint32_t thread, uint32_t site) {
  if (block->leaves(site))
    return;
  block->state[thread].committed.clear();
  finishCopies(block, thread, block->state[thread].copies.size());
}

} // namespace

std::vector<std::pair<const char *, void *>> supportFunctions() {
  std::vector<std::pair<const char *, void *>> all = checkFunctions();
  all.insert(all.end(), {{"emulated_trap", addressOf(&trap)},
                         {"emulated_barrier", addressOf(&barrier)},
                         {"emulated_warp", addressOf(&warp)},
                         {"emulated_async_copy", addressOf(&asyncCopy)},
                         {"emulated_commit_copies", addressOf(&commitCopies)},
                         {"emulated_wait_copies", addressOf(&waitCopies)},
                         {"emulated_wait_all_copies", addressOf(&waitAllCopies)}});
  return all;
}

} // namespace shardc::emulator
