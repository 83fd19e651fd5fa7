// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/host/HostExecutor.h"

#include "runtime/executor/Slice.h"
#include "runtime/executor/WriteCheck.h"
#include "runtime/host/CpuFeatures.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace shardc::rt {

namespace {

int threadCount(const shardrt_config &config) {
  if (config.threads > 0)
    return config.threads;
  return std::max(1, int(std::thread::hardware_concurrency()) / std::max(1, config.world_size));
}

void checkHost(const Manifest &manifest, Problems &problems) {
  checkProcessor(manifest, problems);
  for (const std::string &library : manifest.libraries)
    if (library != "blas")
      problems.add("it needs the library " + library + ", which this runtime does not know");
}

} // namespace

void checkProcessor(const Manifest &manifest, Problems &problems) {
  std::string architecture = manifest.triple.substr(0, manifest.triple.find('-'));
  if (architecture != hostArchitecture())
    problems.add("it was compiled for " + manifest.triple + ", this machine is " +
                 hostArchitecture());
  else if (auto missing = missingCpuFeatures(manifest.features); !missing.empty()) {
    std::string names;
    for (const std::string &name : missing)
      names += (names.empty() ? "" : ", ") + name;
    problems.add("it was compiled for " + manifest.cpu + "; this CPU lacks " + names);
  }
}

const ExecutorKind hostExecutorKind{
    "cpu", checkHost, [](const ExecutorContext &context) -> std::unique_ptr<Executor> {
      const shardrt_config &config = context.config;
      if (config.device || config.stream)
        throw Failure(SHARDRT_INVALID_ARGUMENT,
                      "the program computes on the host, and a device or a stream was given");
      Allocator allocator{config.alloc, config.free, config.alloc_context};
      // The caller's own allocator is asked for everything, if there is one.
      const Allocator *shared = config.alloc ? nullptr : context.communicator.memory();
      return std::make_unique<HostExecutor>(context,
                                            std::make_unique<HostMemory>(allocator, shared));
    }};

void HostMemory::take(void *to, const Slice &part, const void *from, const int64_t *strides,
                      int64_t elementBytes) {
  part.extract(to, from, strides, elementBytes);
}

void HostMemory::give(void *to, const int64_t *strides, const Slice &part, const void *from,
                      int64_t elementBytes) {
  part.insert(to, strides, from, elementBytes);
}

bool HostMemory::holds(const void *data, const void *bytes, size_t count) const {
  return std::memcmp(data, bytes, count) == 0;
}

HostExecutor::HostExecutor(const ExecutorContext &context, std::unique_ptr<ProgramMemory> memory)
    : Executor(std::move(memory)), communicator(context.communicator), groups(context.groups),
      events(context.events), log(context.log), self(context.config.rank),
      pool(threadCount(context.config), uint32_t(context.config.world_size)),
      stream(communicator, hostTransportOf(communicator, context.manifest), events,
             CommStream::Options::of(context.config, context.program)) {
  scratch.resize(size_t(pool.threads()));
  const std::vector<std::string> &libraries = context.manifest.libraries;
  if (std::find(libraries.begin(), libraries.end(), "blas") != libraries.end())
    blasLibrary();
}

void HostExecutor::countMemory(shardrt_memory &used) const {
  Executor::countMemory(used);
  for (const std::vector<Buffer> &thread : scratch)
    for (const Buffer &buffer : thread)
      used.scratch_bytes += buffer.size();
}

std::string HostExecutor::description() const {
  return std::to_string(pool.threads()) + " threads";
}

void HostExecutor::call(int32_t (*code)(shardrt_frame *), shardrt_frame &frame,
                        const shardrt_entry *entry, const std::string &what) {
  frame.services = &hostServices;
  frame.runtime = this;
  frame.threads = pool.threads();
  if (observer)
    observer->attach(frame);
  failures.reset();
  running = entry;
  int32_t result = code(&frame);
  closeOp(Clock::now());
  running = nullptr;
  failures.raise();
  if (result != 0)
    throw Failure(SHARDRT_PROGRAM_ERROR, what + " returned " + std::to_string(result));
}

void HostExecutor::plan(const shardrt_variant &variant, shardrt_frame &frame) {
  call(variant.plan, frame, nullptr, "planning of memory");
}

void HostExecutor::prepare(const shardrt_entry &entry, const shardrt_variant &variant,
                           shardrt_frame &frame) {
  call(variant.prepare, frame, &entry, "packing of parameters");
}

void HostExecutor::run(const shardrt_entry &entry, const shardrt_variant &variant,
                       shardrt_frame &frame, uint64_t number) {
  runNumber = number;
  lastOp = nullptr;
  if (events.enabled)
    events.addRun(entry, Clock::now());
  call(variant.run, frame, &entry, entry.name);
  if (std::optional<Failure> failure = stream.drain())
    throw Failure(*failure);
  lastOp = nullptr;
}

void HostExecutor::collective(const shardrt_collective &collective, Group &group, uint64_t number,
                              const shardrt_collective_tensor &tensor) {
  stream.runNow(collective, &group, number, &tensor);
}

bool HostExecutor::observe(WriteCheck *newObserver) {
  // Memory that is not the host's own cannot be looked at.
  if (!memory().reaches(this))
    return false;
  observer = newObserver;
  return true;
}

std::string HostExecutor::giveUp() {
  stream.drain();
  return stream.flightRecord();
}

void HostExecutor::recordFlight(FlightRecord &record) const {
  stream.recordFlight(record);
  if (!lastOp)
    return;
  record.op = lastOp->name ? lastOp->name : "an unnamed op";
  record.opLocation = lastOp->location ? lastOp->location : "";
}

const Blas &HostExecutor::blasLibrary() {
  // Generated code may ask for the first product on any compute thread.
  std::call_once(blasOnce, [this] {
    blas = Blas::shared();
    bool fallback = blas->isPlain();
    if (self == 0)
      log.write(fallback ? SHARDRT_LOG_WARNING : SHARDRT_LOG_INFO,
                (fallback ? "" : "matrix products by ") + blas->description());
  });
  return *blas;
}

} // namespace shardc::rt
