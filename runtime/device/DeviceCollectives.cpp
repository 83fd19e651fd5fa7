// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceCollectives.h"

#include <algorithm>
#include <cstring>
#include <ranges>

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

void StagedCollectives::runOutside(const shardrt_collective &collective, Group *group, uint64_t run,
                                   const shardrt_collective_tensor *tensors) {
  begin();
  if (!group)
    return;
  runNow(collective, group, run, tensors);
  device.synchronizeStream(compute); // on which there is only the way of the result
}

void StagedCollectives::join() {
  if (std::optional<Failure> failure = comm.drain())
    throw Failure(*failure);
  transport.finish(compute);
}

// ---- On streams ----

StreamCollectives::StreamCollectives(const Device &device, void *compute,
                                     StreamTransport &transport, DeviceTimeline &timeline,
                                     double timeout, const void *one,
                                     std::unique_ptr<StagedCollectives> throughHost)
    : device(device), compute(compute), transport(transport), timeline(timeline), timeout(timeout),
      staged(std::move(throughHost)), ready(device.makeEvent()), one(one) {
  staged->setLook([this] { look(); });
  staged->setCheck([this](const CollectiveCall &call) { this->transport.finish(call); });
}

void StreamCollectives::begin() {
  staged->begin();
  transport.begin();
  count = oldest = pieces = enqueued = recorded = 0;
  deadline.reset();
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
    operations.back()->began = device.makeEvent();
    operations.back()->done = device.makeEvent();
  }
  Operation &operation = *operations[count];
  if (std::string problem = operation.call.assign(collective, *group, run, tensors);
      !problem.empty())
    throw Failure(SHARDRT_INTERNAL, describe(collective) + ": " + problem);
  hasCounts |= std::ranges::any_of(operation.call.operands, &CallOperand::ownCounts);
  noteWork(2);
  constexpr size_t events = 5; // around the collective, with times
  const size_t ofCall = transport.pieces(operation.call) + events;
  makeRoom(ofCall);
  operation.before = enqueued;
  enqueued += ofCall;
  void *stream = streamOf(group);
  if (!computed) {
    device.record(ready, compute);
    device.wait(stream, ready);
  }
  size_t begin = timeline.enabled() ? timeline.mark(stream) : 0;
  device.record(operation.began, stream);
  if (capturing)
    mark(2 * count, compute); // the collective does not wait for it
  else
    recorder.begin(operation.call);
  operation.waited = false;
  ++count; // from here on it may be in flight
  transport.enqueue(operation.call, stream, deadlineAfter(timeout));
  if (timeline.enabled()) // before `done`: who waits for that can ask for times
    timeline.span(SHARDRT_STREAM_COMM, collective.name, collective.location, begin,
                  timeline.mark(stream), operation.call.operandBytes());
  if (capturing)
    mark(2 * count - 1, stream);
  device.record(operation.done, stream);
  return count;
}

void StreamCollectives::mark(size_t i, void *stream) {
  if (i >= marksRoom)
    throw Failure(SHARDRT_INTERNAL, "a run that is captured has more collectives than before");
  device.copy(static_cast<char *>(marks.get()) + i, one, 1, stream);
}

void StreamCollectives::wait(uint64_t token) {
  if (token == 0)
    return;
  if (token > count || operations[token - 1]->waited)
    throw Failure(SHARDRT_INTERNAL, "the program waits for a collective that is not in flight");
  Operation &operation = *operations[token - 1];
  operation.waited = true;
  noteWork(2);
  size_t begin = timeline.enabled() ? timeline.mark(compute) : 0;
  device.wait(compute, operation.done);
  transport.joined(operation.call, compute);
  if (timeline.enabled())
    timeline.span(SHARDRT_STREAM_WAIT, operation.call.collective->name,
                  operation.call.collective->location, begin, timeline.mark(compute), 0);
}

void StreamCollectives::join() {
  // On a stream, what is done last comes after all others. With times, each is waited for, so that
  // its span is shown.
  std::vector<size_t> wanted;
  std::vector<const Group *> joined;
  for (size_t i = count; i > 0; --i) {
    const Operation &operation = *operations[i - 1];
    const Group *group = operation.call.group;
    const bool isLast = std::ranges::find(joined, group) == joined.end();
    if (isLast)
      joined.push_back(group);
    if (!operation.waited && (isLast || timeline.enabled()))
      wanted.push_back(i);
  }
  for (size_t i : std::views::reverse(wanted))
    wait(i);
}

bool StreamCollectives::capturable(const shardrt_collective &collective, const Group &group,
                                   const shardrt_collective_tensor *tensors) const {
  // Members compare counts of their own in every call, which a graph would not do.
  for (uint32_t i = 0; i < collective.n_operands; ++i)
    if (const shardrt_collective_operand &operand = collective.operands[i];
        operand.gather_dim >= 0 && operand.gather_dim == operand.scatter_dim && tensors[i].gather)
      return false;
  return transport.capturable() && transport.takes(collective, group.size());
}

void StreamCollectives::noteWork(size_t more) {
  // Of three times as many, and what is noted at once, none is done. A device's queue has about
  // 1000 places, of which the plugin takes up to 300 within one product.
  constexpr size_t apart = 128;
  pieces += more;
  if (capturing || pieces < apart)
    return;
  pieces = 0;
  DeviceObject &event = behind[recorded % 2];
  if (recorded >= 2 && inFlight() > 0)
    pollUntil(event);
  if (!event)
    event = device.makeEvent();
  device.record(event, compute);
  ++recorded;
}

void StreamCollectives::makeRoom(size_t more) {
  constexpr size_t most = 600; // of all streams together
  while (!capturing && oldest < count && enqueued + more > operations[oldest]->before + most) {
    pollUntil(operations[oldest]->done);
    look();
  }
}

bool StreamCollectives::hasBegun(size_t i) const {
  if (replayed)
    return static_cast<const volatile char *>(replayed->marks.get())[2 * i] != 0;
  return device.done(operations[i]->began);
}

bool StreamCollectives::hasEnded(size_t i) const {
  if (replayed)
    return static_cast<const volatile char *>(replayed->marks.get())[2 * i + 1] != 0;
  return device.done(operations[i]->done);
}

/// The deadline of a collective begins when its operands are computed: until then it waits for
/// computations of this rank, which have none.
void StreamCollectives::look() {
  if (inFlight() == 0)
    return;
  for (; oldest < inFlight() && hasEnded(oldest); ++oldest) {
    recorder.finish(firstRecord + oldest, Clock::now());
    deadline.reset();
  }
  const bool all = oldest == inFlight();
  if (!all && !deadline && hasBegun(oldest))
    deadline = deadlineAfter(timeout);
  transport.poll(callOf(all ? oldest - 1 : oldest), deadline.value_or(Clock::time_point::max()));
}

void StreamCollectives::pollUntil(const DeviceObject &event) {
  pollUntil(event, [this] { look(); });
}

void StreamCollectives::pollUntil(const DeviceObject &event, const std::function<void()> &ask) {
  const Clock::time_point began = Clock::now();
  while (!device.done(event)) {
    ask();
    if (Clock::now() - began < std::chrono::milliseconds(20))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void StreamCollectives::waitInside(const DeviceObject &event) {
  if (inFlight() == 0)
    return device.synchronize(event);
  pollUntil(event);
  // What a world that was given up has left behind is no result.
  transport.finish(callOf(inFlight() - 1));
}

void StreamCollectives::waitFor(const DeviceObject &event) {
  waitInside(event);
  Clock::time_point now = Clock::now();
  for (uint64_t record = firstRecord + oldest; record < recorder.begunCount(); ++record)
    recorder.finish(record, now);
}

void StreamCollectives::runOutside(const shardrt_collective &collective, Group *group, uint64_t run,
                                   const shardrt_collective_tensor *tensors) {
  begin();
  if (!group || !transport.takes(collective, group->size()))
    return staged->runOutside(collective, group, run, tensors);
  CollectiveCall call;
  if (std::string problem = call.assign(collective, *group, run, tensors); !problem.empty())
    throw Failure(SHARDRT_INTERNAL, describe(collective) + ": " + problem);
  // The host waits in any case: then no stream has to. What it waits for may depend on a stream of
  // the caller's, which has no deadline; others may have failed meanwhile.
  device.record(ready, compute);
  pollUntil(ready, [&] { transport.poll(call, Clock::time_point::max()); });
  computed = true;
  try {
    start(collective, group, run, tensors);
  } catch (...) {
    computed = false;
    throw;
  }
  computed = false;
  operations.front()->waited = true;
  waitFor(operations.front()->done);
}

void StreamCollectives::setCapturing(bool now) {
  capturing = now;
  if (!now || operations.empty())
    return;
  // As many as any run before had: nothing can be allocated during the capture.
  marks = device.makePinned(2 * operations.size());
  marksRoom = 2 * operations.size();
}

CapturedCollectives StreamCollectives::captured() {
  CapturedCollectives graph;
  for (size_t i = 0; i < count; ++i)
    graph.calls.push_back(operations[i]->call);
  graph.marks = std::move(marks);
  marksRoom = 0;
  return graph;
}

void StreamCollectives::replay(CapturedCollectives &graph, uint64_t run) {
  begin();
  replayed = &graph;
  if (graph.marks)
    std::memset(graph.marks.get(), 0, 2 * graph.calls.size());
  for (CollectiveCall &call : graph.calls) {
    call.run = run;
    recorder.begin(call);
  }
}

void StreamCollectives::giveUp(Clock::time_point until) {
  transport.giveUp();
  staged->giveUp(until);
  for (auto &[group, stream] : streams) // they come to their ends now
    if (!device.settle(stream.get(), until))
      break;
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
