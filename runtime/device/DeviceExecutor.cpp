// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceExecutor.h"

#include "runtime/launch/LaunchEnvironment.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardc::rt {

namespace {

/// The library that stands for a machine's driver, beside the plugin.
constexpr const char *emulatedLibrary = "libcuda-emulated.so";

/// Which of a host's ranks this one is, where each may have a device of its own.
int32_t localRank(const shardrt_config &config) {
  std::optional<LaunchEnvironment> launch = LaunchEnvironment::read(processEnvironment());
  bool isProcess = launch && int32_t(launch->worldSize) == config.world_size;
  return isProcess && launch->localRank ? int32_t(*launch->localRank) : config.rank;
}

shardrt_device_options deviceOptions(const ExecutorContext &context) {
  const char *wanted = context.config.device;
  shardrt_device_options options{};
  options.struct_bytes = sizeof options;
  options.ordinal = -1;
  options.local_rank = localRank(context.config);
  options.ranks = context.config.world_size;
  if (wanted && std::strcmp(wanted, "emulated") == 0) {
    options.library = emulatedLibrary;
  } else if (wanted) {
    char *end = nullptr;
    long number = std::strtol(wanted, &end, 10);
    if (end == wanted || *end || number < 0 || number > INT32_MAX)
      throw Failure(SHARDRT_INVALID_ARGUMENT,
                    "the device is '" + std::string(wanted) + "': expected a number or 'emulated'");
    options.ordinal = int32_t(number);
  }
  if (context.manifest.isEmulated != (options.library != nullptr))
    throw Failure(
        SHARDRT_INCOMPATIBLE,
        context.manifest.isEmulated
            ? "the program was compiled for the emulated device: ask for it as the "
              "device 'emulated'"
            : "the program was not compiled for the emulated device, which was asked for");
  return options;
}

std::unique_ptr<ProgramMemory> openMemory(const ExecutorContext &context, DevicePlugin plugin) {
  const shardrt_config &config = context.config;
  return std::make_unique<DeviceMemory>(
      std::make_shared<const Device>(std::move(plugin), deviceOptions(context)),
      Allocator{config.alloc, config.free, config.alloc_context}, config.stream);
}

} // namespace

DeviceExecutor::DeviceExecutor(const ExecutorContext &context, DevicePlugin plugin)
    : Executor(openMemory(context, std::move(plugin))), manifest(context.manifest),
      program(context.program), communicator(context.communicator), groups(context.groups),
      events(context.events), log(context.log),
      options(CommStream::Options::of(context.config, context.program)),
      device(deviceMemory().device), compute(deviceMemory().stream()),
      errorWord(memory().allocator(), sizeof(uint64_t) + 1, alignof(uint64_t), "the error word"),
      errorCopy(device->makePinned(sizeof(uint64_t))), finished(device->makeEvent()),
      timeline(*device, events) {
  device->whileWaiting = [this] {
    if (exchanged)
      exchanged->look();
  };
  device->warn = [this](const std::string &text) { log.write(SHARDRT_LOG_WARNING, text); };
  auto fill = [&](size_t at, uint8_t value, size_t bytes) {
    device->on([&](auto &table, void *handle, char *message) {
      return table.fill(handle, errorWord.data() + at, value, bytes, compute, message);
    });
  };
  fill(0, 0, sizeof(uint64_t));
  fill(sizeof(uint64_t), 1, 1);
  device->synchronizeStream(compute); // it is released if what follows fails
  if (program.n_kernels == 0)
    return;
  device->on([&](auto &table, void *handle, char *message) {
    return table.module_load(handle, program.images, program.n_images, &module, message);
  });
  kernels.resize(program.n_kernels);
  try {
    for (uint32_t k = 0; k < program.n_kernels; ++k)
      device->on([&](auto &table, void *handle, char *message) {
        return table.kernel_find(handle, module, &program.kernels[k], &kernels[k], message);
      });
  } catch (...) {
    device->plugin.functions->module_unload(device->handle(), module);
    throw;
  }
}

DeviceExecutor::~DeviceExecutor() {
  try {
    device->settle(compute, Clock::now() + device->longestWait());
  } catch (const Failure &failure) {
    log.write(SHARDRT_LOG_WARNING, failure.message);
  }
  device->whileWaiting = nullptr;
  device->warn = nullptr;
  if (device->isStuck()) {
    log.write(SHARDRT_LOG_WARNING,
              "the device has not completed its work: what the model has there is not released");
    static_cast<void>(ownTransport.release()); // it would wait
    rememberedArena = nullptr;
  }
  steps.clear();
  arenaMoves();
  exchanged.reset();
  if (module && !device->isStuck())
    device->plugin.functions->module_unload(device->handle(), module);
}

void DeviceExecutor::countMemory(shardrt_memory &used) const {
  Executor::countMemory(used);
  for (const Buffer &buffer : scratch)
    used.scratch_bytes += buffer.size();
}

std::string DeviceExecutor::description() const {
  const shardrt_device_facts &facts = device->facts();
  return std::string(facts.name) + " (device " + std::to_string(facts.ordinal) + ", sm_" +
         std::to_string(facts.chip) + ")";
}

void DeviceExecutor::connect(std::span<const shardrt_group> connected, Clock::time_point deadline) {
  if (communicator.worldSize() == 1)
    return;
  transport = communicator.streamTransport();
  if (!transport || transport->device() != manifest.targetKind) {
    std::string whyNot;
    ownTransport = connectDevices(communicator, *device->plugin.functions, device->handle(),
                                  connected, deadline, whyNot);
    transport = ownTransport.get();
    if (!transport && communicator.rank() == 0)
      log.write(SHARDRT_LOG_INFO, "collectives go through the host: " + whyNot);
    if (transport && communicator.rank() == 0)
      log.write(SHARDRT_LOG_INFO, "collectives go between devices by " + transport->way());
  }
  if (!transport)
    return;
  transport->watch(errorWord.data(), static_cast<const uint64_t *>(errorCopy.get()));
  exchanged =
      std::make_unique<StreamCollectives>(*device, compute, *transport, timeline, options.timeout,
                                          errorWord.data() + sizeof(uint64_t), staged(false));
}

std::unique_ptr<StagedCollectives> DeviceExecutor::staged(bool withThread) {
  CommStream::Options ways = options;
  ways.thread = ways.thread && withThread;
  return std::make_unique<StagedCollectives>(*device, compute, errorWord.data(), communicator,
                                             hostTransportOf(communicator, manifest), events, ways);
}

void DeviceExecutor::arenaMoves() {
  if (rememberedArena)
    transport->forget(rememberedArena);
  rememberedArena = nullptr;
}

DeviceCollectives &DeviceExecutor::collectives() {
  if (!exchanged)
    exchanged = staged(true);
  return *exchanged;
}

void DeviceExecutor::setUp(shardrt_frame &frame) {
  frame.services = &deviceServices;
  frame.runtime = this;
  frame.threads = 1;
  failures.reset();
  launches.clear();
  captureFailed = false;
  currentOp = nullptr;
  if (exchanged)
    exchanged->begin();
}

void DeviceExecutor::plan(const shardrt_variant &variant, shardrt_frame &frame) {
  setUp(frame);
  int32_t result = variant.plan(&frame);
  failures.raise();
  if (result != 0)
    throw Failure(SHARDRT_PROGRAM_ERROR, "planning of memory returned " + std::to_string(result));
}

void DeviceExecutor::prepare(const shardrt_entry &entry, const shardrt_variant &variant,
                             shardrt_frame &frame) {
  runNow(variant.prepare, frame, &entry, "packing of parameters");
}

int32_t DeviceExecutor::enqueue(Code code, shardrt_frame &frame, const shardrt_entry *entry) {
  setUp(frame);
  running = entry;
  device->on([&](auto &table, void *handle, char *message) {
    return table.fill(handle, errorWord.data(), 0, sizeof(uint64_t), compute, message);
  });
  int32_t result = code(&frame);
  closeOp();
  running = nullptr;
  if (!failures.failed() && exchanged)
    exchanged->join();
  device->copy(errorCopy.get(), errorWord.data(), sizeof(uint64_t), compute);
  return result;
}

void DeviceExecutor::complete(const std::vector<DeviceLaunch> &launched, int32_t result,
                              const std::string &what) {
  failures.raise();
  size_t last = timeline.enabled() ? timeline.mark(compute) : 0;
  device->record(finished, compute);
  if (exchanged)
    exchanged->waitFor(finished);
  else
    device->synchronize(finished);
  retired.clear();
  if (timeline.enabled())
    timeline.flush(last);
  if (uint64_t word = *static_cast<const uint64_t *>(errorCopy.get()))
    recordWord(word, launched);
  failures.raise();
  if (result != 0)
    throw Failure(SHARDRT_PROGRAM_ERROR, what + " returned " + std::to_string(result));
}

void DeviceExecutor::recordWord(uint64_t word, const std::vector<DeviceLaunch> &launched) {
  failures.record([&] {
    size_t number = size_t(word >> 32) - 1, message = size_t(uint32_t(word));
    if (number >= launched.size() || message >= program.kernels[launched[number].kernel].n_messages)
      return Failure(SHARDRT_INTERNAL, "the device's error word is " + std::to_string(word) +
                                           ", which no kernel "
                                           "of this run wrote");
    const DeviceLaunch &launch = launched[number];
    lastOp = launch.op ? launch.op : lastOp;
    std::string text = program.kernels[launch.kernel].messages[message];
    if (launch.location && *launch.location)
      text = std::string(launch.location) + ": " + text;
    return Failure(SHARDRT_PROGRAM_ERROR, text);
  });
}

void DeviceExecutor::readSizes(std::span<int64_t> sizes, const void *from, int64_t atMost) {
  if (sizes.size() > sizesRoom) {
    sizesCopy = device->makePinned(sizes.size_bytes());
    sizesRoom = sizes.size();
  }
  noteWork(2);
  device->copy(sizesCopy.get(), from, sizes.size_bytes(), compute);
  device->copy(errorCopy.get(), errorWord.data(), sizeof(uint64_t), compute);
  device->record(finished, compute);
  if (exchanged)
    exchanged->waitInside(finished);
  else
    device->synchronize(finished);
  // Numbers behind a kernel that met with something are none.
  if (uint64_t word = *static_cast<const uint64_t *>(errorCopy.get())) {
    recordWord(word, launches);
    return;
  }
  std::memcpy(sizes.data(), sizesCopy.get(), sizes.size_bytes());
  checkSizes(sizes, atMost);
}

void DeviceExecutor::runNow(Code code, shardrt_frame &frame, const shardrt_entry *entry,
                            const std::string &what) {
  timeline.clear();
  int32_t result = 0;
  try {
    result = enqueue(code, frame, entry);
  } catch (const Failure &) {
    // A collective that nobody waited for may have been stopped by what a kernel met.
    if (uint64_t word = exchanged ? exchanged->failedWord() : 0)
      recordWord(word, launches);
    failures.raise();
    throw;
  }
  complete(launches, result, what);
}

void DeviceExecutor::keyOf(const shardrt_entry &entry, const shardrt_variant &variant,
                           const shardrt_frame &frame) {
  const EntrySpec &spec = manifest.entries[size_t(&entry - program.entries)];
  key.clear();
  auto add = [&](const auto *values, size_t count) {
    for (size_t i = 0; i < count; ++i)
      key.push_back(uint64_t(values[i]));
  };
  auto addPointers = [&](const auto *pointers, size_t count) {
    for (size_t i = 0; i < count; ++i)
      key.push_back(reinterpret_cast<uint64_t>(pointers[i]));
  };
  const void *fixed[] = {&variant, frame.arena, frame.persistent};
  addPointers(fixed, std::size(fixed));
  addPointers(frame.inputs, spec.inputs.size());
  addPointers(frame.outputs, spec.outputs.size());
  addPointers(frame.parameters, manifest.parameters.size());
  add(frame.symbols, manifest.symbols.size());
  add(frame.offsets, size_t(variant.n_offsets));
  const uint64_t rest[] = {frame.arena_bytes, frame.seed, frame.seed_offset};
  add(rest, std::size(rest));
}

void DeviceExecutor::logLaunch(const shardrt_entry &entry, Clock::time_point when) const {
  auto us = std::chrono::duration<double, std::micro>(when.time_since_epoch());
  log.write(SHARDRT_LOG_DEBUG, std::string(entry.name) + ": its graph was launched at " +
                                   std::to_string(us.count()) + " us of the steady clock");
}

bool DeviceExecutor::capture(DeviceStep &step, const shardrt_entry &entry,
                             const shardrt_variant &variant, shardrt_frame &frame) {
  int32_t result = 0;
  std::string problem;
  try {
    if (exchanged)
      exchanged->setCapturing(true);
    device->on([&](auto &table, void *handle, char *message) {
      return table.capture_begin(handle, compute, message);
    });
    capturing = true;
    result = enqueue(variant.run, frame, &entry);
    failures.raise();
  } catch (const Failure &failure) {
    problem = failure.message;
  }
  const bool begun = std::exchange(capturing, false);
  if (exchanged)
    exchanged->setCapturing(false);
  void *graph = nullptr;
  try {
    if (begun)
      device->on([&](auto &table, void *handle, char *message) {
        return table.capture_end(handle, compute, &graph, message);
      });
  } catch (const Failure &failure) {
    problem += failure.message;
  }
  step.graph = device->ownGraph(graph);
  if (graph && result == 0 && problem.empty() && !captureFailed) {
    step.scratchVersion = scratchVersion;
    step.launches = launches;
    step.commits = hasCommitted();
    if (exchanged)
      step.collectives = exchanged->captured();
    return true;
  }
  step.graph.reset();
  step.mayCapture = false;
  log.write(SHARDRT_LOG_DEBUG, std::string(entry.name) + " does not become a graph: " +
                                   (problem.empty() ? "it does what a graph cannot" : problem));
  return false;
}

void DeviceExecutor::run(const shardrt_entry &entry, const shardrt_variant &variant,
                         shardrt_frame &frame, uint64_t number) {
  runNumber = number;
  lastOp = nullptr;
  deviceMemory().followCaller();
  if (transport && frame.arena && !rememberedArena) {
    rememberedArena = frame.arena;
    transport->remember(frame.arena, size_t(frame.arena_bytes));
  }
  // Times are taken between the ops of a run, which a graph does not show.
  if (events.enabled) {
    events.addRun(entry, Clock::now());
    runNow(variant.run, frame, &entry, entry.name);
    lastOp = nullptr;
    return;
  }
  keyOf(entry, variant, frame);
  bool isNew = false;
  DeviceStep &step = steps.find(key, isNew);
  bool fits = step.graph && step.scratchVersion == scratchVersion;
  if (!isNew && step.mayCapture && !fits)
    fits = capture(step, entry, variant, frame);
  if (fits) {
    failures.reset();
    if (step.commits)
      noteCommit();
    if (exchanged)
      exchanged->replay(step.collectives, number);
    device->on([&](auto &table, void *handle, char *message) {
      return table.graph_launch(handle, step.graph.get(), compute, message);
    });
    if (log.enabled(SHARDRT_LOG_DEBUG))
      logLaunch(entry, Clock::now());
    complete(step.launches, 0, entry.name);
  } else {
    runNow(variant.run, frame, &entry, entry.name);
    step.mayCapture = step.mayCapture && (!exchanged || exchanged->allCapturable());
  }
  lastOp = nullptr;
}

void DeviceExecutor::collective(const shardrt_collective &collective, Group &group, uint64_t number,
                                const shardrt_collective_tensor &tensor) {
  // Its result may go to memory that the caller's stream still uses, also on a rank that has no
  // part of the program and runs nothing.
  deviceMemory().followCaller();
  collectives().runOutside(collective, &group, number, &tensor);
}

std::string DeviceExecutor::giveUp() {
  try {
    const Clock::time_point until = Clock::now() + device->longestWait();
    if (exchanged)
      exchanged->giveUp(until);
    if (transport && transport->isStuck())
      device->setStuck();
    if (device->settle(compute, until))
      retired.clear();
  } catch (const Failure &failure) {
    log.write(SHARDRT_LOG_WARNING, failure.message);
  }
  return exchanged ? exchanged->flightRecord() : "";
}

void DeviceExecutor::recordFlight(FlightRecord &record) const {
  if (exchanged)
    exchanged->recordFlight(record);
  if (!lastOp)
    return;
  record.op = lastOp->name ? lastOp->name : "an unnamed op";
  record.opLocation = lastOp->location ? lastOp->location : "";
}

void DeviceExecutor::closeOp() {
  if (currentOp && timeline.enabled())
    timeline.span(SHARDRT_STREAM_COMPUTE, currentOp->name, currentOp->location, opMark,
                  timeline.mark(compute), 0);
  currentOp = nullptr;
}

} // namespace shardc::rt
