// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the plugin uses of the types and constants of CUDA's driver, so that it builds where no
// toolkit is. RealHeaders.cpp compares them with cuda.h where there is one.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_DRIVERTYPES_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_DRIVERTYPES_H

#include <cstddef>
#include <cstdint>

namespace shardc::plugin::cuda {

using Result = int;
using DeviceNumber = int;
using Pointer = unsigned long long; ///< in the device's memory

// Each has a type of its own, so that they are not mixed up.
using ContextHandle = struct ContextTag *;
using ModuleHandle = struct ModuleTag *;
using FunctionHandle = struct FunctionTag *;
using StreamHandle = struct StreamTag *;
using EventHandle = struct EventTag *;
using GraphHandle = struct GraphTag *;
using GraphExecHandle = struct GraphExecTag *;

constexpr Result resultSuccess = 0;
constexpr Result resultInvalidValue = 1;
constexpr Result resultOutOfMemory = 2;
constexpr Result resultNoDevice = 100;
constexpr Result resultInvalidImage = 200;
constexpr Result resultNoBinary = 209;
constexpr Result resultInvalidPtx = 218;
constexpr Result resultUnsupportedPtx = 222;
constexpr Result resultNotFound = 500;
constexpr Result resultNotReady = 600;
constexpr Result resultPeerAlreadyEnabled = 704;

constexpr int attributeMultiprocessors = 16;
constexpr int attributeComputeMajor = 75;
constexpr int attributeComputeMinor = 76;
constexpr int attributeSharedOptIn = 97;
constexpr int pointerMemoryType = 2;
constexpr int pointerIsManaged = 8;
constexpr int pointerDeviceOrdinal = 9;
constexpr int functionDynamicShared = 8;
constexpr int functionStaticShared = 1;
constexpr int memoryHost = 1;
constexpr int memoryDevice = 2;
constexpr int captureThreadLocal = 1;
constexpr int captureNone = 0;

constexpr unsigned streamNonBlocking = 1;
constexpr unsigned eventDefault = 0;
constexpr unsigned eventNoTiming = 2;
constexpr unsigned hostAllocPortable = 1;

/// CUDA_MEMCPY2D; the kinds of memory are all "unified": addresses say where they are.
struct Copy2d {
  size_t fromXInBytes = 0, fromY = 0;
  unsigned fromKind = 4;
  const void *fromHost = nullptr;
  Pointer fromDevice = 0;
  void *fromArray = nullptr;
  size_t fromPitch = 0;
  size_t toXInBytes = 0, toY = 0;
  unsigned toKind = 4;
  void *toHost = nullptr;
  Pointer toDevice = 0;
  void *toArray = nullptr;
  size_t toPitch = 0;
  size_t widthInBytes = 0, height = 0;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_DRIVERTYPES_H
