// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How work is put on the streams of the emulated device: the seam for libraries that are emulated
// too (cuBLASLt, NCCL). An operation says which bytes it reads and writes. Before it runs these are
// checked as the accesses of a kernel are (memory of a live allocation, read bytes are written);
// the happens-before checker compares them with those of operations that are not ordered with it.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_STREAMS_H
#define SHARDC_TOOLS_CUDA_EMULATOR_STREAMS_H

#include "tools/cuda-emulator/Driver.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shardc::emulator {

/// `rows` times `bytes`, at distances of `pitch`. Memory of a device or of the host.
struct Region {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t pitch = 0;
  uint64_t rows = 1;

  Region() = default;
  Region(const void *at, uint64_t bytes, uint64_t pitch = 0, uint64_t rows = 1)
      : address(reinterpret_cast<uint64_t>(at)), bytes(bytes), pitch(pitch), rows(rows) {}
};

enum class Progress {
  Done,
  Blocked, ///< it waits for something outside of this device (other ranks) and is asked again
  Failed   ///< it has called reportError
};

struct Operation {
  std::string name; ///< for reports, e.g. "ncclAllReduce of 1024 bytes, rank 1"
  std::vector<Region> reads;
  std::vector<Region> writes;
  /// Called when everything that the operation waits for is done; a captured operation is started
  /// once in each launch of its graph. What it returns is called at once, and again while it says
  /// Blocked. Both are called from any host thread, one operation at a time, with the emulator's
  /// lock held: they must neither block nor call functions of the driver.
  std::function<std::function<Progress()>()> start;
};

/// Puts the operation behind what is on the stream, or into the graph that the stream captures.
/// The result is what a function of the driver returns: also an error that came up before.
CUresult enqueue(CUstream stream, Operation operation);

/// The same for what is done in one go.
CUresult enqueue(CUstream stream, std::string name, std::vector<Region> reads,
                 std::vector<Region> writes, std::function<void()> body);

/// Says that operations that were Blocked may go on. From any thread, without the emulator's lock
/// too. (Waiting host threads ask again every few hundred microseconds in any case.)
void wake();

bool isCapturing(CUstream stream);
/// An illegal call during capture: every later call of the capture fails, and so does its end.
void invalidateCapture(CUstream stream);

/// Number of the device whose stream it is (of the thread's current context for stream 0), or -1.
int deviceOf(CUstream stream);

/// Writes a report (stderr, the file CUDA_EMULATED_REPORTS, cuEmulatedReports) and makes `error`
/// the sticky error of the device. Inside an operation, the device is that of its stream, and its
/// name is added.
void reportError(int device, CUresult error, const std::string &message);
/// The sticky error of the device, or CUDA_SUCCESS.
CUresult errorOf(int device);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_STREAMS_H
