// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Loosen.h"

#include "passes/collectives/core/StorageIntervals.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// Kernels keep their places; slot s is what is issued right before kernel s, and the last slot is
/// behind all of them. The memory profile has an entry for each slot and each kernel, in which all
/// that its items touch counts as live at once: an upper bound, exact at kernels.
class Loosener {
public:
  Loosener(const Problem &problem, const Plan &plan, const LoosenOptions &options)
      : problem(problem), graph(problem.graph), plan(plan), options(options),
        limit(std::min<uint64_t>(options.memoryLimit, INT64_MAX)), unitOf(problem.numTasks(), none),
        unpacked(plan.buckets.size()), slotOf(problem.numTasks(), none),
        lastStart(graph.numGroups(), 0), required(problem.numTasks()) {}

  Plan run() {
    findUnits();
    placeFreeTasks();
    buildProfile();
    for (uint32_t id : unitsInOrder())
      startEarly(id);
    for (uint32_t id : unitsByWait(/*lastFirst=*/options.unpackInOrder)) {
      waitLate(id);
      firstWait = std::min(firstWait, units[id].wait);
    }
    return emitAll();
  }

private:
  /// A collective or a bucket.
  struct Unit {
    std::vector<TaskId> members;
    BucketId bucket = none;
    /// Slots; no wait: `none`.
    uint32_t start = none, wait = none;
    /// Places among all starts and all waits of the plan.
    uint32_t startRank = 0, waitRank = 0;
    /// The wait of the plan, where it is no bucket, and whether it is for others too.
    NodeId waitNode = none;
    bool sharesWait = false;
    /// The storages of packed operands and of results in a row.
    uint32_t packed = none, out = none;
    /// The slot in which a result is needed first.
    uint32_t need = 0;
    bool emittedStart = false, emittedWait = false;
  };

  static uint32_t entryOfSlot(uint32_t slot) { return 2 * slot; }
  static uint32_t entryOfKernel(uint32_t kernel) { return 2 * kernel + 1; }
  uint32_t lastSlot() const { return kernels.size(); }
  bool isPacked(const Unit &unit) const { return unit.bucket != none && !options.flat; }
  bool isUnpacked(const Unit &unit) const { return isPacked(unit) && needsUnpack(kindOf(unit)); }
  CollectiveKind kindOf(const Unit &unit) const {
    return graph.kindOf(problem.nodeOf[unit.members.front()]);
  }

  void findUnits();
  Unit &addUnit(std::vector<TaskId> members, uint32_t rank);
  void noteWait(uint32_t id, uint32_t rank);
  uint32_t slotBehind(const Dependence &d) const;
  void placeFreeTasks();
  void buildProfile();
  std::vector<uint32_t> unitsInOrder() const;
  std::vector<uint32_t> unitsByWait(bool lastFirst = false) const;
  uint32_t firstFull(const Unit &unit, bool atWait, uint32_t from);
  void startEarly(uint32_t id);
  void waitLate(uint32_t id);
  uint32_t neededIn(const Unit &unit) const;
  std::optional<uint32_t> earliestStart(const Unit &unit) const;

  //===--------------------------------------------------------------------===//
  // Memory
  //===--------------------------------------------------------------------===//

  /// Calls fn(storage) for all that a start, or a wait, touches; some may come twice.
  template <typename Fn> void forEachTouched(const Unit &unit, bool atWait, Fn fn) const {
    auto touch = [&](std::span<const ValueId> values) {
      for (ValueId value : values)
        if (uint32_t storage = storageOf(value); storage != none)
          fn(storage);
    };
    bool packed = isPacked(unit), unpacks = isUnpacked(unit);
    if (packed) {
      fn(unit.packed);
      fn(unit.out);
    }
    for (TaskId task : unit.members) {
      NodeId node = problem.nodeOf[task];
      if (!packed || !atWait)
        touch(graph.operands(node));
      if (!packed || (atWait && unpacks))
        touch(graph.results(node));
    }
  }
  uint32_t storageOf(ValueId value) const {
    StorageId storage = problem.storageOf[value];
    return storage == none || outOf.empty() || outOf[storage] == none ? storage : outOf[storage];
  }
  void moveTouches(const Unit &unit, bool atWait, uint32_t from, uint32_t to);
  /// Whether its items fit only in the order that the plan has them in: none of them moves.
  bool isFull(uint32_t slot) const { return memory->isAbove(entryOfSlot(slot), limit); }

  Plan emitAll();
  void emitAsPlanned(std::span<const uint32_t> starts, std::span<const uint32_t> waits);
  void require(const Dependence &d);
  void emitStart(uint32_t id);
  void emitWait(uint32_t id);
  void unpackBefore(const Unit &unit);
  bool waitsInSlot(const Unit &unit) const;
  template <typename Fn> void forEachDependence(const Unit &unit, Fn fn) const {
    for (TaskId member : unit.members)
      for (const Dependence &d : problem.before[member])
        fn(d);
  }

  const Problem &problem;
  const Graph &graph;
  const Plan &plan;
  const LoosenOptions &options;
  const int64_t limit;
  std::vector<NodeId> kernels;
  std::vector<Unit> units;
  std::vector<uint32_t> unitOf; // by task
  std::vector<bool> unpacked;   // by bucket: whether the plan says so
  /// By task: the index of a kernel, or the slot of a task without cost.
  std::vector<uint32_t> slotOf;
  std::optional<StorageIntervals> memory;
  /// By storage: that of the bucket whose result it is a part of, or `none`.
  std::vector<uint32_t> outOf;
  /// By group: the slot of the last start that was placed.
  std::vector<uint32_t> lastStart;
  uint32_t lastStartOfAll = 0;
  uint32_t firstWait = none; // the first slot with a wait that was placed
  /// The waits of the slot that is being emitted, and before how many of them buckets are unpacked.
  std::span<const uint32_t> waitsOfSlot;
  size_t numUnpacked = 0;
  std::vector<uint32_t> touched;
  std::vector<bool> required; // tasks without cost, of which all that they need has been emitted
  Plan result;
};

Loosener::Unit &Loosener::addUnit(std::vector<TaskId> members, uint32_t rank) {
  for (TaskId member : members)
    unitOf[member] = units.size();
  Unit &unit = units.emplace_back();
  unit.members = std::move(members);
  unit.start = kernels.size();
  unit.startRank = rank;
  return unit;
}

/// Of several waits the first counts.
void Loosener::noteWait(uint32_t id, uint32_t rank) {
  if (units[id].wait != none)
    return;
  units[id].wait = kernels.size();
  units[id].waitRank = rank;
}

void Loosener::findUnits() {
  std::vector<uint32_t> unitOfBucket(plan.buckets.size(), none);
  for (uint32_t rank = 0; rank != plan.items.size(); ++rank) {
    auto [kind, id] = plan.items[rank];
    switch (kind) {
    case PlanItem::Kind::Op:
      if (graph.isKernel(id)) {
        slotOf[problem.taskOf[id]] = kernels.size();
        kernels.push_back(id);
      } else if (graph.isCollective(id)) {
        addUnit({problem.taskOf[id]}, rank);
      } else if (graph.classOf(id) == NodeClass::Wait) {
        uint32_t first = none;
        for (ValueId value : graph.operands(id)) {
          NodeId collective = graph.pendingOf(value);
          uint32_t unit = collective == none ? none : unitOf[problem.taskOf[collective]];
          if (unit == none || unit == first || units[unit].bucket != none ||
              units[unit].wait != none)
            continue;
          noteWait(unit, rank);
          units[unit].waitNode = id;
          if (first == none)
            first = unit;
          else
            units[first].sharesWait = units[unit].sharesWait = true;
        }
      }
      break;
    case PlanItem::Kind::Start: {
      std::vector<TaskId> members;
      for (NodeId member : plan.buckets[id])
        members.push_back(problem.taskOf[member]);
      unitOfBucket[id] = units.size();
      addUnit(std::move(members), rank).bucket = id;
      break;
    }
    case PlanItem::Kind::Wait:
      noteWait(unitOfBucket[id], rank);
      break;
    case PlanItem::Kind::Unpack:
      unpacked[id] = true;
      break;
    case PlanItem::Kind::Pack: // goes with its start
      break;
    }
  }
}

/// The first slot in which what another task leaves can be used.
uint32_t Loosener::slotBehind(const Dependence &d) const {
  if (problem.isCollective(d.task))
    return d.complete ? units[unitOf[d.task]].wait : units[unitOf[d.task]].start;
  return problem.isKernel(d.task) ? slotOf[d.task] + 1 : slotOf[d.task];
}

/// Arithmetic that several tasks lead to: where the plan can do it first. It stays there.
void Loosener::placeFreeTasks() {
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    if (problem.isCollective(task) || problem.isKernel(task))
      continue;
    slotOf[task] = 0;
    for (const Dependence &d : problem.before[task])
      slotOf[task] = std::max(slotOf[task], slotBehind(d));
  }
  for (Unit &unit : units)
    unit.need = neededIn(unit);
}

uint32_t Loosener::neededIn(const Unit &unit) const {
  uint32_t slot = lastSlot();
  for (TaskId member : unit.members)
    for (const Dependence &d : problem.after[member])
      if (d.complete)
        slot = std::min(slot, problem.isCollective(d.task) ? units[unitOf[d.task]].start
                                                           : slotOf[d.task]);
  return slot;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Loosener::buildProfile() {
  memory.emplace(2 * kernels.size() + 1);
  for (StorageId storage = 0; storage != problem.storageBytes.size(); ++storage)
    memory->addStorage(problem.storageBytes[storage], problem.storagePinned[storage]);
  for (Unit &unit : units) {
    if (!isPacked(unit))
      continue;
    bool unpacks = needsUnpack(kindOf(unit)), pinned = false;
    uint64_t packedBytes = 0, resultBytes = 0;
    unit.packed = memory->numStorages();
    unit.out = unit.packed + 1;
    if (!unpacks)
      outOf.resize(problem.storageBytes.size(), none);
    for (TaskId task : unit.members) {
      NodeId node = problem.nodeOf[task];
      packedBytes += graph.operandBytes(node);
      resultBytes += graph.resultBytes(node);
      // The results of a reduce-scatter are used where they land.
      for (ValueId value : graph.results(node))
        if (StorageId storage = problem.storageOf[value]; !unpacks && storage != none) {
          outOf[storage] = unit.out;
          pinned = pinned || problem.storagePinned[storage];
        }
    }
    memory->addStorage(packedBytes, false);
    memory->addStorage(resultBytes, pinned);
  }
  for (uint32_t kernel = 0; kernel != kernels.size(); ++kernel)
    for (auto values : {graph.operands(kernels[kernel]), graph.results(kernels[kernel])})
      for (ValueId value : values)
        if (uint32_t storage = storageOf(value); storage != none)
          memory->touch(storage, entryOfKernel(kernel));
  for (const Unit &unit : units) {
    forEachTouched(unit, false, [&](uint32_t storage) {
      memory->touchMoving(storage, entryOfSlot(unit.start));
    });
    if (unit.wait != none)
      forEachTouched(unit, true, [&](uint32_t storage) {
        memory->touchMoving(storage, entryOfSlot(unit.wait));
      });
  }
  memory->build(problem.constantBytes);
}

void Loosener::moveTouches(const Unit &unit, bool atWait, uint32_t from, uint32_t to) {
  forEachTouched(unit, atWait, [&](uint32_t storage) { memory->move(storage, from, to); });
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

/// Those that are waited for, as the plan does.
std::vector<uint32_t> Loosener::unitsByWait(bool lastFirst) const {
  std::vector<uint32_t> order;
  for (uint32_t id = 0; id != units.size(); ++id)
    if (units[id].wait != none)
      order.push_back(id);
  std::ranges::sort(order, {}, [&](uint32_t id) { return std::pair(units[id].waitRank, id); });
  if (lastFirst)
    std::ranges::reverse(order);
  return order;
}

std::vector<uint32_t> Loosener::unitsInOrder() const {
  std::vector<uint32_t> order(units.size());
  std::iota(order.begin(), order.end(), 0); // as the plan starts them
  if (options.order == StartOrder::Need)
    std::ranges::sort(order, {}, [&](uint32_t id) { return std::pair(units[id].need, id); });
  return order;
}

/// Nothing where an operand comes from another collective.
std::optional<uint32_t> Loosener::earliestStart(const Unit &unit) const {
  uint32_t slot = 0;
  bool chained = false;
  forEachDependence(unit, [&](const Dependence &d) {
    chained |= d.complete && problem.isCollective(d.task);
    slot = std::max(slot, slotBehind(d));
  });
  return chained ? std::nullopt : std::optional(slot);
}

/// The first entry on the way of a start to the front, or of a wait to the end, without room for
/// what is live for longer by then, or `nowhere`.
uint32_t Loosener::firstFull(const Unit &unit, bool atWait, uint32_t from) {
  touched.clear();
  forEachTouched(unit, atWait, [&](uint32_t storage) { touched.push_back(storage); });
  return atWait ? memory->fullBehind(touched, from, limit)
                : memory->fullBefore(touched, from, limit);
}

void Loosener::startEarly(uint32_t id) {
  Unit &unit = units[id];
  uint32_t &last = lastStart[graph.groupOf(problem.nodeOf[unit.members.front()])];
  std::optional<uint32_t> slot = earliestStart(unit);
  if (slot && !isFull(unit.start)) {
    // Packing is time of the compute stream: it would hold up starts on other streams.
    if (options.order == StartOrder::Kept)
      slot = std::max(*slot, isPacked(unit) ? lastStartOfAll : last);
    uint32_t from = entryOfSlot(unit.start);
    if (uint32_t full = firstFull(unit, false, from); full != StorageIntervals::nowhere)
      slot = std::max(*slot, full / 2 + 1);
    if (*slot < unit.start) {
      moveTouches(unit, false, from, entryOfSlot(*slot));
      unit.start = *slot;
    }
  }
  last = std::max(last, unit.start);
  lastStartOfAll = std::max(lastStartOfAll, unit.start);
}

void Loosener::waitLate(uint32_t id) {
  Unit &unit = units[id];
  uint32_t slot = neededIn(unit);
  // Unpacking is time of the compute stream, which a stall may hide that comes behind it.
  if (options.unpackInOrder && isUnpacked(unit))
    slot = std::min(slot, firstWait);
  if (unit.sharesWait || slot <= unit.wait || isFull(unit.wait))
    return;
  uint32_t from = entryOfSlot(unit.wait);
  if (uint32_t full = firstFull(unit, true, from); full != StorageIntervals::nowhere)
    slot = std::min(slot, (full - 1) / 2);
  if (slot > unit.wait) {
    moveTouches(unit, true, from, entryOfSlot(slot));
    unit.wait = slot;
  }
}

//===----------------------------------------------------------------------===//
// The new plan
//===----------------------------------------------------------------------===//

/// Whether it has to wait for something in the slot of its start.
bool Loosener::waitsInSlot(const Unit &unit) const {
  bool any = false;
  forEachDependence(unit, [&](const Dependence &d) {
    any |= problem.isCollective(d.task) ? d.complete && units[unitOf[d.task]].wait == unit.start
                                        : !problem.isKernel(d.task) && slotOf[d.task] == unit.start;
  });
  return any;
}

/// Emits what another start needs of this slot.
void Loosener::require(const Dependence &d) {
  if (problem.isCollective(d.task)) {
    d.complete ? emitWait(unitOf[d.task]) : emitStart(unitOf[d.task]);
  } else if (!problem.isKernel(d.task) && !required[d.task]) {
    required[d.task] = true;
    for (const Dependence &before : problem.before[d.task])
      require(before);
  }
}

void Loosener::emitStart(uint32_t id) {
  Unit &unit = units[id];
  if (unit.emittedStart)
    return;
  unit.emittedStart = true;
  forEachDependence(unit, [&](const Dependence &d) { require(d); });
  if (unit.bucket == none) {
    result.items.push_back({PlanItem::Kind::Op, problem.nodeOf[unit.members.front()]});
    return;
  }
  result.items.push_back({PlanItem::Kind::Pack, unit.bucket});
  result.items.push_back({PlanItem::Kind::Start, unit.bucket});
}

/// Emits the buckets of the slot that the plan unpacks before it waits for this unit.
void Loosener::unpackBefore(const Unit &unit) {
  while (numUnpacked != waitsOfSlot.size() &&
         units[waitsOfSlot[numUnpacked]].waitRank < unit.waitRank)
    if (uint32_t other = waitsOfSlot[numUnpacked++]; isUnpacked(units[other]))
      emitWait(other);
}

void Loosener::emitWait(uint32_t id) {
  Unit &unit = units[id];
  if (unit.emittedWait)
    return;
  unit.emittedWait = true;
  if (options.unpackInOrder)
    unpackBefore(unit);
  emitStart(id);
  if (unit.bucket != none) {
    result.items.push_back({PlanItem::Kind::Wait, unit.bucket});
    if (unpacked[unit.bucket])
      result.items.push_back({PlanItem::Kind::Unpack, unit.bucket});
    return;
  }
  if (unit.sharesWait)
    for (ValueId value : graph.operands(unit.waitNode))
      if (NodeId collective = graph.pendingOf(value); collective != none) {
        Unit &other = units[unitOf[problem.taskOf[collective]]];
        emitStart(unitOf[problem.taskOf[collective]]);
        other.emittedWait |= other.waitNode == unit.waitNode;
      }
  result.items.push_back({PlanItem::Kind::Op, unit.waitNode});
}

void Loosener::emitAsPlanned(std::span<const uint32_t> starts, std::span<const uint32_t> waits) {
  std::vector<std::pair<uint32_t, uint32_t>> byRank;
  for (uint32_t id : starts)
    byRank.push_back({units[id].startRank, id});
  for (uint32_t id : waits)
    byRank.push_back({units[id].waitRank, id});
  std::ranges::sort(byRank);
  for (auto [rank, id] : byRank)
    rank == units[id].startRank ? emitStart(id) : emitWait(id);
}

Plan Loosener::emitAll() {
  std::vector<std::pair<uint32_t, uint32_t>> startsAt, waitsAt;
  for (uint32_t id : unitsInOrder())
    startsAt.push_back({units[id].start, id});
  for (uint32_t id : unitsByWait())
    waitsAt.push_back({units[id].wait, id});
  auto starts = Rows<uint32_t>::fromPairs(lastSlot() + 1, startsAt),
       waits = Rows<uint32_t>::fromPairs(lastSlot() + 1, waitsAt);
  result.buckets = plan.buckets;
  result.items.reserve(plan.items.size());
  for (uint32_t slot = 0; slot <= lastSlot(); ++slot) {
    waitsOfSlot = waits[slot];
    numUnpacked = 0;
    if (isFull(slot))
      emitAsPlanned(starts[slot], waits[slot]);
    // A stall would hold up the starts behind it.
    if (options.order == StartOrder::Need)
      for (uint32_t id : starts[slot])
        if (!waitsInSlot(units[id]))
          emitStart(id);
    for (uint32_t id : starts[slot])
      emitStart(id);
    for (uint32_t id : waits[slot])
      emitWait(id);
    if (slot != lastSlot())
      result.items.push_back({PlanItem::Kind::Op, kernels[slot]});
  }
  return std::move(result);
}

} // namespace

Plan shardc::collectives::loosen(const Problem &problem, const Plan &plan,
                                 const LoosenOptions &options) {
  return Loosener(problem, plan, options).run();
}
