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
};

struct CapturedGraph {
  std::vector<CapturedNode> nodes;
  size_t lanes = 0;
  int device = 0;
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
};

struct Event {
  int device = 0;
  bool timed = true;
  TaskPtr task;         ///< of the last record
  uint64_t capture = 0; ///< of the last record, if it was captured
  std::vector<size_t> frontier;
};

struct GraphHandle {
  std::shared_ptr<const CapturedGraph> graph;
};

struct GraphExec {
  std::shared_ptr<const CapturedGraph> graph;
  std::vector<uint32_t> lanes;
  TaskPtr last; ///< launches of one executable graph come one after the other
};

struct Device {
  int ordinal = 0;
  CUresult error = CUDA_SUCCESS;
  int retained = 0;
  Stream zero; ///< the default stream
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::vector<bool> peers;
};

class Engine {
public:
  static Engine &instance();

  std::recursive_mutex mutex; ///< held by every call of the driver
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
  CUresult waitFor(const std::vector<TaskPtr> &tasks, int device);
  CUresult waitForDevice(int device);
  /// The host knows that the task is done: what it enqueues from now on comes after it.
  void observe(const Task &task) { host.join(task.clock); }
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
  uint32_t newLane();
  TaskPtr makeTask(int device, uint32_t lane, std::shared_ptr<const Work> work,
                   std::vector<TaskPtr> after, const LaneClock &clock);
  TaskPtr append(Stream &stream, std::shared_ptr<const Work> work);
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
  bool runPass(const std::vector<TaskPtr> &tasks);
  bool runRandom();
  void dropDone();

  std::vector<TaskPtr> pending;
  std::vector<uint32_t> freeLanes;
  std::vector<uint64_t> laneTimes;
  LaneClock host;
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
