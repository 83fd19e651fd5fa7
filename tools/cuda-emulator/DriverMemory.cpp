// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory and copies.
#include "tools/cuda-emulator/DriverSupport.h"
#include "tools/cuda-emulator/Memory.h"
#include "tools/cuda-emulator/Settings.h"

#include <cstring>
#include <memory>

using namespace shardc::emulator;

namespace {

CUresult allocate(uint64_t &address, size_t bytes, bool pinned, const char *name) {
  return callInContext([&](Engine &engine, Device &device) -> CUresult {
    if (!bytes)
      return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = engine.unsafeCall(name))
      return error;
    Memory &memory = Memory::instance();
    uint64_t free = settings().memoryBytes - memory.used(device.ordinal);
    if (!pinned && bytes > free)
      return CUDA_ERROR_OUT_OF_MEMORY;
    address = memory.allocate(bytes, device.ordinal, pinned);
    return address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  });
}

CUresult release(uint64_t address, bool pinned, const char *name) {
  return callInContext([&](Engine &engine, Device &device) -> CUresult {
    if (!address)
      return CUDA_SUCCESS;
    if (CUresult error = engine.unsafeCall(name))
      return error;
    const Allocation *of = Memory::instance().find(address);
    // Work that is under way may use it.
    if (CUresult error = engine.waitForDevice(of ? of->device : device.ordinal, false))
      return error;
    if (of && !of->freed)
      if (CUresult error =
              engine.release(*engine.devices[of->device], {of->address, of->address + of->bytes}))
        return error;
    if (!Memory::instance().release(address, pinned)) {
      engine.fail(-1, CUDA_ERROR_INVALID_VALUE,
                  std::string(name) +
                      " of what is no live allocation: " + Memory::instance().describe(address));
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  });
}

struct Rows {
  uint64_t address, pitch;
};

void copyRows(uint64_t to, uint64_t toPitch, uint64_t from, uint64_t fromPitch, uint64_t bytes,
              uint64_t rows) {
  for (uint64_t row = 0; row < rows; ++row)
    std::memmove(reinterpret_cast<void *>(to + row * toPitch),
                 reinterpret_cast<const void *>(from + row * fromPitch), bytes);
}

Work workOf(std::string name, std::vector<Region> reads, std::vector<Region> writes,
            std::function<void()> body) {
  Work work;
  work.operation.name = std::move(name);
  work.operation.reads = std::move(reads);
  work.operation.writes = std::move(writes);
  work.operation.start = [body = std::move(body)]() -> std::function<Progress()> {
    return [body] {
      body();
      return Progress::Done;
    };
  };
  return work;
}

CUresult copy(Rows to, Rows from, uint64_t bytes, uint64_t rows, CUstream handle) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    if (!bytes || !rows)
      return CUDA_SUCCESS;
    if (!to.address || !from.address || (rows > 1 && (to.pitch < bytes || from.pitch < bytes)))
      return CUDA_ERROR_INVALID_VALUE;
    Memory &memory = Memory::instance();
    bool toHost = !memory.owns(to.address), fromHost = !memory.owns(from.address);
    Region written(reinterpret_cast<void *>(to.address), bytes, to.pitch, rows);
    Region read(reinterpret_cast<void *>(from.address), bytes, from.pitch, rows);
    std::string name = "copy of " + std::to_string(bytes * rows) + " bytes from the " +
                       (fromHost ? "host" : "device") + " to the " + (toHost ? "host" : "device");
    if (fromHost && !toHost && !stream.capture) {
      // The driver takes memory that is not pinned before the call returns.
      auto taken = std::make_shared<std::vector<uint8_t>>(bytes * rows);
      uint64_t staging = reinterpret_cast<uint64_t>(taken->data());
      copyRows(staging, bytes, from.address, from.pitch, bytes, rows);
      return engine.enqueue(stream, workOf(name, {}, {written}, [=] {
                              copyRows(to.address, to.pitch,
                                       reinterpret_cast<uint64_t>(taken->data()), bytes, bytes,
                                       rows);
                            }));
    }
    // What goes to memory that is not pinned is there when the call returns: who uses that memory
    // next, of whatever thread, is the program's business.
    const bool returnsWhenDone = toHost && !stream.capture;
    std::vector<Region> writes;
    if (!returnsWhenDone)
      writes.push_back(written);
    CUresult result =
        engine.enqueue(stream, workOf(name, {read}, writes, [=] {
                         copyRows(to.address, to.pitch, from.address, from.pitch, bytes, rows);
                       }));
    if (result == CUDA_SUCCESS && returnsWhenDone)
      result = engine.waitFor({stream.tail}, stream.device);
    return result;
  });
}

template <typename T> CUresult fill(CUdeviceptr to, T value, size_t n, CUstream handle) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    if (to % sizeof(T))
      return CUDA_ERROR_INVALID_VALUE;
    if (!n)
      return CUDA_SUCCESS;
    T *at = reinterpret_cast<T *>(to);
    return engine.enqueue(stream,
                          workOf("fill of " + std::to_string(n * sizeof(T)) + " bytes", {},
                                 {Region(at, n * sizeof(T))}, [=] { std::fill_n(at, n, value); }));
  });
}

} // namespace

CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
  return callInContext([&](Engine &, Device &device) -> CUresult {
    *total = settings().memoryBytes;
    *unused = *total - Memory::instance().used(device.ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
  uint64_t address = 0;
  CUresult result =
      memory ? allocate(address, bytes, false, "cuMemAlloc") : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    *memory = address;
  return result;
}

CUresult cuMemFree_v2(CUdeviceptr memory) { return release(memory, false, "cuMemFree"); }

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  uint64_t address = 0;
  CUresult result =
      memory ? allocate(address, bytes, true, "cuMemHostAlloc") : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    *memory = reinterpret_cast<void *>(address);
  return result;
}

CUresult cuMemFreeHost(void *memory) {
  return release(reinterpret_cast<uint64_t>(memory), true, "cuMemFreeHost");
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy({to, bytes}, {from, bytes}, bytes, 1, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  if (!Memory::instance().owns(to))
    return CUDA_ERROR_INVALID_VALUE;
  return copy({to, bytes}, {reinterpret_cast<uint64_t>(from), bytes}, bytes, 1, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!Memory::instance().owns(from))
    return CUDA_ERROR_INVALID_VALUE;
  return copy({reinterpret_cast<uint64_t>(to), bytes}, {from, bytes}, bytes, 1, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!Memory::instance().owns(to) || !Memory::instance().owns(from))
    return CUDA_ERROR_INVALID_VALUE;
  return copy({to, bytes}, {from, bytes}, bytes, 1, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  CUresult result = cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
  return result ? result : cuStreamSynchronize(nullptr);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  CUresult result = cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
  return result ? result : cuStreamSynchronize(nullptr);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
  if (!c)
    return CUDA_ERROR_INVALID_VALUE;
  auto side = [](int type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t pitch,
                 Rows &rows) {
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
      return false;
    uint64_t base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device;
    rows = {base + y * pitch + x, pitch};
    return true;
  };
  Rows to, from;
  if (!side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstPitch, to) ||
      !side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcPitch, from))
    return CUDA_ERROR_INVALID_VALUE;
  return copy(to, from, c->WidthInBytes, c->Height, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  return fill<uint8_t>(to, value, n, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream) {
  return fill<uint16_t>(to, value, n, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  return fill<uint32_t>(to, value, n, stream);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
  return call([&](Engine &engine) -> CUresult {
    const Allocation *in = Memory::instance().find(address);
    if (!in)
      return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<void **>(value) = engine.devices[in->device].get();
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<int *>(value) = in->pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr *>(value) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!in->pinned)
        return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void **>(value) = reinterpret_cast<void *>(address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long *>(value) = in->number;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned *>(value) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int *>(value) = in->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr *>(value) = in->address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t *>(value) = in->bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<bool *>(value) = true;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  });
}

CUresult cuPointerGetAttributes(unsigned n, int *attributes, void **values, CUdeviceptr memory) {
  // Memory that nobody has allocated is none of the device: attributes are 0, and that is no error.
  for (unsigned i = 0; i < n; ++i) {
    CUresult result = cuPointerGetAttribute(values[i], attributes[i], memory);
    if (result == CUDA_SUCCESS)
      continue;
    if (result != CUDA_ERROR_INVALID_VALUE)
      return result;
    bool wide = attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                attributes[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
                attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      *static_cast<int *>(values[i]) = -2;
    else
      std::memset(values[i], 0, wide ? 8 : attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED ? 1 : 4);
  }
  return CUDA_SUCCESS;
}
