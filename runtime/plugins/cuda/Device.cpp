// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Device.h"

#include <cstring>

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
    : table(Driver::load(options.library)), alone(options.ranks <= 1) {
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
