// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Stream.h"

#include <cstdlib>
#include <sys/prctl.h>

namespace shardc::rt {

namespace {

/// A rank has a computing and a communicating thread.
Spin spinAmong(uint32_t ranks) { return Spin::among(2 * ranks, std::chrono::microseconds(20)); }

/// Sleeps with the least slack: the default of 50 us is more than many an emulated collective
/// takes.
void sleepUntil(Clock::time_point end) {
  if (end <= Clock::now())
    return;
  int slack = prctl(PR_GET_TIMERSLACK);
  prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
  std::this_thread::sleep_until(end);
  if (slack > 0)
    prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack), 0, 0, 0);
}

Link linkOf(const Links &links, const CollectiveCall &call) {
  uint32_t kind = call.collective->kind;
  return links.of(call.group->members, kind == SHARDRT_ALL_TO_ALL || kind == SHARDRT_PERMUTE);
}

} // namespace

CommStream::Options CommStream::Options::of(const shardrt_config &config,
                                            const shardrt_program &program) {
  bool communicates = config.world_size > 1 && program.n_collectives > 0;
  return {config.timeout_s,
          communicates && !(config.flags & (SHARDRT_NO_COMM_THREAD | SHARDRT_CHECK_MEMORY)),
          Links::parse(std::getenv("SHARDRT_LINK"))};
}

CommStream::CommStream(Communicator &communicator, HostTransport &transport, EventLog &events,
                       Options options)
    : communicator(communicator), transport(transport), events(events), options(options),
      spin(spinAmong(communicator.worldSize())) {
  if (options.thread)
    thread = std::thread([this] { threadMain(); });
}

CommStream::~CommStream() {
  stopping.store(true, std::memory_order_release);
  work.advance();
  if (thread.joinable())
    thread.join();
}

CommStream::Operation &CommStream::allocate(uint32_t &index) {
  if (unused.empty()) {
    unused.push_back(uint32_t(operations.size()));
    operations.push_back(std::make_unique<Operation>());
  }
  index = unused.back();
  unused.pop_back();
  Operation &operation = *operations[index];
  operation.live = true;
  operation.failure.reset();
  operation.end = {};
  operation.done.store(false, std::memory_order_relaxed);
  return operation;
}

void CommStream::release(uint32_t index) {
  operations[index]->live = false;
  ++operations[index]->generation;
  unused.push_back(index);
}

uint64_t CommStream::start(const shardrt_collective &collective, Group *group, uint64_t run,
                           const shardrt_collective_tensor *tensors) noexcept {
  uint32_t index = 0;
  Operation &operation = allocate(index);
  operation.collective = &collective;
  uint64_t token = uint64_t(operation.generation) << 32 | index;
  std::string problem = group ? operation.call.assign(collective, *group, run, tensors) : "";
  if (!group || !problem.empty()) {
    if (!problem.empty())
      operation.failure.emplace(SHARDRT_INTERNAL, describe(collective) + ": " + problem);
    operation.done.store(true, std::memory_order_release);
    return token;
  }
  {
    std::lock_guard lock(queueMutex);
    queue.push_back(&operation);
  }
  if (options.thread)
    work.advance();
  return token;
}

void CommStream::occupyLink(const CollectiveCall &call, Clock::time_point arrived,
                            Clock::time_point &begin, Clock::time_point &end) {
  Clock::time_point &free = linkFree[call.group];
  begin = std::max(begin, free);
  end = std::max(end, std::max(arrived, free) + linkOf(options.links, call).time(call.wireBytes()));
  free = end;
}

void CommStream::execute(Operation &operation) {
  FlightRecorder::Record *record = nullptr;
  try {
    transport.await(operation.call, deadlineAfter(options.timeout));
    record = &recorder.begin(operation.call);
    Clock::time_point arrived = transport.run(operation.call, deadlineAfter(options.timeout));
    if (options.links.enabled() && operation.call.group->size() > 1)
      occupyLink(operation.call, arrived, record->begin, operation.end);
  } catch (const Failure &failure) {
    operation.failure.emplace(failure);
  } catch (const std::exception &error) {
    operation.failure.emplace(SHARDRT_INTERNAL, error.what());
    communicator.abort(SHARDRT_ABORTED, error.what());
  }
  if (!record) // it was not begun
    record = &recorder.begin(operation.call);
  if (operation.failure)
    record->status = operation.failure->status;
  record->end = std::max(Clock::now(), operation.end);
  record->finished = true;
  if (events.enabled)
    events.add(SHARDRT_STREAM_COMM, operation.call.collective->name,
               operation.call.collective->location, record->begin, record->end, record->bytes);
  operation.done.store(true, std::memory_order_release);
  completed.advance();
}

bool CommStream::runNext() {
  Operation *operation = nullptr;
  {
    std::lock_guard lock(queueMutex);
    if (queue.empty())
      return false;
    operation = queue.front();
    queue.pop_front();
  }
  execute(*operation);
  return true;
}

void CommStream::threadMain() {
  while (true) {
    uint32_t seen = work.load();
    {
      std::lock_guard lock(executing);
      while (runNext()) {
      }
    }
    if (stopping.load(std::memory_order_acquire))
      return;
    work.wait(seen, spin, longestSleep);
  }
}

void CommStream::finishOperation(uint32_t index) {
  Operation &operation = *operations[index];
  while (!operation.done.load(std::memory_order_acquire)) {
    uint32_t seen = completed.load();
    if (executing.try_lock()) {
      std::lock_guard lock(executing, std::adopt_lock);
      // It is in the queue: only a holder of `executing` takes it out, and completes it before it
      // lets go.
      while (!operation.done.load(std::memory_order_acquire) && runNext()) {
      }
      continue;
    }
    if (!operation.done.load(std::memory_order_acquire))
      completed.wait(seen, spin, longestSleep);
  }
  sleepUntil(operation.end);
}

CommStream::Operation *CommStream::find(uint64_t token) const {
  uint32_t index = uint32_t(token), generation = uint32_t(token >> 32);
  bool known = index < operations.size() && operations[index]->live &&
               operations[index]->generation == generation;
  return known ? operations[index].get() : nullptr;
}

const shardrt_collective *CommStream::collectiveOf(uint64_t token) const {
  const Operation *operation = find(token);
  return operation ? operation->collective : nullptr;
}

void CommStream::wait(uint64_t token) {
  uint32_t index = uint32_t(token);
  if (!find(token))
    throw Failure(SHARDRT_INTERNAL, "the program waits for a collective that is not in flight");
  finishOperation(index);
  std::optional<Failure> failure = std::move(operations[index]->failure);
  release(index);
  if (failure)
    throw Failure(*failure);
}

void CommStream::runNow(const shardrt_collective &collective, Group *group, uint64_t run,
                        const shardrt_collective_tensor *tensors) {
  if (!group)
    return;
  uint32_t index = 0;
  Operation &operation = allocate(index);
  if (std::string problem = operation.call.assign(collective, *group, run, tensors);
      !problem.empty()) {
    release(index);
    throw Failure(SHARDRT_INTERNAL, describe(collective) + ": " + problem);
  }
  {
    std::lock_guard lock(executing);
    while (runNext()) {
    }
    execute(operation);
  }
  sleepUntil(operation.end);
  std::optional<Failure> failure = std::move(operation.failure);
  release(index);
  if (failure)
    throw Failure(*failure);
}

std::optional<Failure> CommStream::drain() {
  std::optional<Failure> first;
  for (uint32_t index = 0; index < operations.size(); ++index) {
    if (!operations[index]->live)
      continue;
    finishOperation(index);
    if (!first && operations[index]->failure)
      first.emplace(*operations[index]->failure);
    release(index);
  }
  return first;
}

} // namespace shardc::rt
