// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Device.h"

#include <cstring>
#include <thread>

namespace shardc::plugin::cuda {

namespace {

/// Names by which a library may be installed, the newest version first.
std::vector<std::string> namesOf(Library library) {
  if (library == Library::CublasLt)
    return {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
  return {"libnccl.so.2", "libnccl.so"};
}

int chosenOrdinal(const shardrt_device_options &options, int count) {
  if (options.ordinal < 0)
    return options.local_rank % count;
  if (options.ordinal >= count)
    throw Failure{SHARDRT_INVALID_ARGUMENT,
                  "there is no device " + std::to_string(options.ordinal) + ": there " +
                      (count == 1 ? "is one" : "are ") + (count == 1 ? "" : std::to_string(count)) +
                      ", counted from 0"};
  return options.ordinal;
}

} // namespace

Device::Device(const shardrt_device_options &options)
    : table(Driver::load(options.library)), alone(options.ranks <= 1), host(options.host),
      mustStop(options.must_stop), warnHost(options.warn) {
  int count = 0;
  check(table->deviceCount(&count), "counting the devices");
  if (count == 0)
    throw Failure{SHARDRT_NOT_FOUND, "the machine has no device for CUDA (or "
                                     "CUDA_VISIBLE_DEVICES hides them)"};
  number = chosenOrdinal(options, count);
  std::string what = "opening device " + std::to_string(number);
  check(table->deviceGet(&device, number), what);
  int major = 0, minor = 0;
  check(table->deviceAttribute(&major, attributeComputeMajor, device), what);
  check(table->deviceAttribute(&minor, attributeComputeMinor, device), what);
  check(table->deviceAttribute(&processors, attributeMultiprocessors, device), what);
  chipNumber = major * 10 + minor;
  check(table->contextRetain(&context, device), what);
}

Device::~Device() {
  try {
    Current here(*this);
    peers.reset();
    nccl.reset();
    lt.reset();
  } catch (const Failure &) { // the driver is at its end, and nothing can be released
  }
  table->contextRelease(device);
}

Device::Current::Current(const Device &device) : device(device) {
  device.table->contextGet(&previous);
  if (previous != device.context)
    device.check(device.table->contextSet(device.context), "entering the device's context");
}

Device::Current::~Current() {
  if (previous != device.context)
    device.table->contextSet(previous);
}

void Device::copyRows(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t bytes,
                      size_t rows, StreamHandle stream) const {
  Copy2d box;
  box.fromDevice = reinterpret_cast<Pointer>(from);
  box.fromPitch = fromPitch;
  box.toDevice = reinterpret_cast<Pointer>(to);
  box.toPitch = toPitch;
  box.widthInBytes = bytes;
  box.height = rows;
  check(table->copy2d(&box, stream),
        "a copy of " + std::to_string(rows) + " rows of " + std::to_string(bytes) + " bytes");
}

void Device::await(EventHandle event, const std::string &what) const {
  std::chrono::microseconds pause(5);
  while (true) {
    Result result = table->eventQuery(event);
    if (result != resultNotReady)
      return check(result, what);
    if (mustStop && mustStop(host))
      throw Failure{SHARDRT_ABORTED, what + " was stopped"};
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

void Device::warn(const std::string &text) const {
  if (warnHost)
    warnHost(host, text.c_str());
}

void Device::reach(const Device &other) const {
  if (isEmulated() != other.isEmulated())
    throw Failure{SHARDRT_NOT_FOUND, "one rank has the emulated device and another has not"};
  if (number == other.number)
    return;
  const std::string what = "peer access from device " + std::to_string(number) + " to device " +
                           std::to_string(other.number);
  int can = 0;
  check(table->canReach(&can, device, other.device), what);
  if (!can)
    throw Failure{SHARDRT_NOT_FOUND, "there is no " + what};
  if (Result result = table->reach(other.context, 0); result != resultPeerAlreadyEnabled)
    check(result, what);
}

void *Device::symbol(Library library, const char *name) {
  std::lock_guard lock(mutex);
  if (isEmulated())
    return table->library->find(name);
  std::shared_ptr<OpenLibrary> &opened = libraries[size_t(library)];
  if (!opened)
    opened =
        OpenLibrary::open(library == Library::CublasLt ? "cuBLASLt" : "NCCL", namesOf(library));
  return opened->find(name);
}

std::string Device::fileOf(Library library) const {
  std::lock_guard lock(mutex);
  const auto &opened = isEmulated() ? table->library : libraries[size_t(library)];
  return opened ? opened->name : "";
}

shardrt_device_facts Device::facts() const {
  shardrt_device_facts facts{};
  facts.struct_bytes = sizeof facts;
  check(table->deviceName(facts.name, int(sizeof facts.name), device), "asking for its name");
  facts.ordinal = number;
  facts.chip = chipNumber;
  facts.driver_version = table->version;
  facts.emulated = isEmulated();
  size_t bytes = 0;
  check(table->deviceMemory(&bytes, device), "asking for its memory");
  facts.memory_bytes = bytes;
  return facts;
}

} // namespace shardc::plugin::cuda
