// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the CUDA driver API (12.0 and later) that the emulated device has. These are
// declarations of our own, binary compatible with the driver's: machines without CUDA build the
// emulator too. Enumerations are passed as int. Not meant for files that include cuda.h.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_DRIVER_H
#define SHARDC_TOOLS_CUDA_EMULATOR_DRIVER_H

#include <cstddef>
#include <cstdint>

extern "C" {

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

enum : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_UNKNOWN = 999
};

enum : int {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_UNIFIED = 4,
  CU_STREAM_DEFAULT = 0,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_BLOCKING_SYNC = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_EVENT_INTERPROCESS = 4,
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
};

enum : int {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  CU_POINTER_ATTRIBUTE_MAPPED = 13
};

enum : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9
};

typedef struct CUDA_MEMCPY2D_st {
  size_t srcXInBytes;
  size_t srcY;
  int srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  void *srcArray;
  size_t srcPitch;
  size_t dstXInBytes;
  size_t dstY;
  int dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  void *dstArray;
  size_t dstPitch;
  size_t WidthInBytes;
  size_t Height;
} CUDA_MEMCPY2D;

#define EMULATED __attribute__((visibility("default")))

EMULATED CUresult cuInit(unsigned flags);
EMULATED CUresult cuDriverGetVersion(int *version);
EMULATED CUresult cuGetErrorString(CUresult error, const char **text);
EMULATED CUresult cuGetErrorName(CUresult error, const char **text);

EMULATED CUresult cuDeviceGet(CUdevice *device, int ordinal);
EMULATED CUresult cuDeviceGetCount(int *count);
EMULATED CUresult cuDeviceGetName(char *name, int bytes, CUdevice device);
EMULATED CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
EMULATED CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
EMULATED CUresult cuDeviceGetUuid_v2(void *uuid, CUdevice device);
EMULATED CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device);
EMULATED CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
EMULATED CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
EMULATED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
EMULATED CUresult cuCtxSetCurrent(CUcontext context);
EMULATED CUresult cuCtxGetCurrent(CUcontext *context);
EMULATED CUresult cuCtxPushCurrent_v2(CUcontext context);
EMULATED CUresult cuCtxPopCurrent_v2(CUcontext *context);
EMULATED CUresult cuCtxGetDevice(CUdevice *device);
EMULATED CUresult cuCtxSynchronize(void);
EMULATED CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
EMULATED CUresult cuCtxDisablePeerAccess(CUcontext peer);

EMULATED CUresult cuMemGetInfo_v2(size_t *unused, size_t *total);
EMULATED CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes);
EMULATED CUresult cuMemFree_v2(CUdeviceptr memory);
EMULATED CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
EMULATED CUresult cuMemFreeHost(void *memory);
EMULATED CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
EMULATED CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                       CUstream stream);
EMULATED CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
EMULATED CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                       CUstream stream);
EMULATED CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
EMULATED CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
EMULATED CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream);
EMULATED CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream);
EMULATED CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream);
EMULATED CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream);
EMULATED CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr memory);
EMULATED CUresult cuPointerGetAttributes(unsigned n, int *attributes, void **values,
                                         CUdeviceptr memory);

EMULATED CUresult cuStreamCreate(CUstream *stream, unsigned flags);
EMULATED CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
EMULATED CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
EMULATED CUresult cuStreamDestroy_v2(CUstream stream);
EMULATED CUresult cuStreamSynchronize(CUstream stream);
EMULATED CUresult cuStreamQuery(CUstream stream);
EMULATED CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
EMULATED CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
EMULATED CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
EMULATED CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
EMULATED CUresult cuStreamIsCapturing(CUstream stream, int *status);
EMULATED CUresult cuStreamGetCaptureInfo_v2(CUstream stream, int *status, unsigned long long *id,
                                            CUgraph *graph, const CUgraphNode **nodes, size_t *n);
EMULATED CUresult cuThreadExchangeStreamCaptureMode(int *mode);
EMULATED CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph,
                                              unsigned long long flags);
EMULATED CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream);
EMULATED CUresult cuGraphExecDestroy(CUgraphExec executable);
EMULATED CUresult cuGraphDestroy(CUgraph graph);
EMULATED CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n);
EMULATED CUresult cuEventCreate(CUevent *event, unsigned flags);
EMULATED CUresult cuEventDestroy_v2(CUevent event);
EMULATED CUresult cuEventRecord(CUevent event, CUstream stream);
EMULATED CUresult cuEventQuery(CUevent event);
EMULATED CUresult cuEventSynchronize(CUevent event);
EMULATED CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end);

EMULATED CUresult cuModuleLoadData(CUmodule *module, const void *image);
EMULATED CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, int *options,
                                     void **values);
EMULATED CUresult cuModuleUnload(CUmodule module);
EMULATED CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
EMULATED CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
EMULATED CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
EMULATED CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,
                                 unsigned sharedBytes, CUstream stream, void **params,
                                 void **extra);
EMULATED CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                              int blockSize, size_t sharedBytes);

// What only the emulated device has.

/// Loads a module from LLVM bitcode for nvptx64 of so many bytes. (cuModuleLoadData takes bitcode
/// too, and text of LLVM IR that ends with a zero.)
EMULATED CUresult cuEmulatedModuleLoadBitcode(CUmodule *module, const void *image, size_t bytes);

/// Text of the reports since the process began or since the last cuEmulatedClearReports; valid
/// until the next call. How many there were goes to *count, which may be null.
EMULATED const char *cuEmulatedReports(size_t *count);
/// Forgets reports and the sticky errors of all devices (tests go on in one process).
EMULATED void cuEmulatedClearReports(void);
/// Sets the order of streams: "eager", "lazy" or "random:SEED". Everything enqueued has run then.
EMULATED CUresult cuEmulatedSetOrder(const char *order);
/// Whether devices can reach each other's memory from now on (cuCtxEnablePeerAccess).
EMULATED void cuEmulatedSetPeers(int peers);
/// Sets what is dropped: "wait:N", "barrier:N", "check:N" or "". Counting begins anew, and kernels
/// are compiled anew.
EMULATED CUresult cuEmulatedSetDrop(const char *drop);
/// How many waits, barriers and range checks there were: "wait", "barrier", "check"; launches of
/// graphs: "graphs". And what there is now: "communicators", and bytes "registered" with them.
EMULATED uint64_t cuEmulatedCount(const char *what);

#undef EMULATED
} // extern "C"

#endif // SHARDC_TOOLS_CUDA_EMULATOR_DRIVER_H
