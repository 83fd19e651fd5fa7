// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/StagedTransport.h"

#include <algorithm>
#include <thread>

namespace shardc::rt {

namespace {

constexpr size_t alignment = 64;
constexpr size_t smallestPinned = 64 << 10;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

size_t inBytes(const CollectiveCall &call, size_t i) {
  const CallOperand &operand = call.operands[i];
  return size_t(operand.inElements(call.group->position) * operand.elementBytes);
}

size_t outBytes(const CollectiveCall &call, size_t i) {
  const CallOperand &operand = call.operands[i];
  return size_t(operand.outElements(call.group->position, *call.collective) * operand.elementBytes);
}

/// Whether what this member gives is read at all: of a broadcast, only at its source.
bool gives(const CollectiveCall &call) {
  return call.collective->kind != SHARDRT_BROADCAST ||
         call.collective->root == call.group->position;
}

} // namespace

StagedTransport::StagedTransport(const Device &device, HostTransport &host, const void *errorWord,
                                 const Communicator &communicator)
    : device(device), host(host), errorWord(errorWord), communicator(communicator),
      stream(device.makeStream()), uploaded(device.makeEvent()) {}

void StagedTransport::expect(void *computeStream) {
  std::lock_guard lock(mutex);
  if (unused.empty())
    unused.push_back(device.makeEvent());
  device.record(unused.back(), computeStream);
  expected.push_back(std::move(unused.back()));
  unused.pop_back();
}

void StagedTransport::finish(void *computeStream) {
  const uint64_t now = results.load(std::memory_order_acquire);
  if (now == finished)
    return;
  finished = now;
  device.record(uploaded, stream.get());
  device.wait(computeStream, uploaded);
}

void StagedTransport::reset() {
  for (DeviceObject &event : expected)
    unused.push_back(std::move(event));
  expected.clear();
  failed.store(0, std::memory_order_relaxed);
}

void StagedTransport::await(const CollectiveCall &call, Clock::time_point deadline) {
  DeviceObject event;
  {
    std::lock_guard lock(mutex);
    if (expected.empty())
      throw Failure(SHARDRT_INTERNAL, describe(*call.collective) + ": nobody expected it");
    event = std::move(expected.front());
    expected.pop_front();
  }
  // Computations of this rank have no deadline: it begins with the collective. But nobody waits for
  // a world that was given up.
  for (Clock::time_point begin = Clock::now(); !device.done(event);) {
    if (look)
      look();
    if (communicator.givenUp()) {
      stage(call);
      host.run(staged, deadline); // throws, in the words of the communicator
      throw Failure(SHARDRT_ABORTED, describe(*call.collective) + ": it was given up");
    }
    if (Clock::now() - begin < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  std::lock_guard lock(mutex);
  unused.push_back(std::move(event));
}

/// Sets the operands of `staged`, as offsets, and returns the bytes that they take.
size_t StagedTransport::place(const CollectiveCall &call) {
  staged = call;
  size_t total = alignment;
  for (size_t i = 0; i < staged.operands.size(); ++i) {
    CallOperand &operand = staged.operands[i];
    size_t in = inBytes(call, i), out = outBytes(call, i);
    const char *given = static_cast<const char *>(operand.in);
    const char *got = static_cast<const char *>(operand.out);
    size_t outAt = total;
    total += aligned(out);
    // In place: the operand, or its own place in the result.
    bool within = in > 0 && out > 0 && given >= got && given + in <= got + out;
    size_t inAt = within ? outAt + size_t(given - got) : total;
    if (!within)
      total += aligned(in);
    operand.in = in > 0 ? reinterpret_cast<const void *>(inAt) : nullptr;
    operand.out = out > 0 ? reinterpret_cast<void *>(outAt) : nullptr;
  }
  return total;
}

void StagedTransport::stage(const CollectiveCall &call) {
  size_t bytes = place(call);
  if (bytes > pinnedBytes) {
    if (pinned)
      device.synchronizeStream(stream.get()); // the last results may still be copied up
    pinnedBytes = 0;
    bytes = std::max(bytes, smallestPinned);
    pinned = device.makePinned(bytes);
    pinnedBytes = bytes;
  }
  char *base = static_cast<char *>(pinned.get());
  for (CallOperand &operand : staged.operands) {
    if (operand.in)
      operand.in = base + reinterpret_cast<uintptr_t>(operand.in);
    if (operand.out)
      operand.out = base + reinterpret_cast<uintptr_t>(operand.out);
  }
}

Clock::time_point StagedTransport::run(const CollectiveCall &call, Clock::time_point deadline) {
  stage(call);
  char *base = static_cast<char *>(pinned.get());
  for (size_t i = 0; i < staged.operands.size() && gives(call); ++i)
    device.copy(const_cast<void *>(staged.operands[i].in), call.operands[i].in, inBytes(call, i),
                stream.get());
  device.copy(base, errorWord, sizeof(uint64_t), stream.get());
  device.synchronizeStream(stream.get());
  // What was computed after a failure is of no use to others.
  if (uint64_t word = *reinterpret_cast<const uint64_t *>(base)) {
    failed.store(word, std::memory_order_release);
    throw Failure(SHARDRT_PROGRAM_ERROR,
                  "the program failed on the device before " + describe(*call.collective));
  }
  if (check)
    check(call);
  Clock::time_point arrived = host.run(staged, deadline);
  for (size_t i = 0; i < staged.operands.size(); ++i)
    device.copy(call.operands[i].out, staged.operands[i].out, outBytes(call, i), stream.get());
  results.fetch_add(1, std::memory_order_release);
  return arrived;
}

} // namespace shardc::rt
