// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceMemory.h"

#include "runtime/executor/Slice.h"
#include "runtime/support/Copy.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace shardc::rt {

namespace {

/// Pinned memory is dear: what is larger goes in pieces, one of which is copied while the other is
/// packed.
constexpr size_t pieceBytes = 8 << 20;
constexpr size_t smallestHalf = 64 << 10;

/// Calls copy(byte offset, bytes) for pieces of so many bytes.
template <typename Copy> void eachPiece(size_t bytes, Copy copy) {
  for (size_t at = 0; at < bytes; at += pieceBytes)
    copy(at, std::min(pieceBytes, bytes - at));
}

/// Calls visit(byte offset in the global view, in the dense part, strides of that, extents) for
/// each box of the part.
template <typename Visit>
void eachBox(const Slice &part, const int64_t *strides, int64_t bytes, Visit visit) {
  std::vector<int64_t> dense(part.local.size());
  denseStrides(part.local, dense.data());
  auto offset = [bytes](std::span<const int64_t> begin, const int64_t *steps) {
    int64_t sum = 0;
    for (size_t d = 0; d < begin.size(); ++d)
      sum += begin[d] * steps[d] * bytes;
    return sum;
  };
  part.forEachBox([&](auto globalBegin, auto localBegin, auto extents) {
    visit(offset(globalBegin, strides), offset(localBegin, dense.data()), dense.data(), extents);
  });
}

} // namespace

DeviceMemory::DeviceMemory(std::shared_ptr<const Device> used, const Allocator &callers,
                           void *callerStream)
    : ProgramMemory(Allocator{}), device(std::move(used)), callers(callers),
      own{allocate, release, this}, compute(device->makeStream()), callerStream(callerStream),
      callerEvent(callerStream ? device->makeEvent() : nullptr) {}

DeviceMemory::~DeviceMemory() {
  // Copies may still use what is released now.
  try {
    device->settle(stream(), std::chrono::steady_clock::now() + device->longestWait());
  } catch (const Failure &) {
  }
}

void *DeviceMemory::allocate(void *context, size_t bytes, size_t) {
  void *memory = nullptr;
  // The plugin's message says what the device has left.
  static_cast<DeviceMemory *>(context)->device->on([&](auto &table, void *device, char *message) {
    return table.allocate(device, bytes, &memory, message);
  });
  return memory;
}

void DeviceMemory::release(void *context, void *memory, size_t) {
  const Device &device = *static_cast<DeviceMemory *>(context)->device;
  if (!device.isStuck())
    device.plugin.functions->release(device.handle(), memory);
}

bool DeviceMemory::reaches(const void *data) const {
  return device->plugin.functions->place(device->handle(), data) == SHARDRT_PLACE_DEVICE;
}

void DeviceMemory::followCaller() const {
  if (!callerStream)
    return;
  device->record(callerEvent, callerStream);
  device->wait(stream(), callerEvent);
}

void DeviceMemory::waitFor(Half &half) const {
  if (half.inUse)
    device->synchronize(half.copied);
  half.inUse = false;
}

DeviceMemory::Half &DeviceMemory::nextHalf(size_t bytes) const {
  Half &half = halves[last ^= 1];
  waitFor(half);
  if (half.bytes < bytes) {
    half.bytes = 0;
    size_t wanted = std::clamp(2 * bytes, smallestHalf, pieceBytes);
    half.memory = device->makePinned(wanted);
    half.bytes = wanted;
  }
  if (!half.copied)
    half.copied = device->makeEvent();
  return half;
}

void DeviceMemory::take(void *to, const Slice &part, const void *from, const int64_t *strides,
                        int64_t elementBytes) {
  char *next = static_cast<char *>(to);
  if (device->isOnDevice(from)) {
    followCaller(); // who may still write it
    eachBox(part, strides, elementBytes,
            [&](int64_t global, int64_t local, const int64_t *dense, auto extents) {
              copyOnDevice(next + local, dense, static_cast<const char *>(from) + global, strides,
                           extents, elementBytes);
            });
    return;
  }
  for (const Slice &piece : part.pieces(int64_t(pieceBytes) / elementBytes)) {
    size_t bytes = size_t(piece.elements() * elementBytes);
    Half &half = nextHalf(bytes);
    piece.extract(half.memory.get(), from, strides, elementBytes);
    device->copy(next, half.memory.get(), bytes, stream());
    device->record(half.copied, stream());
    half.inUse = true;
    next += bytes;
  }
}

void DeviceMemory::copyDown(Half &half, const void *from, size_t bytes) const {
  device->copy(half.memory.get(), from, bytes, stream());
  device->record(half.copied, stream());
  half.inUse = true;
}

void DeviceMemory::give(void *to, const int64_t *strides, const Slice &part, const void *from,
                        int64_t elementBytes) {
  const char *next = static_cast<const char *>(from);
  if (device->isOnDevice(to)) {
    // The run or the collective whose result this is follows what the caller had on the stream.
    eachBox(part, strides, elementBytes,
            [&](int64_t global, int64_t local, const int64_t *dense, auto extents) {
              copyOnDevice(static_cast<char *>(to) + global, strides, next + local, dense, extents,
                           elementBytes);
            });
    device->synchronizeStream(stream());
    return;
  }
  // A piece is unpacked while the next one is copied.
  std::optional<Slice> previous;
  Half *filled = nullptr;
  auto unpack = [&] {
    waitFor(*filled);
    previous->insert(to, strides, filled->memory.get(), elementBytes);
  };
  for (Slice &piece : part.pieces(int64_t(pieceBytes) / elementBytes)) {
    size_t bytes = size_t(piece.elements() * elementBytes);
    Half &half = nextHalf(bytes);
    copyDown(half, next, bytes);
    next += bytes;
    if (filled)
      unpack();
    filled = &half;
    previous.emplace(std::move(piece));
  }
  if (filled)
    unpack();
}

bool DeviceMemory::holds(const void *data, const void *bytes, size_t count) const {
  bool same = true;
  eachPiece(count, [&](size_t at, size_t size) {
    Half &half = nextHalf(size);
    copyDown(half, static_cast<const char *>(data) + at, size);
    waitFor(half);
    same &= std::memcmp(half.memory.get(), static_cast<const char *>(bytes) + at, size) == 0;
  });
  return same;
}

/// In as few copies as the strides allow: rows of what is dense on both sides, at equal distances;
/// dims that are left are looped over.
void DeviceMemory::copyOnDevice(char *to, const int64_t *toStrides, const char *from,
                                const int64_t *fromStrides, std::span<const int64_t> extents,
                                int64_t elementBytes) const {
  constexpr int64_t largestPitch = (int64_t(1) << 31) - 1; // of a driver's copies
  struct Dim {
    int64_t extent, to, from; ///< strides in bytes
  };
  std::vector<Dim> dims;
  int64_t row = elementBytes;
  for (size_t d = extents.size(); d-- > 0;) {
    if (extents[d] == 1)
      continue;
    Dim dim{extents[d], toStrides[d] * elementBytes, fromStrides[d] * elementBytes};
    if (dims.empty() && dim.to == row && dim.from == row)
      row *= dim.extent;
    else
      dims.push_back(dim);
  }
  // The dim with the most rows that one copy can do.
  auto asRows = [&](const Dim &dim) {
    bool fits = std::min(dim.to, dim.from) >= row && std::max(dim.to, dim.from) <= largestPitch;
    return fits ? dim.extent : 0;
  };
  Dim rows{1, row, row};
  auto best = std::max_element(dims.begin(), dims.end(),
                               [&](const Dim &a, const Dim &b) { return asRows(a) < asRows(b); });
  if (best != dims.end() && asRows(*best) > 0) {
    rows = *best;
    dims.erase(best);
  }
  std::vector<int64_t> index(dims.size(), 0);
  while (true) {
    device->on([&](auto &table, void *handle, char *message) {
      return rows.extent == 1
                 ? table.copy(handle, to, from, uint64_t(row), stream(), message)
                 : table.copy_rows(handle, to, uint64_t(rows.to), from, uint64_t(rows.from),
                                   uint64_t(row), uint64_t(rows.extent), stream(), message);
    });
    size_t d = 0;
    for (; d < dims.size(); ++d) {
      to += dims[d].to;
      from += dims[d].from;
      if (++index[d] < dims[d].extent)
        break;
      to -= dims[d].to * dims[d].extent;
      from -= dims[d].from * dims[d].extent;
      index[d] = 0;
    }
    if (d == dims.size())
      return;
  }
}

} // namespace shardc::rt
