// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How tasks are put in order and run. Capture and graphs are in Graphs.cpp.
#include "tools/cuda-emulator/Engine.h"
#include "tools/cuda-emulator/Memory.h"
#include "tools/cuda-emulator/Report.h"
#include "tools/cuda-emulator/Settings.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace shardc::emulator {
namespace {

/// How long a blocked host thread sleeps before it asks again.
constexpr std::chrono::microseconds pause(200);
/// After so many fruitless passes a lazy wait runs other streams too, as a device would.
constexpr int patience = 5;

void addRegion(std::vector<ByteInterval> &out, const Region &region) {
  for (uint64_t row = 0; row < region.rows; ++row) {
    uint64_t at = region.address + row * region.pitch;
    out.push_back({at, at + region.bytes});
  }
}

Effects declared(const Operation &operation) {
  Effects out;
  for (const Region &region : operation.reads)
    addRegion(out.reads, region);
  for (const Region &region : operation.writes)
    addRegion(out.writes, region);
  return out;
}

/// What is wrong with what an operation is going to touch; empty: nothing.
std::string problemOf(const Operation &operation) {
  const Memory &memory = Memory::instance();
  for (const auto *regions : {&operation.reads, &operation.writes})
    for (const Region &region : *regions)
      for (uint64_t row = 0; row < region.rows; ++row)
        if (std::string problem = memory.problem(region.address + row * region.pitch, region.bytes,
                                                 regions == &operation.reads);
            !problem.empty())
          return problem;
  return "";
}

void markWritten(const Operation &operation) {
  Memory &memory = Memory::instance();
  for (const Region &region : operation.writes)
    for (uint64_t row = 0; row < region.rows; ++row)
      if (uint64_t at = region.address + row * region.pitch; region.bytes && memory.owns(at))
        memory.setState(at, region.bytes, Written);
}

/// What `targets` need and is not done, in an order that is allowed.
std::vector<TaskPtr> needed(const std::vector<TaskPtr> &targets) {
  std::vector<TaskPtr> order;
  std::unordered_set<Task *> seen;
  std::vector<std::pair<TaskPtr, size_t>> stack;
  auto push = [&](const TaskPtr &task) {
    if (task && !task->done && seen.insert(task.get()).second)
      stack.push_back({task, 0});
  };
  for (const TaskPtr &target : targets) {
    push(target);
    while (!stack.empty()) {
      auto &[task, next] = stack.back();
      // The last first: streams that are waited for run before the own one goes on.
      if (next < task->after.size()) {
        TaskPtr before = task->after[task->after.size() - ++next];
        push(before);
        continue;
      }
      order.push_back(task);
      stack.pop_back();
    }
  }
  return order;
}

} // namespace

Engine &Engine::instance() {
  // It is never destroyed: host threads may still call when the process ends.
  static Engine *engine = new Engine;
  return *engine;
}

Engine::Engine() : random(settings().seed) {
  for (int i = 0; i < settings().devices; ++i) {
    devices.push_back(std::make_unique<Device>());
    devices.back()->ordinal = devices.back()->zero.device = i;
    devices.back()->zero.lane = newLane(i);
    devices.back()->peers.resize(settings().devices);
  }
}

void Engine::becomeCopy() {
  // A lock knows its owner by the number of the thread, which the copy has not inherited.
  std::construct_at(&mutex);
  mutex.lock();
}

uint32_t Engine::newLane(int device) {
  std::vector<uint32_t> &freeLanes = devices[device]->freeLanes;
  if (!freeLanes.empty()) {
    uint32_t lane = freeLanes.back();
    freeLanes.pop_back();
    return lane;
  }
  laneTimes.push_back(0);
  return uint32_t(laneTimes.size() - 1);
}

Stream *Engine::createStream(int device, bool blocking) {
  Stream *stream = new Stream;
  stream->device = device;
  stream->blocking = blocking;
  stream->lane = newLane(device);
  devices[device]->streams.insert(stream);
  return stream;
}

void Engine::destroyStream(Stream *stream) {
  if (stream->capture) {
    invalidate(*stream->capture, "a stream of the capture was destroyed");
    stream->capture->streams.erase(stream);
  }
  devices[stream->device]->streams.erase(stream);
  // Its lane is not used again while its tasks may run; lanes cost eight bytes in a clock.
  if (!stream->tail || stream->tail->done)
    devices[stream->device]->freeLanes.push_back(stream->lane);
  delete stream;
}

std::vector<TaskPtr> Engine::tails(Stream &stream) {
  std::vector<TaskPtr> out = stream.waits;
  if (stream.tail)
    out.push_back(stream.tail);
  Device &device = *devices[stream.device];
  if (&stream == &device.zero) {
    for (Stream *other : device.streams)
      if (other->blocking && !other->capture) {
        out.insert(out.end(), other->waits.begin(), other->waits.end());
        if (other->tail)
          out.push_back(other->tail);
      }
  } else if (stream.blocking && device.zero.tail) {
    out.push_back(device.zero.tail);
  }
  return out;
}

std::vector<OrderPoint> Engine::pointsBefore(const Stream &stream) {
  Device &device = *devices[stream.device];
  std::vector<OrderPoint> out{stream.point, host(device).point};
  if (&stream == &device.zero) {
    for (const Stream *other : device.streams)
      if (other->blocking && !other->capture)
        out.push_back(other->point);
  } else if (stream.blocking) {
    out.push_back(device.zero.point);
  }
  return out;
}

TaskPtr Engine::makeTask(int device, uint32_t lane, std::shared_ptr<const Work> work,
                         std::vector<TaskPtr> after, const LaneClock &clock) {
  TaskPtr task = std::make_shared<Task>();
  task->serial = nextSerial++;
  task->device = device;
  task->lane = lane;
  task->work = std::move(work);
  task->clock = clock;
  task->clock.join(host(*devices[device]).clock);
  for (TaskPtr &before : after) {
    task->clock.join(before->clock);
    if (!before->done)
      task->after.push_back(std::move(before));
  }
  task->clock.set(lane, ++laneTimes[lane]);
  pending.push_back(task);
  return task;
}

TaskPtr Engine::append(Stream &stream, std::shared_ptr<const Work> work) {
  TaskPtr task = makeTask(stream.device, stream.lane, std::move(work), tails(stream), stream.clock);
  task->point = OrderLog::instance().add(nullptr, pointsBefore(stream));
  stream.waits.clear();
  stream.tail = task;
  stream.clock = task->clock;
  stream.point = task->point;
  return task;
}

CUresult Engine::enqueue(Stream &stream, Work work) {
  if (CUresult error = devices[stream.device]->error)
    return error;
  if (stream.capture)
    return captureNode(stream, std::move(work));
  append(stream, std::make_shared<Work>(std::move(work)));
  afterEnqueue();
  return CUDA_SUCCESS;
}

CUresult Engine::record(Event &event, Stream &stream) {
  if (CUresult error = devices[stream.device]->error)
    return error;
  if (stream.capture) {
    if (!stream.capture->invalid.empty())
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    OrderPoint previous = event.capture == stream.capture->id ? event.point : noPoint;
    event.point = OrderLog::instance().record(&stream.capture->graph->order, stream.lane,
                                              stream.capturePoint, previous);
    event.capture = stream.capture->id;
    event.frontier = stream.frontier;
    event.task = nullptr;
    return CUDA_SUCCESS;
  }
  event.task = append(stream, nullptr);
  event.point = OrderLog::instance().record(nullptr, stream.lane, event.task->point,
                                            event.capture ? noPoint : event.point);
  event.capture = 0;
  afterEnqueue();
  return CUDA_SUCCESS;
}

CUresult Engine::wait(Stream &stream, Event &event) {
  if (CUresult error = devices[stream.device]->error)
    return error;
  CUresult result = CUDA_SUCCESS;
  if (join(stream, event, result))
    return result;
  if (!event.task) // It was never recorded: there is nothing to wait for.
    return CUDA_SUCCESS;
  LaneClock known = stream.clock;
  known.join(host(*devices[stream.device]).clock);
  if (known.includes(event.task->clock))
    return CUDA_SUCCESS; // is in order anyway
  // A wait that is dropped is dropped again where it is repeated.
  if (droppedWait.first == event.task && droppedWait.second == &stream)
    return CUDA_SUCCESS;
  if (counts().next(Dropped::Wait)) {
    droppedWait = {event.task, &stream};
    return CUDA_SUCCESS;
  }
  stream.point = OrderLog::instance().wait(nullptr, stream.lane, stream.point, event.point);
  stream.waits.push_back(event.task);
  stream.clock.join(event.task->clock);
  return CUDA_SUCCESS;
}

bool Engine::ready(const Task &task) const {
  return std::all_of(task.after.begin(), task.after.end(),
                     [](const TaskPtr &before) { return before->done; });
}

bool Engine::advance(const TaskPtr &task) {
  bool dead = devices[task->device]->error != CUDA_SUCCESS;
  if (task->work && !dead) {
    Task *outer = std::exchange(running, task.get());
    Progress progress = Progress::Done;
    if (!task->step) {
      std::string problem = settings().checks ? problemOf(task->work->operation) : std::string();
      if (!problem.empty()) {
        fail(task->device, CUDA_ERROR_ILLEGAL_ADDRESS, problem);
        progress = Progress::Failed;
      } else {
        task->step = task->work->operation.start();
      }
    }
    if (progress == Progress::Done)
      progress = task->step();
    if (progress == Progress::Done) {
      markWritten(task->work->operation);
      if (settings().checks)
        checkOrder(*task);
    }
    running = outer;
    if (progress == Progress::Blocked)
      return false;
    if (progress == Progress::Failed && devices[task->device]->error == CUDA_SUCCESS)
      fail(task->device, CUDA_ERROR_LAUNCH_FAILED, task->work->operation.name + " has failed");
  }
  finish(*task);
  return true;
}

void Engine::finish(Task &task) {
  task.done = true;
  task.doneAt = std::chrono::steady_clock::now();
  task.after.clear();
  task.step = nullptr;
  task.work = nullptr;
  if (++finished % 64 == 0)
    forgetOld();
}

void Engine::checkOrder(Task &task) {
  const Work &work = *task.work;
  OperationRecord record;
  record.name = work.operation.name;
  record.lane = task.lane;
  record.device = task.device;
  record.clock = task.clock;
  record.effects = work.touched ? work.touched() : declared(work.operation);
  record.effects.normalize();
  OrderLog::instance().setEffects(task.point, record.name, task.device, record.effects);
  std::optional<Conflict> conflict = happensBefore.add(std::move(record));
  if (!conflict)
    return;
  auto verb = [](bool writes) { return writes ? "writes" : "reads"; };
  fail(task.device, CUDA_ERROR_LAUNCH_FAILED,
       std::string("unordered operations: ") + verb(conflict->thisWrites) + " " +
           std::to_string(conflict->bytes.end - conflict->bytes.begin) + " bytes that " +
           conflict->other + " " + verb(conflict->otherWrites) +
           ", and no event, stream or synchronisation orders the two: " +
           Memory::instance().describe(conflict->bytes.begin));
}

void Engine::pollFor(const TaskPtr &task) {
  if (settings().order != StreamOrder::Lazy)
    return poll();
  if (!running)
    runPass(needed({task}));
  dropDone();
}

void Engine::dropDone() {
  std::erase_if(pending, [](const TaskPtr &task) { return task->done; });
}

bool Engine::runPass(const std::vector<TaskPtr> &tasks) {
  bool any = false;
  for (const TaskPtr &task : tasks)
    if (!task->done && ready(*task))
      any |= advance(task);
  return any;
}

bool Engine::runRandom() {
  std::vector<TaskPtr> candidates;
  for (const TaskPtr &task : pending)
    if (!task->done && ready(*task))
      candidates.push_back(task);
  std::shuffle(candidates.begin(), candidates.end(), random);
  for (const TaskPtr &task : candidates)
    if (advance(task))
      return true;
  return false;
}

void Engine::afterEnqueue() {
  if (settings().order == StreamOrder::Eager) {
    poll();
  } else if (settings().order == StreamOrder::Random) {
    for (uint64_t n = random() % 3; n && runRandom(); --n) {
    }
    dropDone();
  }
}

void Engine::poll() {
  if (running)
    return; // An operation that enqueues is a mistake, but no reason for endless recursion.
  if (settings().order == StreamOrder::Random) {
    runRandom();
  } else {
    // Tasks that become ready are behind those they wait for.
    std::vector<TaskPtr> now = pending;
    while (runPass(now)) {
    }
  }
  dropDone();
}

CUresult Engine::waitFor(const std::vector<TaskPtr> &targets, int device, OrderPoint event,
                         bool observes) {
  int fruitless = 0;
  auto done = [&] {
    return std::all_of(targets.begin(), targets.end(),
                       [](const TaskPtr &task) { return !task || task->done; });
  };
  while (!done() && devices[device]->error == CUDA_SUCCESS) {
    bool any = settings().order == StreamOrder::Random ? runRandom() : runPass(needed(targets));
    if (!any && (fruitless > patience || settings().order == StreamOrder::Eager))
      any = runPass(std::vector<TaskPtr>(pending));
    fruitless = any ? 0 : fruitless + 1;
    dropDone();
    if (!any)
      changed.wait_for(mutex, pause);
  }
  if (CUresult error = devices[device]->error)
    return error;
  for (const TaskPtr &task : targets)
    if (task && observes)
      observe(*task, event == noPoint ? task->point : event);
  return CUDA_SUCCESS;
}

CUresult Engine::waitForDevice(int device, bool observes) {
  std::vector<TaskPtr> targets;
  for (const TaskPtr &task : pending)
    if (task->device == device && !task->done)
      targets.push_back(task);
  for (Stream *stream : devices[device]->streams)
    if (stream->tail)
      targets.push_back(stream->tail);
  if (devices[device]->zero.tail)
    targets.push_back(devices[device]->zero.tail);
  return waitFor(targets, device, noPoint, observes);
}

CUresult Engine::fail(int device, CUresult error, const std::string &message) {
  std::string text = message;
  if (running && running->work)
    text = running->work->operation.name + ": " + text;
  addReport(text);
  if (device >= 0 && size_t(device) < devices.size() && devices[device]->error == CUDA_SUCCESS)
    devices[device]->error = error;
  return error;
}

void Engine::resetDevice(Device &device) {
  for (const TaskPtr &task : std::vector<TaskPtr>(pending))
    if (task->device == device.ordinal)
      finish(*task);
  dropDone();
  while (!device.streams.empty())
    destroyStream(*device.streams.begin());
  for (Event *event : device.events)
    delete event;
  device.events.clear();
  for (const Allocation &allocation : Memory::instance().live(device.ordinal)) {
    happensBefore.forget({allocation.address, allocation.address + allocation.bytes});
    Memory::instance().release(allocation.address, allocation.pinned);
  }
  device.zero.tail = nullptr;
  device.zero.waits.clear();
  device.error = CUDA_SUCCESS;
  device.peers.assign(device.peers.size(), false);
}

void Engine::reseed() { random.seed(settings().seed); }

void Engine::clearErrors() {
  clearReports();
  for (const TaskPtr &task : std::vector<TaskPtr>(pending))
    if (devices[task->device]->error != CUDA_SUCCESS)
      finish(*task);
  dropDone();
  for (auto &device : devices)
    device->error = CUDA_SUCCESS;
  happensBefore.clear();
}

} // namespace shardc::emulator
