// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/EventMemory.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

EventMemory::EventMemory(const PlanEvents &events, bool flat)
    : events(events), problem(events.problem), flat(flat),
      scattered(problem.storageBytes.size(), none),
      storages(problem.storageBytes.size() + 2 * problem.numTasks()), begin(2 * problem.numTasks()),
      end(2 * problem.numTasks()), carry(events.size() + 1) {
  const Graph &graph = problem.graph;
  std::vector<std::pair<uint32_t, Use>> uses;
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    NodeId node = problem.nodeOf[task];
    if (graph.isFree(node))
      continue;
    bool isKernel = problem.isKernel(task);
    for (bool result : {false, true})
      for (ValueId value : result ? graph.results(node) : graph.operands(node)) {
        StorageId storage = problem.storageOf[value];
        if (storage == none)
          continue;
        uses.push_back({storage,
                        {task, isKernel ? Use::Kernel
                               : result ? Use::Result
                                        : Use::Operand}});
        if (result && !isKernel && !needsUnpack(graph.kindOf(node)))
          scattered[storage] = task;
      }
  }
  usesOf = Rows<Use>::fromPairs(problem.storageBytes.size(), uses);
  for (Storage storage = 0; storage != storages.size(); ++storage)
    account(storages[storage] = liveOf(storage), true);
  uint64_t carried = carry[0] = problem.constantBytes;
  for (uint32_t at = 0; at != events.size(); ++at) {
    pass(events.at(at), carried);
    carry[at + 1] = carried;
  }
}

UnitId EventMemory::bucketAround(Storage storage) const {
  if (scattered[storage] == none)
    return none;
  UnitId unit = events.unitOf(scattered[storage]);
  return landsInResult(unit) ? unit : none;
}

/// Calls fn(event) for each event that touches a storage of the problem, wherever it lies.
template <typename Fn> void EventMemory::forEachUse(Storage storage, Fn fn) const {
  for (auto [task, role] : usesOf[storage]) {
    if (role == Use::Kernel) {
      fn(task);
      continue;
    }
    UnitId unit = events.unitOf(task);
    EventId wait = events.waitOf(unit);
    bool packed = isPacked(unit);
    if (!packed || role == Use::Operand)
      fn(unit);
    // Operands are held until the wait. A bucket's are packed, and its results unpacked by then.
    if (!packed || (role == Use::Result && needsUnpack(events.kindOf(unit))))
      if (events.positionOf(wait) != none)
        fn(wait);
  }
}

EventMemory::Live EventMemory::liveOf(Storage storage) const {
  Live live;
  auto touch = [&](EventId event) {
    uint32_t at = events.positionOf(event);
    if (live.first == none || at < events.positionOf(live.first))
      live.first = event;
    if (live.last == none || at > events.positionOf(live.last))
      live.last = event;
  };
  size_t numOwn = problem.storageBytes.size();
  if (storage < numOwn) {
    if (bucketAround(storage) != none)
      return live;
    live.bytes = problem.storageBytes[storage];
    live.pinned = problem.storagePinned[storage];
    forEachUse(storage, touch);
    return live.first == none ? Live() : live;
  }
  UnitId unit = (storage - numOwn) / 2;
  if (!problem.isCollective(unit) || !isPacked(unit))
    return live;
  touch(unit);
  touch(events.waitOf(unit));
  const Graph &graph = problem.graph;
  bool isResult = storage == resultOf(unit);
  for (TaskId member : events.members(unit)) {
    NodeId node = problem.nodeOf[member];
    live.bytes += isResult ? graph.resultBytes(node) : graph.operandBytes(node);
    if (!isResult || !landsInResult(unit))
      continue;
    for (ValueId value : graph.results(node))
      if (StorageId inside = problem.storageOf[value]; inside != none) {
        live.pinned = live.pinned || problem.storagePinned[inside];
        forEachUse(inside, touch);
      }
  }
  return live;
}

void EventMemory::account(const Live &live, bool add) {
  if (live.first == none)
    return;
  begin[live.first] += add ? live.bytes : -live.bytes;
  if (!live.pinned)
    end[live.last] += add ? live.bytes : -live.bytes;
}

/// A bucket is packed before it starts, which frees its operands before its result is there, and
/// waited for before it is unpacked, which frees what was packed before the results are there.
uint64_t EventMemory::pass(EventId event, uint64_t &carried) const {
  uint64_t before = carried, peak = carried + begin[event];
  carried = peak - end[event];
  UnitId unit = events.unitOfEvent(event);
  if (!(events.isWait(event) || events.isStart(event)) || !isPacked(unit))
    return peak;
  if (!events.isWait(event))
    return std::max(peak - storages[resultOf(unit)].bytes, carried);
  return std::max(before, peak - storages[packedOf(unit)].bytes);
}

void EventMemory::collect(EventId event) {
  bool isUnit = events.isWait(event) || events.isStart(event);
  auto add = [&](TaskId task) {
    NodeId node = problem.nodeOf[task];
    for (auto values : {problem.graph.operands(node), problem.graph.results(node)})
      for (ValueId value : values)
        if (StorageId storage = problem.storageOf[value]; storage != none) {
          affected.push_back(storage);
          if (UnitId unit = bucketAround(storage); unit != none)
            affected.push_back(resultOf(unit));
        }
  };
  if (!isUnit)
    return add(event);
  auto addUnit = [&](UnitId unit) {
    affected.push_back(packedOf(unit));
    affected.push_back(resultOf(unit));
    for (TaskId member : events.members(unit))
      add(member);
  };
  if (!events.isWait(event))
    return addUnit(event);
  for (UnitId unit : events.waitedWith(event))
    addUnit(unit);
}

uint64_t EventMemory::update(std::span<const EventId> changed, uint32_t first, uint32_t last) {
  affected.clear();
  auto include = [&](EventId event) {
    if (event == none)
      return;
    first = std::min(first, events.positionOf(event));
    last = std::max(last, events.positionOf(event));
  };
  for (EventId event : changed) {
    collect(event);
    include(event);
  }
  std::sort(affected.begin(), affected.end());
  affected.erase(std::unique(affected.begin(), affected.end()), affected.end());
  for (Storage storage : affected) {
    Live &live = storages[storage], now = liveOf(storage);
    if (live == now)
      continue;
    bool resized = live.bytes != now.bytes || live.pinned != now.pinned;
    if (resized && (live.pinned || now.pinned))
      last = events.size() - 1;
    if (resized || live.first != now.first)
      for (EventId event : {live.first, now.first})
        include(event);
    if (resized || live.last != now.last)
      for (EventId event : {live.last, now.last})
        include(event);
    account(live, false);
    account(now, true);
    live = now;
  }
  uint64_t peak = 0, carried = carry[first];
  for (uint32_t at = first; at <= last; ++at) {
    carry[at] = carried;
    peak = std::max(peak, pass(events.at(at), carried));
  }
  return peak;
}

uint64_t EventMemory::peakBytes() const {
  uint64_t peak = problem.constantBytes, carried = peak;
  for (uint32_t at = 0; at != events.size(); ++at)
    peak = std::max(peak, pass(events.at(at), carried));
  return peak;
}
