// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What host threads know of the devices' work, and which work nothing to come can race with.
#include "tools/cuda-emulator/Engine.h"
#include "tools/cuda-emulator/Memory.h"
#include "tools/cuda-emulator/OfThread.h"
#include "tools/cuda-emulator/Settings.h"

namespace shardc::emulator {

void HostKnowledge::learn(const LaneClock &what, OrderPoint where) {
  clock.join(what);
  if (where == noPoint || where == taken)
    return;
  point = OrderLog::instance().add(nullptr, {point, where});
  taken = where;
}

/// Of the calling thread.
static HostKnowledge &hostThread() { return ofThread<HostKnowledge>(); }

void Engine::observe(const Task &task, OrderPoint point) {
  HostKnowledge &thread = hostThread();
  thread.learn(task.clock, point);
  if (Device *device = currentDevice())
    device->host.learn(thread.clock, thread.point);
}

void Engine::observeAsked(const Task &task, OrderPoint point) {
  hostThread().clock.join(task.clock);
  if (Device *device = currentDevice())
    device->host.clock.join(task.clock);
  OrderLog::instance().ask(point);
}

const HostKnowledge &Engine::host(Device &device) {
  HostKnowledge &thread = hostThread();
  thread.learn({}, OrderLog::instance().takeAsked());
  device.host.learn(thread.clock, thread.point);
  return device.host;
}

CUresult Engine::release(Device &device, const ByteInterval &bytes) {
  std::string name = "release of " + std::to_string(bytes.end - bytes.begin) + " bytes";
  const HostKnowledge &known = host(device);
  OrderLog &log = OrderLog::instance();
  log.release(log.add(nullptr, {known.point}), name, device.ordinal, bytes);
  std::optional<Conflict> conflict;
  if (settings().checks)
    conflict = happensBefore.release(bytes, known.clock, device.ordinal);
  if (!conflict)
    return CUDA_SUCCESS;
  return fail(device.ordinal, CUDA_ERROR_LAUNCH_FAILED,
              name + ": " + conflict->other + (conflict->otherWrites ? " writes " : " reads ") +
                  std::to_string(conflict->bytes.end - conflict->bytes.begin) +
                  " of them, and who releases them has not waited for that: " +
                  Memory::instance().describe(conflict->bytes.begin));
}

void Engine::forgetOld() {
  dropDone();
  // What is to come on a device knows at least what threads of its context know; what waits
  // already has its own clock. Of pinned memory only what devices of the same group do counts.
  std::vector<LaneClock> known(devices.size());
  for (size_t of = 0; of < devices.size(); ++of) {
    const std::vector<bool> group = neighboursOf(*devices[of]);
    known[of] = devices[of]->host.clock;
    for (size_t other = 0; other < devices.size(); ++other)
      if (group[other] && devices[other]->retained)
        known[of].meet(devices[other]->host.clock);
    for (const TaskPtr &task : pending)
      if (group[task->device])
        known[of].meet(task->clock);
  }
  happensBefore.forget(known);
}

std::vector<bool> Engine::neighboursOf(const Device &device) const {
  std::vector<bool> found(devices.size());
  std::vector<const Device *> next{&device};
  found[device.ordinal] = true;
  while (!next.empty()) {
    const Device &of = *next.back();
    next.pop_back();
    for (const auto &other : devices)
      if (!found[other->ordinal] && (of.peers[other->ordinal] || other->peers[of.ordinal])) {
        found[other->ordinal] = true;
        next.push_back(other.get());
      }
  }
  return found;
}

} // namespace shardc::emulator
