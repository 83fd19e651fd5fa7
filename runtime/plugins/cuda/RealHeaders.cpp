// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built only where CUDA's own header is: the plugin's types and constants are those of cuda.h.
#include "runtime/plugins/cuda/Driver.h"

#include <cuda.h>

namespace real = shardc::plugin::cuda;

namespace {

static_assert(real::resultSuccess == CUDA_SUCCESS &&
              real::resultInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              real::resultOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              real::resultNoDevice == CUDA_ERROR_NO_DEVICE &&
              real::resultInvalidImage == CUDA_ERROR_INVALID_IMAGE &&
              real::resultNoBinary == CUDA_ERROR_NO_BINARY_FOR_GPU &&
              real::resultInvalidPtx == CUDA_ERROR_INVALID_PTX &&
              real::resultUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION &&
              real::resultNotFound == CUDA_ERROR_NOT_FOUND &&
              real::resultNotReady == CUDA_ERROR_NOT_READY &&
              real::resultPeerAlreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
static_assert(real::attributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              real::attributeComputeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              real::attributeComputeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              real::attributeSharedOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(real::pointerMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE &&
              real::pointerIsManaged == CU_POINTER_ATTRIBUTE_IS_MANAGED &&
              real::pointerDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(real::functionDynamicShared == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
              real::functionStaticShared == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
static_assert(real::memoryHost == CU_MEMORYTYPE_HOST && real::memoryDevice == CU_MEMORYTYPE_DEVICE);
static_assert(real::captureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
              real::captureNone == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(real::streamNonBlocking == CU_STREAM_NON_BLOCKING &&
              real::eventNoTiming == CU_EVENT_DISABLE_TIMING &&
              real::eventDefault == CU_EVENT_DEFAULT &&
              real::hostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(sizeof(real::Result) == sizeof(CUresult) &&
              sizeof(real::Pointer) == sizeof(CUdeviceptr) &&
              sizeof(real::DeviceNumber) == sizeof(CUdevice) &&
              sizeof(real::StreamHandle) == sizeof(CUstream));
static_assert(sizeof(real::Copy2d) == sizeof(CUDA_MEMCPY2D) &&
              offsetof(real::Copy2d, fromY) == offsetof(CUDA_MEMCPY2D, srcY) &&
              offsetof(real::Copy2d, fromKind) == offsetof(CUDA_MEMCPY2D, srcMemoryType) &&
              offsetof(real::Copy2d, fromHost) == offsetof(CUDA_MEMCPY2D, srcHost) &&
              offsetof(real::Copy2d, fromDevice) == offsetof(CUDA_MEMCPY2D, srcDevice) &&
              offsetof(real::Copy2d, fromPitch) == offsetof(CUDA_MEMCPY2D, srcPitch) &&
              offsetof(real::Copy2d, toKind) == offsetof(CUDA_MEMCPY2D, dstMemoryType) &&
              offsetof(real::Copy2d, toHost) == offsetof(CUDA_MEMCPY2D, dstHost) &&
              offsetof(real::Copy2d, toDevice) == offsetof(CUDA_MEMCPY2D, dstDevice) &&
              offsetof(real::Copy2d, toPitch) == offsetof(CUDA_MEMCPY2D, dstPitch) &&
              offsetof(real::Copy2d, widthInBytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes) &&
              offsetof(real::Copy2d, height) == offsetof(CUDA_MEMCPY2D, Height));
static_assert(real::Copy2d{}.fromKind == CU_MEMORYTYPE_UNIFIED &&
              real::Copy2d{}.toKind == CU_MEMORYTYPE_UNIFIED);
static_assert(CU_JIT_ERROR_LOG_BUFFER == 5 && CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == 6);

/// What two parameters have in common: pointers to anything, or numbers of one size.
template <typename Mine, typename Theirs>
constexpr bool passesAs =
    std::is_pointer_v<Mine> == std::is_pointer_v<Theirs> && sizeof(Mine) == sizeof(Theirs);
template <typename Mine, typename Theirs> struct SameCall : std::false_type {};
template <typename... Mine, typename... Theirs>
struct SameCall<real::Result (*)(Mine...), CUresult (*)(Theirs...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(Mine) == sizeof...(Theirs))
      return (passesAs<Mine, Theirs> && ...);
    else
      return false;
  }();
};
#define SHARDC_CUDA_SAME(member, symbol, parameters)                                               \
  static_assert(SameCall<decltype(real::Driver::member), decltype(&symbol)>::value);
SHARDC_CUDA_DRIVER(SHARDC_CUDA_SAME)

} // namespace
