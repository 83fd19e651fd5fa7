// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, streams, events and graphs, and what runs their work.
//
// Work is a graph of tasks: each waits for those before it on its stream and for those that events
// name. Host threads run the tasks, one at a time, inside calls of the driver: at once (eager),
// when something waits for them (lazy), or now and then and in any allowed order (random).
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_ENGINE_H
#define SHARDC_TOOLS_CUDA_EMULATOR_ENGINE_H

#include "tools/cuda-emulator/Clocks.h"
#include "tools/cuda-emulator/OrderLog.h"
#include "tools/cuda-emulator/Streams.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace shardc::emulator {

/// An operation with what only the emulator itself knows to say of it.
struct Work {
  Operation operation;
  /// What it has really touched, asked after it is done, instead of `reads` and `writes`.
  std::function<Effects()> touched;
};

struct Task {
  uint64_t serial = 0;
  std::shared_ptr<const Work> work; ///< null: nothing to do, as for events
  std::vector<std::shared_ptr<Task>> after;
  LaneClock clock;
  uint32_t lane = 0;
  OrderPoint point = noPoint;
  int device = 0;
  bool done = false;
  std::function<Progress()> step; ///< set once it has started
  std::chrono::steady_clock::time_point doneAt;
};
using TaskPtr = std::shared_ptr<Task>;

struct CapturedNode {
  std::shared_ptr<const Work> work;
  std::vector<size_t> after; ///< indices of earlier nodes
  size_t lane = 0;           ///< one for each stream of the capture
  OrderPoint point = noPoint;
};

struct CapturedGraph {
  std::vector<CapturedNode> nodes;
  size_t lanes = 0;
  int device = 0;
  OrderGraph order;
};

struct Stream;
struct Capture {
  uint64_t id = 0;
  std::shared_ptr<CapturedGraph> graph = std::make_shared<CapturedGraph>();
  Stream *origin = nullptr;
  int mode = 0;
  std::thread::id thread;
  std::string invalid; ///< why; empty: it is valid
  std::set<Stream *> streams;
};

struct Stream {
  int device = 0;
  bool blocking = true; ///< is ordered with stream 0
  uint32_t lane = 0;
  TaskPtr tail;
  std::vector<TaskPtr> waits; ///< for the next task, besides the tail
  LaneClock clock;            ///< of the tail and the waits
  std::shared_ptr<Capture> capture;
  std::vector<size_t> frontier; ///< nodes that the next captured one comes after
  size_t captureLane = 0;
  OrderPoint point = noPoint, capturePoint = noPoint; ///< of the tail, or of a wait after it
};

struct Event {
  int device = 0;
  bool timed = true;
  TaskPtr task;         ///< of the last record
  uint64_t capture = 0; ///< of the last record, if it was captured
  std::vector<size_t> frontier;
  OrderPoint point = noPoint; ///< of the last record
};

struct GraphHandle {
  std::shared_ptr<const CapturedGraph> graph;
};

struct GraphExec {
  std::shared_ptr<const CapturedGraph> graph;
  std::vector<uint32_t> lanes;
  TaskPtr last; ///< launches of one executable graph come one after the other
};

/// What a host thread, or the threads that work in one context, have waited for.
struct HostKnowledge {
  LaneClock clock;
  OrderPoint point = noPoint;
  OrderPoint taken = noPoint; ///< of a context: what it has learned last from a thread

  void learn(const LaneClock &what, OrderPoint where);
};

struct Device {
  int ordinal = 0;
  CUresult error = CUDA_SUCCESS;
  int retained = 0;
  Stream zero; ///< the default stream
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::vector<bool> peers;
  HostKnowledge host; ///< of the threads that work in its context
  std::vector<uint32_t> freeLanes;
};

class Engine {
public:
  static Engine &instance();

  std::recursive_mutex mutex; ///< held by every call of the driver
  /// Called first in a copy of the process, by its only thread: it holds the lock.
  void becomeCopy();
  std::vector<std::unique_ptr<Device>> devices;
  std::set<GraphHandle *> graphs;
  std::set<GraphExec *> executables;

  Stream *createStream(int device, bool blocking);
  void destroyStream(Stream *stream);

  CUresult enqueue(Stream &stream, Work work);
  CUresult record(Event &event, Stream &stream);
  CUresult wait(Stream &stream, Event &event);
  CUresult launch(GraphExec &executable, Stream &stream);
  CUresult instantiate(std::shared_ptr<const CapturedGraph> graph, GraphExec *&executable);

  CUresult beginCapture(Stream &stream, int mode);
  CUresult endCapture(Stream &stream, std::shared_ptr<CapturedGraph> &graph);
  void invalidate(Capture &capture, const std::string &why);
  /// CUDA_SUCCESS, or the error of a call that no capture of the process allows.
  CUresult unsafeCall(const char *name);

  /// Runs what `tasks` need until they are done; the error of the device that comes up meanwhile.
  /// `event` is where an event was recorded, if that is what is waited for.
  CUresult waitFor(const std::vector<TaskPtr> &tasks, int device, OrderPoint event = noPoint,
                   bool observes = true);
  /// Not `observes`: the driver waits, but a program must not rely on that.
  CUresult waitForDevice(int device, bool observes = true);
  /// The host knows that the task is done: what it enqueues from now on comes after it.
  void observe(const Task &task, OrderPoint point);
  /// The same, for a call that asks whether it is done.
  void observeAsked(const Task &task, OrderPoint point);
  /// Memory of a device is released, whose own work has ended: that of other devices must be known
  /// to have ended too. Who has the memory next need not wait for those who had it.
  CUresult release(Device &device, const ByteInterval &bytes);
  /// Lets time pass, for calls that ask whether something is done.
  void poll();
  void pollFor(const TaskPtr &task);
  /// The tasks that what is enqueued next on the stream waits for.
  std::vector<TaskPtr> tails(Stream &stream);
  void wakeUp() { changed.notify_all(); }

  CUresult fail(int device, CUresult error, const std::string &message);
  void clearErrors();
  /// The last owner of the device's context is gone: so are its streams, events and memory.
  void resetDevice(Device &device);
  void reseed();
  Task *running = nullptr;

private:
  Engine();
  /// Lanes are used again by streams of the same device only: it would order those of others.
  uint32_t newLane(int device);
  /// What comes before all that this thread enqueues now on the device: what it has waited for
  /// itself, and what any thread has waited for in the device's context. Threads of one context
  /// are taken to tell each other; of those of different contexts, the device sees only events.
  const HostKnowledge &host(Device &device);
  TaskPtr makeTask(int device, uint32_t lane, std::shared_ptr<const Work> work,
                   std::vector<TaskPtr> after, const LaneClock &clock);
  TaskPtr append(Stream &stream, std::shared_ptr<const Work> work);
  /// What the next task of the stream comes after.
  std::vector<OrderPoint> pointsBefore(const Stream &stream);
  CUresult captureNode(Stream &stream, Work work);
  bool join(Stream &stream, Event &event, CUresult &result);
  /// After something was enqueued: runs what the order of streams says.
  void afterEnqueue();
  bool ready(const Task &task) const;
  /// False: it is blocked.
  bool advance(const TaskPtr &task);
  void finish(Task &task);
  void checkOrder(Task &task);
  void forgetOld();
  /// The devices that touch each other's memory, that one included.
  std::vector<bool> neighboursOf(const Device &device) const;
  bool runPass(const std::vector<TaskPtr> &tasks);
  bool runRandom();
  void dropDone();

  std::vector<TaskPtr> pending;
  std::vector<uint64_t> laneTimes;
  HappensBefore happensBefore;
  std::vector<std::shared_ptr<Capture>> captures;
  std::pair<TaskPtr, Stream *> droppedWait;
  uint64_t nextSerial = 1, nextCapture = 1, finished = 0;
  std::mt19937_64 random;
  std::condition_variable_any changed;
};

/// The device of the thread's current context, or null.
Device *currentDevice();
/// The stream behind the handle; null: it is none. Stream 0 is that of the current context.
Stream *streamOf(CUstream stream);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_ENGINE_H
