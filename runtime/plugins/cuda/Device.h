// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's device: its context, and the libraries that work on it.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_DEVICE_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_DEVICE_H

#include "runtime/abi/shardrt_program.h"
#include "runtime/include/shardrt_device.h"
#include "runtime/plugins/cuda/Driver.h"

#include <array>
#include <mutex>

namespace shardc::plugin::cuda {

/// Libraries besides the driver. The emulated device has all of them in one.
enum class Library : uint8_t { CublasLt, Nccl };

/// Ranks that are threads of one process may have the same device: they share its context, and
/// nothing else.
class Device {
public:
  explicit Device(const shardrt_device_options &options);
  ~Device();
  Device(const Device &) = delete;

  static Device &of(void *handle) { return *static_cast<Device *>(handle); }

  const Driver &driver() const { return *table; }
  /// While it lives, the device's context is that of the calling thread. Every function of the
  /// table begins with one: the thread is the caller's, who may have another device.
  class Current {
  public:
    explicit Current(const Device &device);
    ~Current();
    Current(const Current &) = delete;

  private:
    const Device &device;
    ContextHandle previous = nullptr;
  };
  void check(Result result, const std::string &what) const { table->check(result, what); }
  /// `rows` times `bytes`, at distances of at least that, in one copy.
  void copyRows(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t bytes,
                size_t rows, StreamHandle stream) const;
  /// Waits on the host until the event has happened, or until the runtime says that it never will:
  /// throws Failure (SHARDRT_ABORTED) then.
  void await(EventHandle event, const std::string &what) const;
  /// For the runtime's log.
  void warn(const std::string &text) const;

  /// A function of a library, which is loaded when it is first asked for. Null if the library lacks
  /// it. Throws Failure (SHARDRT_NOT_FOUND) if there is no such library, with all places.
  void *symbol(Library library, const char *name);
  /// The file that the library was loaded from, for messages; after `symbol`.
  std::string fileOf(Library library) const;

  int ordinal() const { return number; }
  int chip() const { return chipNumber; } ///< 90 for sm_90
  int multiprocessors() const { return processors; }
  bool isEmulated() const { return table->isEmulated(); }
  bool isAlone() const { return alone; } ///< its program has one rank
  shardrt_device_facts facts() const;

  /// Makes memory of another device usable by kernels of this one. Throws Failure
  /// (SHARDRT_NOT_FOUND) where that cannot be.
  void reach(const Device &other) const;

  /// State of those who use the libraries, for as long as the device is open; destroyed while the
  /// context is there, the last one first.
  std::shared_ptr<void> lt, nccl, peers;

private:
  std::shared_ptr<const Driver> table;
  int number = 0;
  DeviceNumber device = 0;
  ContextHandle context = nullptr;
  int chipNumber = 0, processors = 0;
  bool alone = true;
  void *host = nullptr; ///< of the two that follow
  int32_t (*mustStop)(void *host) = nullptr;
  void (*warnHost)(void *host, const char *message) = nullptr;
  mutable std::mutex mutex; ///< guards libraries
  std::array<std::shared_ptr<OpenLibrary>, 2> libraries;
};

/// What Lt*.cpp and Nccl*.cpp have. Throws Failure.
void runGemm(Device &device, const shardrt_gemm &gemm, StreamHandle stream);
/// Kernels on memory of several devices.
const shardrt_device_peers *peerTable();
/// Null if there is none.
const shardrt_device_communication *communicationTable();

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_DEVICE_H
