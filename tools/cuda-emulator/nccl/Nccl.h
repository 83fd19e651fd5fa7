// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of NCCL (2.18 and later) that the emulated device has. These are declarations of our
// own, binary compatible with the library's. Enumerations are passed as int.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_NCCL_NCCL_H
#define SHARDC_TOOLS_CUDA_EMULATOR_NCCL_NCCL_H

#include "tools/cuda-emulator/Driver.h"

extern "C" {

typedef int ncclResult_t;
typedef struct ncclComm *ncclComm_t;
typedef struct {
  char internal[128];
} ncclUniqueId;

enum : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum : int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};
enum : int { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };

/// The fields that every version since 2.14 has.
typedef struct {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
} ncclConfig_t;

#define EMULATED __attribute__((visibility("default")))

EMULATED ncclResult_t ncclGetVersion(int *version);
EMULATED ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
EMULATED const char *ncclGetErrorString(ncclResult_t result);
EMULATED const char *ncclGetLastError(ncclComm_t comm);
EMULATED ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                             ncclConfig_t *config);
EMULATED ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
EMULATED ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                                    ncclConfig_t *config);
EMULATED ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
EMULATED ncclResult_t ncclCommFinalize(ncclComm_t comm);
EMULATED ncclResult_t ncclCommDestroy(ncclComm_t comm);
EMULATED ncclResult_t ncclCommAbort(ncclComm_t comm);
EMULATED ncclResult_t ncclCommCount(ncclComm_t comm, int *count);
EMULATED ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank);
EMULATED ncclResult_t ncclCommRegister(ncclComm_t comm, void *memory, size_t bytes, void **handle);
EMULATED ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle);
EMULATED ncclResult_t ncclGroupStart(void);
EMULATED ncclResult_t ncclGroupEnd(void);
EMULATED ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, int type,
                                    int reduction, ncclComm_t comm, CUstream stream);
EMULATED ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, int type,
                                    int root, ncclComm_t comm, CUstream stream);
EMULATED ncclResult_t ncclReduce(const void *send, void *receive, size_t count, int type,
                                 int reduction, int root, ncclComm_t comm, CUstream stream);
EMULATED ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, int type,
                                    ncclComm_t comm, CUstream stream);
EMULATED ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, int type,
                                        int reduction, ncclComm_t comm, CUstream stream);
EMULATED ncclResult_t ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm,
                               CUstream stream);
EMULATED ncclResult_t ncclRecv(void *receive, size_t count, int type, int peer, ncclComm_t comm,
                               CUstream stream);

#undef EMULATED
} // extern "C"

#endif // SHARDC_TOOLS_CUDA_EMULATOR_NCCL_NCCL_H
