// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Block.h"
#include "tools/cuda-emulator/Settings.h"
#include "tools/cuda-emulator/Streams.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace shardc::emulator {
namespace {

/// Of a thread, for calls of libm and what a kernel keeps on its own.
constexpr uint64_t smallestStack = 60 * 1024;
constexpr uint32_t clockLimit = (1u << 20) - 1;
constexpr uint64_t sharedLimit = 256 * 1024;

void runThread(void *block, uint32_t thread) {
  Block &b = *static_cast<Block *>(block);
  b.kernel->entry(block, thread);
  b.state[thread].state = EmulatedThread::Finished;
}

std::string triple(uint32_t x, uint32_t y, uint32_t z) {
  return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
}

} // namespace

Block &theBlock() {
  static Block *block = new Block;
  return *block;
}

void Block::begin(const CompiledKernel &compiled, const uint32_t gridSize[3],
                  const uint32_t blockSize[3], uint32_t dynamicShared, const void *const *values) {
  kernel = &compiled;
  checks = settings().checks;
  std::copy_n(gridSize, 3, grid);
  std::copy_n(blockSize, 3, size);
  params = values;
  threads = size[0] * size[1] * size[2];
  failed = false;
  serial = 0;
  if (!shared) {
    shared = static_cast<uint8_t *>(std::aligned_alloc(4096, sharedLimit));
    sharedWrites.assign(sharedLimit, 0);
    sharedReads.assign(sharedLimit, 0);
  }
  sharedBytes = kernel->dynamicOffset + dynamicShared;
  sharedStates.assign(sharedBytes, NoMemory);
  state.resize(threads);
  fibers.prepare(kernel->fibers ? threads : 1, smallestStack + kernel->stackBytes);
}

bool Block::run() {
  for (index[2] = 0; index[2] < grid[2]; ++index[2])
    for (index[1] = 0; index[1] < grid[1]; ++index[1])
      for (index[0] = 0; index[0] < grid[0]; ++index[0]) {
        if (!runBlock())
          return false;
        ++serial;
      }
  return true;
}

bool Block::runBlock() {
  epoch = 0;
  for (const SharedVariable &variable : kernel->shared)
    std::memset(sharedStates.data() + variable.offset, Unwritten, variable.bytes);
  std::memset(sharedStates.data() + kernel->dynamicOffset, Unwritten,
              sharedBytes - kernel->dynamicOffset);
  advanceClock();
  blockSync = clock;
  if (!kernel->fibers) {
    fibers.reset(
        0, [](void *block, uint32_t) { static_cast<Block *>(block)->kernel->entry(block, 0); },
        this);
    fibers.resume(0);
    return !failed;
  }
  for (uint32_t thread = 0; thread < threads; ++thread) {
    state[thread].state = EmulatedThread::Ready;
    state[thread].copies.clear();
    state[thread].committed.clear();
    fibers.reset(thread, &runThread, this);
  }
  uint32_t warps = (threads + warpThreads - 1) / warpThreads;
  for (;;) {
    for (uint32_t warp = 0; warp < warps; ++warp)
      if (!runWarp(warp))
        return false;
    bool finished = std::all_of(state.begin(), state.end(), [](const EmulatedThread &t) {
      return t.state == EmulatedThread::Finished;
    });
    if (finished)
      return true;
    if (!releaseBarrier())
      return false;
  }
}

bool Block::runWarp(uint32_t warp) {
  uint32_t first = warp * warpThreads, end = std::min(threads, first + warpThreads);
  do {
    for (uint32_t thread = first; thread < end; ++thread) {
      if (state[thread].state != EmulatedThread::Ready)
        continue;
      fibers.resume(thread);
      if (failed)
        return false;
    }
  } while (completeWarp(warp));
  if (failed)
    return false;
  // Lanes that still wait for others of the warp will do so for ever: those have come to a barrier
  // of the block, to another operation, or to their end.
  for (uint32_t thread = first; thread < end; ++thread) {
    const EmulatedThread &waits = state[thread];
    if (waits.state != EmulatedThread::AtWarp)
      continue;
    std::string others;
    for (uint32_t lane = 0; lane < warpThreads && others.empty(); ++lane) {
      if (!(waits.mask >> lane & 1))
        continue;
      uint32_t other = first + lane;
      if (other >= end)
        others = "lane " + std::to_string(lane) + ", which the block does not have";
      else if (state[other].state == EmulatedThread::Finished)
        others = "lane " + std::to_string(lane) + ", which has ended";
      else if (state[other].state == EmulatedThread::AtBarrier)
        others = "lane " + std::to_string(lane) + ", which is at a barrier of the block";
      else if (state[other].operation != waits.operation || state[other].mask != waits.mask)
        others = "lane " + std::to_string(lane) + ", which is at another operation (" +
                 nameOf(state[other].operation) + ") or has another mask";
    }
    report(CUDA_ERROR_LAUNCH_FAILED, thread, waits.site,
           std::string("divergent warp: ") + nameOf(waits.operation) + " waits for " + others);
    return false;
  }
  return true;
}

bool Block::releaseBarrier() {
  const EmulatedThread *at = nullptr;
  uint32_t waiting = 0, finished = 0, any = 0;
  bool same = true;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    const EmulatedThread &t = state[thread];
    finished += t.state == EmulatedThread::Finished;
    if (t.state != EmulatedThread::AtBarrier)
      continue;
    ++waiting;
    any = thread;
    same &= !at || at->site == t.site;
    at = &t;
  }
  if (waiting != threads || !same) {
    report(CUDA_ERROR_LAUNCH_FAILED, any, at ? at->site : 0,
           "divergent barrier: " + std::to_string(waiting) + " of " + std::to_string(threads) +
               " threads are at a barrier" +
               (same ? ", " + std::to_string(finished) + " have ended"
                     : std::string(", but not all at the same one")));
    return false;
  }
  ++epoch;
  advanceClock();
  blockSync = clock;
  for (EmulatedThread &t : state)
    t.state = EmulatedThread::Ready;
  return true;
}

void Block::advanceClock() {
  if (++clock < clockLimit)
    return;
  std::fill(sharedWrites.begin(), sharedWrites.end(), 0);
  std::fill(sharedReads.begin(), sharedReads.end(), 0);
  std::fill(std::begin(warpSync), std::end(warpSync), 0);
  clock = blockSync = 1;
}

std::string Block::threadName(uint32_t thread) const {
  uint32_t x = thread % size[0], y = thread / size[0] % size[1], z = thread / size[0] / size[1];
  return "thread " + triple(x, y, z) + " of block " + triple(index[0], index[1], index[2]);
}

void Block::report(CUresult error, uint32_t thread, uint32_t site, const std::string &message) {
  failed = true;
  std::string text = threadName(thread);
  if (site < kernel->sites.size())
    text += ", " + kernel->sites[site];
  reportError(device, error, text + ": " + message);
}

void Block::fail(CUresult error, uint32_t thread, uint32_t site, const std::string &message) {
  report(error, thread, site, message);
  for (;;)
    fibers.suspend(); // The launch is over: nobody resumes this fiber.
}

} // namespace shardc::emulator
