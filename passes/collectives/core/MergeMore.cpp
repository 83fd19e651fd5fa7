// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/MergeMore.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// How many times as long collectives take where merging is to help.
constexpr double slowNetwork = 2;

class Merger {
public:
  Merger(const Problem &problem, const BucketKeys &keys, const cost::CostModel &model,
         const Decision &decision, const MergeOptions &options)
      : problem(problem), graph(problem.graph), keys(keys), model(model), decision(decision),
        plan(decision.plan), options(options), unitOf(graph.numNodes(), none) {}

  std::optional<Decision> run() {
    findUnits();
    std::vector<double> shares; // of what could join, ascending
    for (const Unit &unit : units)
      if (unit.key != none)
        shares.push_back(unit.share);
    std::sort(shares.begin(), shares.end());
    shares.erase(std::unique(shares.begin(), shares.end()), shares.end());
    // The largest share with which the packing stays within what it may take.
    size_t fits = 0;
    for (size_t step = std::bit_floor(shares.size()); step != 0; step /= 2)
      if (fits + step <= shares.size() && group(shares[fits + step - 1]) <= options.packingUs)
        fits += step;
    if (fits == 0)
      return std::nullopt;
    group(shares[fits - 1]);
    if (std::ranges::all_of(units, [&](const Unit &unit) { return &units[unit.leader] == &unit; }))
      return std::nullopt;
    Decision made = emit();
    // With a list of caps a bucket's cap depends on how many there are before it.
    for (BucketId id = 0; id != made.plan.buckets.size(); ++id) {
      uint64_t bytes = 0;
      for (NodeId member : made.plan.buckets[id])
        bytes += graph.fullBytes(member);
      if (bytes > made.capBytes[id])
        return std::nullopt;
    }
    return made;
  }

private:
  /// A collective or a bucket of the plan.
  struct Unit {
    std::vector<NodeId> members;
    BucketId bucket = none;
    /// `none` where it can be in no bucket.
    uint32_t key = none;
    /// Places in the plan; `none` where it is never waited for.
    uint32_t start = 0, wait = none;
    /// Before this place a bucket with it must start: of what overwrites an operand, for example.
    uint32_t until = none;
    /// How long it takes without latency.
    double volumeUs = 0;
    /// On nominal times and on the slow network.
    struct Times {
      double endUs = 0;
      /// By when a bucket with it must end: when the compute stream comes to the wait. On the slow
      /// network it may end as late as before, and for some of the latency that is saved later.
      double dueUs = std::numeric_limits<double>::infinity();
      /// Whether its stream was busy when it was issued.
      bool queued = false;
    };
    std::array<Times, 2> times;
    double packUs = 0;
    /// What packing it takes over the latency that merging it saves.
    double share = 0;
    uint64_t bytes = 0;
    /// The first of the units that it is merged with, itself if it is the first.
    uint32_t leader = none;
  };
  /// What has been merged so far of a key.
  struct Open {
    uint32_t leader = none, until = none;
    double volumeUs = 0;
    std::array<double, 2> dueUs = {};
    /// In which of its stream's busy times it runs.
    std::array<uint32_t, 2> busy = {};
    uint64_t bytes = 0;
    bool merged = false;
  };

  double latencyOf(NodeId node) const {
    return model.latencyUs(graph.kindOf(node), graph.group(graph.groupOf(node)).shape());
  }

  void compute(double us) {
    for (Replayed &replay : replays)
      replay.now += us;
  }
  void addUnit(std::vector<NodeId> members, BucketId bucket, uint32_t at);
  void noteWait(uint32_t id, uint32_t at);
  void findUnits();
  void findOrder(std::span<const uint32_t> place);
  double group(double share);
  Decision emit() const;

  const Problem &problem;
  const Graph &graph;
  const BucketKeys &keys;
  const cost::CostModel &model;
  const Decision &decision;
  const Plan &plan;
  const MergeOptions &options;
  std::vector<Unit> units;      // as the plan starts them
  std::vector<uint32_t> unitOf; // by node
  /// The replays.
  struct Replayed {
    double network, now = 0;
    std::vector<double> freeUs; // by group
  };
  std::array<Replayed, 2> replays;
};

void Merger::addUnit(std::vector<NodeId> members, BucketId bucket, uint32_t at) {
  Unit unit;
  NodeId first = members.front();
  GroupId group = graph.groupOf(first);
  uint64_t operands = 0;
  for (NodeId member : members) {
    unitOf[member] = units.size();
    unit.bytes += graph.fullBytes(member);
    operands += graph.operandBytes(member);
    if (bucket == none)
      unit.packUs = packUs(problem, problem.taskOf[member], model) +
                    unpackUs(problem, problem.taskOf[member], model);
  }
  if (options.flat)
    unit.packUs = 0;
  else if (bucket != none)
    compute(model.launchUs() + model.memoryUs(2.0 * double(operands)));
  compute(model.launchUs());
  double latency = latencyOf(first);
  unit.key = latency > 0 ? keys.keyOf(problem.taskOf[first]) : none;
  unit.share = latency > 0 ? unit.packUs / latency : 0;
  double us = model.collectiveUs(graph.kindOf(first), graph.group(group).shape(), unit.bytes);
  unit.volumeUs = us - latency;
  for (int i : {0, 1}) {
    auto &[network, now, freeUs] = replays[i];
    unit.times[i].queued = freeUs[group] > now;
    unit.times[i].endUs = freeUs[group] = std::max(now, freeUs[group]) + network * us;
  }
  unit.members = std::move(members);
  unit.bucket = bucket;
  unit.start = at;
  units.push_back(std::move(unit));
}

void Merger::noteWait(uint32_t id, uint32_t at) {
  Unit &unit = units[id];
  if (unit.wait != none)
    return;
  unit.wait = at;
  for (int i : {0, 1}) {
    unit.times[i].dueUs = replays[i].now;
    replays[i].now = std::max(replays[i].now, unit.times[i].endUs);
  }
  unit.times[1].dueUs =
      replays[1].now + options.patience * slowNetwork * latencyOf(unit.members.front());
}

void Merger::findUnits() {
  for (int i : {0, 1})
    replays[i] = {i == 0 ? 1 : slowNetwork, 0, std::vector<double>(graph.numGroups())};
  std::vector<uint32_t> unitOfBucket(plan.buckets.size(), none);
  std::vector<uint32_t> place(graph.numNodes(), none); // of kernels and collectives
  for (uint32_t at = 0; at != plan.items.size(); ++at) {
    auto [kind, id] = plan.items[at];
    switch (kind) {
    case PlanItem::Kind::Op:
      place[id] = at;
      if (graph.isKernel(id)) {
        compute(model.launchUs() + graph.durationUs(id));
      } else if (graph.isCollective(id)) {
        addUnit({id}, none, at);
      } else if (graph.classOf(id) == NodeClass::Wait) {
        uint32_t first = none;
        for (ValueId value : graph.operands(id)) {
          NodeId collective = graph.pendingOf(value);
          uint32_t unit = collective == none ? none : unitOf[collective];
          if (unit == none || unit == first)
            continue;
          noteWait(unit, at);
          // What shares a wait with others stays as it is.
          if (first == none)
            first = unit;
          else
            units[first].key = units[unit].key = none;
        }
      }
      break;
    case PlanItem::Kind::Start:
      unitOfBucket[id] = units.size();
      for (NodeId member : plan.buckets[id])
        place[member] = at;
      addUnit(plan.buckets[id], id, at);
      break;
    case PlanItem::Kind::Wait:
      noteWait(unitOfBucket[id], at);
      break;
    case PlanItem::Kind::Unpack:
      if (uint64_t bytes = 0; !options.flat) {
        for (NodeId member : plan.buckets[id])
          bytes += graph.resultBytes(member);
        compute(model.launchUs() + model.memoryUs(2.0 * double(bytes)));
      }
      break;
    case PlanItem::Kind::Pack: // runs with its start
      break;
    }
  }
  findOrder(place);
}

/// What comes after the start of a collective, but not after its end, in the program and so in the
/// plan. Free nodes have no place: what they come after stays where it is.
void Merger::findOrder(std::span<const uint32_t> place) {
  for (Unit &unit : units)
    for (NodeId member : unit.members)
      for (const Dependence &d : problem.after[problem.taskOf[member]])
        if (NodeId node = problem.nodeOf[d.task]; !d.complete)
          unit.until = std::min(unit.until, graph.isFree(node) ? unit.start : place[node]);
}

/// Merges units whose packing takes at most this share of the latency. Returns what packing takes
/// in addition.
double Merger::group(double share) {
  std::vector<Open> open(keys.numKeys());
  std::vector<uint32_t> closed(keys.numKeys()); // buckets
  struct Stream {
    uint32_t busy = 0;  // how often it has been idle
    double savedUs = 0; // since then
  };
  std::vector<std::array<Stream, 2>> streams(graph.numGroups());
  double sum = 0;
  double copies = options.flat ? 0 : 2 * model.launchUs();
  for (uint32_t id = 0; id != units.size(); ++id) {
    Unit &unit = units[id];
    NodeId first = unit.members.front();
    std::array<Stream, 2> &stream = streams[graph.groupOf(first)];
    for (int i : {0, 1})
      if (!unit.times[i].queued)
        stream[i] = {stream[i].busy + 1, 0};
    unit.leader = id;
    if (unit.key == none || unit.share > share)
      continue;
    Open &into = open[unit.key];
    // What ran before the stream was last idle would run now; otherwise a latency is saved.
    std::array<double, 2> gainUs;
    bool inTime = true;
    for (int i : {0, 1}) {
      gainUs[i] =
          replays[i].network * (into.busy[i] == stream[i].busy ? latencyOf(first) : -into.volumeUs);
      inTime = inTime && unit.times[i].endUs - stream[i].savedUs - gainUs[i] <= into.dueUs[i];
    }
    uint64_t cap = options.buckets.caps.bytesAt(closed[unit.key]);
    if (into.leader != none && unit.start < into.until && inTime && into.bytes <= cap &&
        unit.bytes <= cap - into.bytes) {
      const Unit &leader = units[into.leader];
      if (!into.merged)
        sum += leader.packUs + (leader.bucket == none ? copies : 0);
      sum += unit.packUs;
      unit.leader = into.leader;
      into.merged = true;
      into.until = std::min({into.until, unit.until, unit.wait});
      into.volumeUs += unit.volumeUs;
      for (int i : {0, 1}) {
        into.dueUs[i] = std::min(into.dueUs[i], unit.times[i].dueUs);
        stream[i].savedUs += gainUs[i];
        into.busy[i] = stream[i].busy;
      }
      into.bytes += unit.bytes;
    } else {
      if (into.leader != none && (into.merged || units[into.leader].bucket != none))
        ++closed[unit.key];
      into = {id,
              std::min(unit.until, unit.wait),
              unit.volumeUs,
              {unit.times[0].dueUs, unit.times[1].dueUs},
              {stream[0].busy, stream[1].busy},
              unit.bytes,
              false};
    }
  }
  return sum;
}

Decision Merger::emit() const {
  // By unit that others are merged with: how many, and where the last of them starts.
  std::vector<uint32_t> last(units.size()), wait(units.size(), none), sizes(units.size());
  for (uint32_t id = 0; id != units.size(); ++id) {
    uint32_t leader = units[id].leader;
    last[leader] = id;
    wait[leader] = std::min(wait[leader], units[id].wait);
    ++sizes[leader];
  }
  std::vector<uint32_t> startAt(plan.items.size(), none), waitAt(plan.items.size(), none);
  std::vector<BucketId> idOf(units.size(), none);
  for (uint32_t id = 0; id != units.size(); ++id)
    if (units[id].leader == id) {
      startAt[units[last[id]].start] = id;
      if (wait[id] != none)
        waitAt[wait[id]] = id;
    }

  Decision made{{}, {}, {}, decision.alone};
  std::vector<std::vector<NodeId>> members(units.size());
  for (const Unit &unit : units)
    members[unit.leader].insert(members[unit.leader].end(), unit.members.begin(),
                                unit.members.end());
  std::vector<uint32_t> bucketsOfKey(keys.numKeys());
  auto start = [&](uint32_t id) {
    const Unit &unit = units[id];
    if (members[id].size() == 1) {
      made.plan.items.push_back({PlanItem::Kind::Op, unit.members.front()});
      return;
    }
    idOf[id] = made.plan.buckets.size();
    made.plan.buckets.push_back(members[id]);
    made.closed.push_back(sizes[id] == 1 ? decision.closed[unit.bucket] : CloseReason::Cost);
    uint32_t key = keys.keyOf(problem.taskOf[unit.members.front()]);
    made.capBytes.push_back(options.buckets.caps.bytesAt(bucketsOfKey[key]++));
    made.plan.items.push_back({PlanItem::Kind::Pack, idOf[id]});
    made.plan.items.push_back({PlanItem::Kind::Start, idOf[id]});
  };
  for (uint32_t at = 0; at != plan.items.size(); ++at) {
    auto [kind, id] = plan.items[at];
    if (startAt[at] != none) {
      start(startAt[at]);
    } else if (uint32_t unit = waitAt[at]; unit != none && idOf[unit] != none) {
      made.plan.items.push_back({PlanItem::Kind::Wait, idOf[unit]});
      if (needsUnpack(graph.kindOf(units[unit].members.front())))
        made.plan.items.push_back({PlanItem::Kind::Unpack, idOf[unit]});
    } else if (kind == PlanItem::Kind::Op && !graph.isCollective(id)) {
      // What is waited for with its bucket has no wait of its own.
      bool merged = graph.classOf(id) == NodeClass::Wait;
      if (merged) {
        merged = false;
        for (ValueId value : graph.operands(id))
          if (NodeId collective = graph.pendingOf(value); collective != none)
            merged = merged || members[units[unitOf[collective]].leader].size() > 1;
      }
      if (!merged)
        made.plan.items.push_back({kind, id});
    }
  }
  return made;
}

} // namespace

std::optional<Decision> shardc::collectives::mergeMore(const Problem &problem,
                                                       const BucketKeys &keys,
                                                       const cost::CostModel &model,
                                                       const Decision &decision,
                                                       const MergeOptions &options) {
  return Merger(problem, keys, model, decision, options).run();
}
