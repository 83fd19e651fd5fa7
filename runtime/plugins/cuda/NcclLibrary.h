// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of NCCL that the plugin calls, from the library of the machine or the emulated
// device. Types and constants are our own, so that it builds where NCCL is not installed
// (NcclHeaders.cpp compares them with nccl.h where there is one).
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_NCCLLIBRARY_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_NCCLLIBRARY_H

#include "runtime/plugins/cuda/Device.h"

#include <climits>

namespace shardc::plugin::cuda {

using NcclResult = int;
using NcclHandle = struct NcclTag *;

constexpr NcclResult ncclOk = 0;
constexpr NcclResult ncclIsInProgress = 7;

/// The oldest that has ncclCommSplit.
constexpr int oldestNccl = 21800;

enum NcclType : int {
  ncclTypeI8 = 0,
  ncclTypeU8 = 1,
  ncclTypeI32 = 2,
  ncclTypeI64 = 4,
  ncclTypeF16 = 6,
  ncclTypeF32 = 7,
  ncclTypeF64 = 8,
  ncclTypeBF16 = 9
};
enum NcclReduction : int {
  ncclReduceSum = 0,
  ncclReduceProd = 1,
  ncclReduceMax = 2,
  ncclReduceMin = 3,
  ncclReduceAvg = 4
};
constexpr int ncclNoColor = -1;

struct NcclId {
  char bytes[128];
};

/// ncclConfig_t as of 2.18; later versions read as much of it as `size` says.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = oldestNccl;
  int blocking = INT_MIN; ///< INT_MIN and null: the library's choice
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

/// The table (EntryPoints.h).
#define SHARDC_NCCL(X)                                                                             \
  X(version, ncclGetVersion, NcclResult, (int *))                                                  \
  X(makeId, ncclGetUniqueId, NcclResult, (NcclId *))                                               \
  X(errorText, ncclGetErrorString, const char *, (NcclResult))                                     \
  X(lastError, ncclGetLastError, const char *, (NcclHandle))                                       \
  X(init, ncclCommInitRankConfig, NcclResult, (NcclHandle *, int, NcclId, int, NcclConfig *))      \
  X(split, ncclCommSplit, NcclResult, (NcclHandle, int, int, NcclHandle *, NcclConfig *))          \
  X(asyncError, ncclCommGetAsyncError, NcclResult, (NcclHandle, NcclResult *))                     \
  X(finalize, ncclCommFinalize, NcclResult, (NcclHandle))                                          \
  X(destroy, ncclCommDestroy, NcclResult, (NcclHandle))                                            \
  X(abort, ncclCommAbort, NcclResult, (NcclHandle))                                                \
  X(groupStart, ncclGroupStart, NcclResult, ())                                                    \
  X(groupEnd, ncclGroupEnd, NcclResult, ())                                                        \
  X(allReduce, ncclAllReduce, NcclResult,                                                          \
    (const void *, void *, size_t, int, int, NcclHandle, StreamHandle))                            \
  X(broadcast, ncclBroadcast, NcclResult,                                                          \
    (const void *, void *, size_t, int, int, NcclHandle, StreamHandle))                            \
  X(reduce, ncclReduce, NcclResult,                                                                \
    (const void *, void *, size_t, int, int, int, NcclHandle, StreamHandle))                       \
  X(allGather, ncclAllGather, NcclResult,                                                          \
    (const void *, void *, size_t, int, NcclHandle, StreamHandle))                                 \
  X(reduceScatter, ncclReduceScatter, NcclResult,                                                  \
    (const void *, void *, size_t, int, int, NcclHandle, StreamHandle))                            \
  X(send, ncclSend, NcclResult, (const void *, size_t, int, int, NcclHandle, StreamHandle))        \
  X(receive, ncclRecv, NcclResult, (void *, size_t, int, int, NcclHandle, StreamHandle))

struct NcclLibrary {
  /// Throws Failure: SHARDRT_NOT_FOUND, or SHARDRT_INCOMPATIBLE with all that it lacks.
  static std::shared_ptr<const NcclLibrary> load(Device &device);

  SHARDC_NCCL(SHARDC_ENTRY_RETURNING)
  /// Of 2.19; null before.
  NcclResult (*remember)(NcclHandle, void *, size_t, void **) = nullptr;
  NcclResult (*forget)(NcclHandle, void *) = nullptr;

  /// "NCCL 2.28.3".
  std::string name() const;
  /// "ncclAllReduce: unhandled system error (socket closed)".
  std::string describe(const char *function, NcclResult result, NcclHandle handle) const;
  /// Throws Failure unless it is a success, or in progress.
  void check(const char *function, NcclResult result, NcclHandle handle = nullptr) const;

  int number = 0; ///< 22803 for 2.28.3
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_NCCLLIBRARY_H
