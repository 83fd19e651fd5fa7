// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Capture of streams, and launches of the graphs that come of it.
#include "tools/cuda-emulator/Engine.h"
#include "tools/cuda-emulator/Report.h"
#include "tools/cuda-emulator/Settings.h"

#include <algorithm>

namespace shardc::emulator {
namespace {

void addNew(std::vector<size_t> &to, const std::vector<size_t> &from) {
  for (size_t node : from)
    if (std::find(to.begin(), to.end(), node) == to.end())
      to.push_back(node);
}

/// The nodes of `from` and all that they come after.
std::vector<bool> ancestors(const CapturedGraph &graph, const std::vector<size_t> &from) {
  std::vector<bool> in(graph.nodes.size());
  for (size_t node : from)
    in[node] = true;
  for (size_t node = graph.nodes.size(); node-- > 0;)
    if (in[node])
      for (size_t before : graph.nodes[node].after)
        in[before] = true;
  return in;
}

bool includes(const CapturedGraph &graph, const std::vector<size_t> &all,
              const std::vector<size_t> &some) {
  std::vector<bool> in = ancestors(graph, all);
  return std::all_of(some.begin(), some.end(), [&](size_t node) { return in[node]; });
}

} // namespace

CUresult Engine::captureNode(Stream &stream, Work work) {
  Capture &capture = *stream.capture;
  if (!capture.invalid.empty())
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CapturedGraph &graph = *capture.graph;
  stream.capturePoint = OrderLog::instance().add(&graph.order, {stream.capturePoint});
  graph.nodes.push_back({std::make_shared<Work>(std::move(work)), stream.frontier,
                         stream.captureLane, stream.capturePoint});
  stream.frontier = {graph.nodes.size() - 1};
  return CUDA_SUCCESS;
}

bool Engine::join(Stream &stream, Event &event, CUresult &result) {
  if (!stream.capture && !event.capture)
    return false;
  result = CUDA_SUCCESS;
  if (stream.capture && !stream.capture->invalid.empty()) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (stream.capture && !event.capture) {
    if (!event.task)
      return true; // never recorded
    invalidate(*stream.capture, "cuStreamWaitEvent waits for an event that was recorded before the "
                                "capture began");
    result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  } else if (stream.capture && stream.capture->id != event.capture) {
    invalidate(*stream.capture, "cuStreamWaitEvent waits for an event of another capture");
    result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
  } else {
    auto active = std::find_if(captures.begin(), captures.end(),
                               [&](const auto &c) { return c->id == event.capture; });
    if (active == captures.end()) {
      addReport("cuStreamWaitEvent waits for an event that was last recorded in a capture, which "
                "has ended");
      result = CUDA_ERROR_CAPTURED_EVENT;
      return true;
    }
    if (!(*active)->invalid.empty()) {
      result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      return true;
    }
    CapturedGraph &graph = *(*active)->graph;
    bool ordered = stream.capture && includes(graph, stream.frontier, event.frontier);
    if (ordered || counts().next(Dropped::Wait)) {
      // A stream that does not join runs its work now, not in the graph: as without the wait.
      return true;
    }
    const bool joins = !stream.capture;
    if (joins) {
      stream.capture = *active;
      stream.frontier.clear();
      stream.capturePoint = noPoint;
      stream.captureLane = graph.lanes++;
      (*active)->streams.insert(&stream);
    }
    addNew(stream.frontier, event.frontier);
    stream.capturePoint = OrderLog::instance().wait(&graph.order, stream.lane, stream.capturePoint,
                                                    event.point, joins);
  }
  return true;
}

CUresult Engine::beginCapture(Stream &stream, int mode) {
  if (CUresult error = devices[stream.device]->error)
    return error;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  if (&stream == &devices[stream.device]->zero)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = nextCapture++;
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->graph->device = stream.device;
  capture->graph->lanes = 1;
  capture->streams.insert(&stream);
  stream.capture = capture;
  stream.frontier.clear();
  stream.capturePoint = noPoint;
  stream.captureLane = 0;
  captures.push_back(capture);
  return CUDA_SUCCESS;
}

CUresult Engine::endCapture(Stream &stream, std::shared_ptr<CapturedGraph> &graph) {
  std::shared_ptr<Capture> capture = stream.capture;
  if (!capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->origin != &stream) {
    invalidate(*capture, "cuStreamEndCapture is called for a stream that has joined the capture, "
                         "not for the one that began it");
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (!capture->invalid.empty())
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (Stream *other : capture->streams)
    if (result == CUDA_SUCCESS && !includes(*capture->graph, stream.frontier, other->frontier)) {
      addReport("cuStreamEndCapture: a stream that joined the capture has work that the first "
                "stream does not wait for");
      result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
  OrderGraph &order = capture->graph->order;
  order.end = stream.capturePoint;
  for (Stream *other : capture->streams) {
    order.otherEnds.push_back(other->capturePoint);
    other->frontier.clear();
    if (other != &stream)
      other->capture = nullptr;
  }
  stream.capture = nullptr;
  std::erase(captures, capture);
  if (result == CUDA_SUCCESS) {
    graph = capture->graph;
    OrderLog::instance().endCapture(order);
  }
  return result;
}

void Engine::invalidate(Capture &capture, const std::string &why) {
  if (!capture.invalid.empty())
    return;
  capture.invalid = why;
  addReport("illegal during capture: " + why);
}

CUresult Engine::unsafeCall(const char *name) {
  for (const auto &capture : captures) {
    bool forbidden = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                     (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                      capture->thread == std::this_thread::get_id());
    if (!forbidden)
      continue;
    invalidate(*capture, std::string(name) + " is called while a stream is captured");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult Engine::instantiate(std::shared_ptr<const CapturedGraph> graph, GraphExec *&executable) {
  executable = new GraphExec;
  for (size_t i = 0; i < graph->lanes; ++i)
    executable->lanes.push_back(newLane(graph->device));
  executable->graph = std::move(graph);
  executables.insert(executable);
  return CUDA_SUCCESS;
}

CUresult Engine::launch(GraphExec &executable, Stream &stream) {
  if (CUresult error = devices[stream.device]->error)
    return error;
  if (stream.capture) {
    invalidate(*stream.capture, "cuGraphLaunch into a stream that is captured (child graphs are "
                                "not supported by the emulated device)");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  ++counts().graphs;
  const CapturedGraph &graph = *executable.graph;
  std::vector<TaskPtr> before = tails(stream);
  if (executable.last)
    before.push_back(executable.last);
  LaneClock start = stream.clock;
  for (const TaskPtr &task : before)
    start.join(task->clock);
  OrderLog &log = OrderLog::instance();
  std::vector<OrderPoint> pointsOfAll = pointsBefore(stream);
  if (executable.last)
    pointsOfAll.push_back(executable.last->point);
  OrderPoint first = log.launch(graph.order, pointsOfAll);
  std::vector<TaskPtr> tasks, ends;
  std::vector<bool> inner(graph.nodes.size());
  for (const CapturedNode &node : graph.nodes) {
    std::vector<TaskPtr> after;
    for (size_t n : node.after) {
      after.push_back(tasks[n]);
      inner[n] = true;
    }
    if (after.empty())
      after = before;
    tasks.push_back(
        makeTask(stream.device, executable.lanes[node.lane], node.work, std::move(after), start));
    if (log.enabled)
      tasks.back()->point = first + node.point;
  }
  if (log.enabled) { // the graph ends when all of it has
    for (OrderPoint i = 0; i < graph.order.points.size(); ++i)
      pointsOfAll.push_back(first + i);
    stream.point = log.add(nullptr, std::move(pointsOfAll));
  }
  for (size_t i = 0; i < tasks.size(); ++i)
    if (!inner[i])
      ends.push_back(tasks[i]);
  stream.waits.insert(stream.waits.end(), ends.begin(), ends.end());
  executable.last = append(stream, nullptr);
  afterEnqueue();
  return CUDA_SUCCESS;
}

} // namespace shardc::emulator
