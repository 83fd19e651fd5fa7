// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceKind.h"

#include "runtime/host/HostExecutor.h"
#include "runtime/process/LoadPlugin.h"
#include "runtime/support/Fnv.h"

namespace shardc::rt {

namespace {

void checkCuda(const Manifest &manifest, Problems &problems) {
  checkProcessor(manifest, problems);
  if (manifest.chips.empty() && !manifest.isEmulated)
    problems.add("its manifest names no chip that it has code for");
  for (const std::string &library : manifest.libraries)
    if (library != "blas")
      problems.add("it needs the library " + library + ", which this runtime does not know");
}

std::unique_ptr<Executor> createCuda(const ExecutorContext &context) {
  // It stays, also when the process ends: the executor's code is in it, and models may be destroyed
  // later than anything that was made in here.
  static const FoundPlugin &found = *new FoundPlugin(
      findPlugin("library for devices", "device", "shardrt_device_library", processEnvironment()));
  const DeviceLibrary *library = reinterpret_cast<shardrt_device_library_fn>(found.query)();
  if (!library || library->fingerprint != DeviceLibrary::expectedFingerprint())
    throw Failure(SHARDRT_INCOMPATIBLE,
                  "library for devices " + found.path + ": it was not built with this runtime");
  return library->create(context);
}

} // namespace

const ExecutorKind cudaExecutorKind{"cuda", checkCuda, createCuda};

uint64_t DeviceLibrary::expectedFingerprint() {
  Fnv hash;
  for (uint64_t value :
       {uint64_t(SHARDRT_PROGRAM_ABI), uint64_t(SHARDRT_VERSION_MAJOR),
        uint64_t(SHARDRT_VERSION_MINOR), uint64_t(sizeof(ExecutorContext)),
        uint64_t(sizeof(Executor)), uint64_t(sizeof(Manifest)), uint64_t(sizeof(EventLog)),
        uint64_t(sizeof(CollectiveCall)), uint64_t(sizeof(Group)), uint64_t(sizeof(FlightRecord)),
        uint64_t(sizeof(shardrt_config))})
    hash.add(value);
  return hash.value();
}

} // namespace shardc::rt
