// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One block of threads while it runs: what generated code reads, the state of its threads, and what
// is known of its shared memory. Blocks of a launch run one after the other, and so do launches.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_BLOCK_H
#define SHARDC_TOOLS_CUDA_EMULATOR_BLOCK_H

#include "tools/cuda-emulator/Driver.h"
#include "tools/cuda-emulator/Fibers.h"
#include "tools/cuda-emulator/Memory.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardc::emulator {

constexpr uint32_t warpThreads = 32;
constexpr uint32_t maxThreads = 1024;

struct SharedVariable {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

/// Where threads wait for each other or for copies: what a mutant of the kernel lacks.
struct WaitingSite {
  const char *kind; ///< "barrier", "warp-sync", "mask", "copy-commit", "copy-wait"
  uint32_t site;    ///< in CompiledKernel::sites
};

/// A kernel that has been compiled for the host.
struct CompiledKernel {
  std::string name;
  /// Threads that wait for each other run on fibers: entry(block, thread). Others in a loop:
  /// entry(block, 0) runs all threads of the block.
  bool fibers = false;
  void (*entry)(void *block, uint32_t thread) = nullptr;
  std::vector<std::string> sites; ///< texts of instructions that are checked
  std::vector<WaitingSite> waiting;
  uint64_t rangeChecks = 0;
  std::vector<std::pair<uint64_t, uint64_t>> constants; ///< global variables: begin and end
  std::vector<SharedVariable> shared;
  uint32_t dynamicOffset = 0; ///< where dynamic shared memory begins
  uint64_t stackBytes = 0;
};

enum class WarpOperation : uint32_t {
  Sync,
  ShuffleUp,
  ShuffleDown,
  ShuffleButterfly,
  ShuffleIndex,
  VoteAny,
  VoteAll,
  VoteUniform,
  VoteBallot,
  ReduceAdd,
  ReduceMin,
  ReduceMax,
  ReduceUnsignedMin,
  ReduceUnsignedMax,
  ReduceAnd,
  ReduceOr,
  ReduceXor,
  LoadMatrix1,
  LoadMatrix2,
  LoadMatrix4,
  LoadMatrix1Transposed,
  LoadMatrix2Transposed,
  LoadMatrix4Transposed,
  MultiplyF16K16,
  MultiplyBf16K16,
  MultiplyF16K8,
  MultiplyBf16K8,
  MultiplyTf32K8,
  MultiplyTf32K4
};
const char *nameOf(WarpOperation operation);
/// Of ldmatrix: 1, 2 or 4; 0 for others.
uint32_t matricesOf(WarpOperation operation);

struct AsyncCopy {
  uint64_t to, from;
  uint32_t bytes, fromBytes; ///< the rest is zeros
  uint32_t site;
};

struct EmulatedThread {
  enum State : uint8_t { Ready, AtBarrier, AtWarp, Finished } state = Ready;
  uint32_t site = 0;
  WarpOperation operation = WarpOperation::Sync;
  uint32_t mask = 0;
  const uint32_t *in = nullptr; ///< words on the thread's stack
  uint32_t *out = nullptr;
  std::vector<AsyncCopy> copies;   ///< not waited for, in order
  std::vector<uint32_t> committed; ///< how many copies each group that is not waited for has
};

struct Block {
  // Read by generated code (BlockLayout in Compile.cpp).
  uint32_t grid[3] = {};
  uint32_t size[3] = {};
  uint32_t index[3] = {};
  uint32_t reserved = 0;
  const void *const *params = nullptr;
  uint8_t *shared = nullptr;

  const CompiledKernel *kernel = nullptr;
  uint32_t threads = 0;
  int device = 0;
  bool checks = true;

  // Global memory: what cells of this block have (Checks.cpp).
  uint32_t epoch = 0;
  uint32_t serial = 0;
  // Shared memory: time goes on with every barrier of the block or of a warp.
  uint32_t sharedBytes = 0;
  uint32_t clock = 0;
  uint32_t blockSync = 0;
  uint32_t warpSync[maxThreads / warpThreads] = {};
  std::vector<uint8_t> sharedStates;
  std::vector<uint32_t> sharedWrites, sharedReads; ///< cells (Checks.cpp)

  std::vector<EmulatedThread> state;
  Fibers fibers;
  bool failed = false;
  /// The WaitingSite that is left out, and whether a thread came there.
  uint32_t leftOut = ~0u;
  bool cameBy = false;
  bool leaves(uint32_t site) {
    if (site != leftOut) [[likely]]
      return false;
    return cameBy = true;
  }

  /// Prepares for a launch; the index of blocks is set by run().
  void begin(const CompiledKernel &kernel, const uint32_t grid[3], const uint32_t size[3],
             uint32_t dynamicShared, const void *const *params);
  /// Runs all blocks; false after a report.
  bool run();

  /// Ends the launch with a report: "MESSAGE in thread ... of block ...". Called on a fiber; does
  /// not return there.
  [[noreturn]] void fail(CUresult error, uint32_t thread, uint32_t site,
                         const std::string &message);
  /// Called by the host's side.
  void report(CUresult error, uint32_t thread, uint32_t site, const std::string &message);

  // Checks.cpp
  void sharedAccess(uint64_t address, uint32_t bytes, bool write, uint32_t thread, uint32_t site);
  void access(uint64_t address, uint64_t bytes, bool write, bool atomic, uint32_t thread,
              uint32_t site);
  [[noreturn]] void misaligned(uint64_t address, uint32_t alignment, uint32_t thread,
                               uint32_t site);

  // Warp.cpp
  /// Does what the lanes of a warp have come together for; false: none goes on.
  bool completeWarp(uint32_t warp);
  void advanceClock();

private:
  bool runBlock();
  bool runWarp(uint32_t warp);
  void perform(uint32_t first, uint32_t lanes, WarpOperation operation);
  bool releaseBarrier();
  std::string threadName(uint32_t thread) const;
};

/// The block that runs: kernels run one at a time.
Block &theBlock();

template <typename F> void *addressOf(F *function) { return reinterpret_cast<void *>(function); }
/// Names and addresses of what generated code calls.
std::vector<std::pair<const char *, void *>> supportFunctions();
/// Those of them that check accesses.
std::vector<std::pair<const char *, void *>> checkFunctions();
/// The same of functions of mathematics.
std::vector<std::pair<const char *, void *>> mathFunctions();

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_BLOCK_H
