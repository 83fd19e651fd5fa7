// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceCollectives.h"

#include <algorithm>

namespace shardc::rt {

// ---- Through the host ----

uint64_t StagedCollectives::start(const shardrt_collective &collective, Group *group, uint64_t run,
                                  const shardrt_collective_tensor *tensors) {
  if (group) {
    used = true;
    transport.expect(compute);
  }
  return comm.start(collective, group, run, tensors);
}

/// Here the host itself waits: a part of its time line.
template <typename Wait>
void StagedCollectives::waiting(const shardrt_collective *collective, Wait wait) {
  Clock::time_point begin = events.enabled ? Clock::now() : Clock::time_point();
  wait();
  transport.finish(compute);
  if (events.enabled)
    events.add(SHARDRT_STREAM_WAIT, collective ? collective->name : "wait",
               collective ? collective->location : "", begin, Clock::now(), 0);
}

void StagedCollectives::wait(uint64_t token) {
  waiting(comm.collectiveOf(token), [&] { comm.wait(token); });
}

void StagedCollectives::runNow(const shardrt_collective &collective, Group *group, uint64_t run,
                               const shardrt_collective_tensor *tensors) {
  if (!group)
    return;
  used = true;
  transport.expect(compute);
  waiting(&collective, [&] { comm.runNow(collective, group, run, tensors); });
}

void StagedCollectives::join() {
  if (std::optional<Failure> failure = comm.drain())
    throw Failure(*failure);
  transport.finish(compute);
}

// ---- On streams ----

void StreamCollectives::begin() {
  staged->begin();
  count = oldest = 0;
  hasCounts = false;
  replayed = nullptr;
  firstRecord = recorder.begunCount();
}

void *StreamCollectives::streamOf(const Group *group) {
  auto found = std::ranges::find(streams, group, [](auto &entry) { return entry.first; });
  if (found == streams.end())
    found = streams.insert(streams.end(), {group, device.makeStream()});
  return found->second.get();
}

uint64_t StreamCollectives::start(const shardrt_collective &collective, Group *group, uint64_t run,
                                  const shardrt_collective_tensor *tensors) {
  if (!group)
    return 0;
  if (!transport.takes(collective, group->size())) {
    staged->runNow(collective, group, run, tensors);
    return 0;
  }
  if (count == operations.size()) {
    operations.push_back(std::make_unique<Operation>());
    operations.back()->done = device.makeEvent();
  }
  Operation &operation = *operations[count];
  if (std::string problem = operation.call.assign(collective, *group, run, tensors);
      !problem.empty())
    throw Failure(SHARDRT_INTERNAL, describe(collective) + ": " + problem);
  hasCounts |= std::ranges::any_of(operation.call.operands, &CallOperand::ownCounts);
  void *stream = streamOf(group);
  device.record(ready, compute);
  device.wait(stream, ready);
  size_t begin = timeline.enabled() ? timeline.mark(stream) : 0;
  if (!capturing)
    recorder.begin(operation.call);
  operation.waited = false;
  ++count; // from here on it may be in flight
  transport.enqueue(operation.call, stream, deadlineAfter(timeout));
  if (timeline.enabled()) // before `done`: who waits for that can ask for times
    timeline.span(SHARDRT_STREAM_COMM, collective.name, collective.location, begin,
                  timeline.mark(stream), operation.call.operandBytes());
  device.record(operation.done, stream);
  return count;
}

void StreamCollectives::wait(uint64_t token) {
  if (token == 0)
    return;
  if (token > count || operations[token - 1]->waited)
    throw Failure(SHARDRT_INTERNAL, "the program waits for a collective that is not in flight");
  Operation &operation = *operations[token - 1];
  operation.waited = true;
  size_t begin = timeline.enabled() ? timeline.mark(compute) : 0;
  device.wait(compute, operation.done);
  if (timeline.enabled())
    timeline.span(SHARDRT_STREAM_WAIT, operation.call.collective->name,
                  operation.call.collective->location, begin, timeline.mark(compute), 0);
}

void StreamCollectives::join() {
  for (size_t i = 0; i < count; ++i)
    if (!operations[i]->waited)
      wait(i + 1);
}

bool StreamCollectives::capturable(const shardrt_collective &collective, const Group &group,
                                   const shardrt_collective_tensor *tensors) const {
  // Members compare counts of their own in every call, which a graph would not do.
  for (uint32_t i = 0; i < collective.n_operands; ++i)
    if (const shardrt_collective_operand &operand = collective.operands[i];
        operand.gather_dim >= 0 && operand.gather_dim == operand.scatter_dim && tensors[i].gather)
      return false;
  return transport.takes(collective, group.size());
}

void StreamCollectives::noteLaunches(size_t launches) {
  constexpr size_t apart = 256; // a device's queue has about 1000 places
  if (launches % apart != 0)
    return;
  DeviceObject &event = behind[launches / apart % 2];
  if (event && launches > 2 * apart && inFlight() > 0)
    pollUntil(event);
  if (!event)
    event = device.makeEvent();
  device.record(event, compute);
}

void StreamCollectives::pollUntil(const DeviceObject &event) {
  const Clock::time_point began = Clock::now();
  const auto limit = deadlineAfter(timeout) - began;
  Clock::time_point progress = began;
  while (!device.done(event)) {
    // What is in a graph cannot be asked for.
    for (; !replayed && oldest < count && device.done(operations[oldest]->done); ++oldest) {
      progress = Clock::now();
      recorder.finish(firstRecord + oldest, progress);
    }
    const bool all = oldest == inFlight(); // only computations are left, which have no deadline
    transport.poll(callOf(all ? oldest - 1 : oldest),
                   all ? Clock::time_point::max() : progress + limit);
    if (Clock::now() - began < std::chrono::milliseconds(20))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void StreamCollectives::waitFor(const DeviceObject &event) {
  if (inFlight() == 0)
    return device.synchronize(event);
  pollUntil(event);
  // What a world that was given up has left behind is no result.
  transport.poll(callOf(inFlight() - 1), Clock::time_point::max());
  Clock::time_point now = Clock::now();
  for (uint64_t record = firstRecord + oldest; record < recorder.begunCount(); ++record)
    recorder.finish(record, now);
}

std::vector<CollectiveCall> StreamCollectives::captured() {
  std::vector<CollectiveCall> calls;
  for (size_t i = 0; i < count; ++i)
    calls.push_back(operations[i]->call);
  return calls;
}

void StreamCollectives::replay(std::vector<CollectiveCall> &calls, uint64_t run) {
  begin();
  replayed = &calls;
  for (CollectiveCall &call : calls) {
    call.run = run;
    recorder.begin(call);
  }
}

void StreamCollectives::giveUp() {
  transport.giveUp();
  staged->giveUp();
  // Streams come to their ends now. One that does not is left alone.
  const Clock::time_point until = deadlineAfter(10);
  for (auto &[group, stream] : streams) {
    device.record(ready, stream.get());
    while (!device.done(ready) && Clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  begin();
}

std::string StreamCollectives::flightRecord() const {
  std::string text = recorder.dump(), host = staged->flightRecord();
  return text + (text.empty() || host.empty() ? "" : "\n through the host:\n") + host;
}

void StreamCollectives::recordFlight(FlightRecord &record) const {
  recorder.fill(record);
  staged->recordFlight(record);
}

} // namespace shardc::rt
