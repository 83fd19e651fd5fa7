// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/CheckPlan.h"

#include <algorithm>
#include <set>

using namespace shardc;
using namespace shardc::collectives;

namespace {

class Checker {
public:
  Checker(const Graph &graph, const Plan &plan, const CheckOptions &options)
      : graph(graph), plan(plan), options(options), bucketOf(graph.numNodes(), none),
        position(graph.numNodes(), none), waitPosition(graph.numNodes(), none),
        done(graph.numNodes()), inFlight(graph.numNodes()), progress(plan.buckets.size()) {}

  std::string run() {
    for (BucketId id = 0; ok() && id != plan.buckets.size(); ++id)
      checkBucket(id);
    for (uint32_t i = 0; ok() && i != plan.items.size(); ++i)
      runItem(plan.items[i], i);
    if (ok())
      checkComplete();
    if (ok())
      checkOverwrites();
    return error;
  }

private:
  enum class Progress : uint8_t { None, Packed, Started, Waited, Unpacked };

  bool ok() const { return error.empty(); }
  void fail(const std::string &what) {
    if (ok())
      error = what;
  }
  std::string nameOf(BucketId bucket) const {
    return "bucket of " + graph.nameOf(plan.buckets[bucket].front());
  }

  bool sameGroup(NodeId a, NodeId b) const {
    const Group &x = graph.group(graph.groupOf(a)), &y = graph.group(graph.groupOf(b));
    if (options.groupsByName || x.ranks.empty() || y.ranks.empty())
      return x.name == y.name;
    return x.ranks == y.ranks;
  }

  void checkBucket(BucketId id) {
    const std::vector<NodeId> &members = plan.buckets[id];
    if (members.size() < 2)
      return fail("bucket " + std::to_string(id) + " has fewer than two members");
    std::set<uint32_t> types;
    for (NodeId node : members) {
      if (node >= graph.numNodes() || !graph.isCollective(node))
        return fail("bucket " + std::to_string(id) + " has a member that is no collective");
      if (bucketOf[node] != none)
        return fail(graph.nameOf(node) + ": is in two buckets, or twice in one");
      bucketOf[node] = id;
      CollectiveKind kind = graph.kindOf(node);
      if (kind != CollectiveKind::AllGather && kind != CollectiveKind::ReduceScatter &&
          kind != CollectiveKind::AllReduce)
        return fail(graph.nameOf(node) + ": this kind of collective has no buckets");
      if (kind != graph.kindOf(members[0]) || !sameGroup(node, members[0]) ||
          graph.reductionId(node) != graph.reductionId(members[0]))
        return fail(graph.nameOf(node) + ": differs in kind, group or reduction from " +
                    graph.nameOf(members[0]) + " in its bucket");
      if (graph.outBuffers(node))
        return fail(graph.nameOf(node) + ": writes a buffer of its own and cannot be in a bucket");
      for (ValueId value : graph.operands(node))
        types.insert(graph.elementTypeOf(value));
    }
    bool mayMix = options.mixedDtype && graph.kindOf(members[0]) == CollectiveKind::AllGather;
    if (types.size() > 1 && !mayMix)
      fail(nameOf(id) + ": members differ in element type");
  }

  void runItem(const PlanItem &item, uint32_t at) {
    if (item.kind != PlanItem::Kind::Op) {
      if (item.id >= plan.buckets.size())
        return fail("item " + std::to_string(at) + " names a bucket that does not exist");
      return runBucket(item, at);
    }
    if (item.id >= graph.numNodes())
      return fail("item " + std::to_string(at) + " names a node that does not exist");
    NodeId node = item.id;
    if (graph.isFree(node) || graph.classOf(node) == NodeClass::Wait) {
      if (done[node])
        return;
      needOperands(node);
      if (graph.classOf(node) == NodeClass::Wait)
        runWait(node, at);
      done[node] = true;
      return;
    }
    if (bucketOf[node] != none)
      return fail(graph.nameOf(node) + ": runs alone and in a bucket");
    if (position[node] != none)
      return fail(graph.nameOf(node) + ": runs twice");
    begin(node, at);
    done[node] = true;
    inFlight[node] = graph.isCollective(node);
  }

  void begin(NodeId node, uint32_t at) {
    needOperands(node);
    for (ValueId value : graph.operands(node))
      if (NodeId collective = graph.pendingOf(value); collective != none && inFlight[collective])
        fail(graph.nameOf(node) + ": reads the result of " + graph.nameOf(collective) +
             " while it is in flight");
    position[node] = at;
  }

  void runWait(NodeId node, uint32_t at) {
    for (ValueId value : graph.operands(node)) {
      NodeId collective = graph.pendingOf(value);
      if (collective == none || !inFlight[collective])
        continue;
      if (bucketOf[collective] != none)
        return fail(graph.nameOf(node) + ": waits for a member of a bucket; use the bucket's wait");
      complete(collective, at);
    }
  }

  void complete(NodeId collective, uint32_t at) {
    inFlight[collective] = false;
    waitPosition[collective] = at;
  }

  void runBucket(const PlanItem &item, uint32_t at) {
    Progress &state = progress[item.id];
    const std::vector<NodeId> &members = plan.buckets[item.id];
    bool unpacks = needsUnpack(graph.kindOf(members[0]));
    auto advance = [&](Progress from, Progress to, const char *what) {
      if (state != from)
        fail(nameOf(item.id) + ": " + what + " out of order or twice");
      state = to;
    };
    switch (item.kind) {
    case PlanItem::Kind::Pack:
      return advance(Progress::None, Progress::Packed, "packed");
    case PlanItem::Kind::Start:
      advance(Progress::Packed, Progress::Started, "started");
      // All operands first: a member that needs another one's result must not find it.
      for (NodeId member : members)
        begin(member, at);
      for (NodeId member : members)
        inFlight[member] = done[member] = true;
      return;
    case PlanItem::Kind::Wait:
      advance(Progress::Started, Progress::Waited, "waited for");
      for (NodeId member : members)
        unpacks ? void(waitPosition[member] = at) : complete(member, at);
      return;
    case PlanItem::Kind::Unpack:
      if (!unpacks && state == Progress::Waited)
        return;
      advance(Progress::Waited, Progress::Unpacked, "unpacked");
      for (NodeId member : members)
        inFlight[member] = false;
      return;
    default:
      return;
    }
  }

  /// Whether a node that has not run may run now, as soon as something needs it.
  bool runsOnDemand(NodeId node) const {
    if (graph.isFree(node))
      return true;
    if (graph.classOf(node) != NodeClass::Wait)
      return false;
    for (ValueId value : graph.operands(node))
      if (NodeId collective = graph.pendingOf(value);
          collective != none && (!done[collective] || inFlight[collective]))
        return false;
    return true;
  }

  void needOperands(NodeId node) {
    for (std::span<const ValueId> values : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : values)
        need(value, node);
  }

  void need(ValueId value, NodeId who) {
    stack.assign(1, value);
    while (ok() && !stack.empty()) {
      NodeId node = graph.producerOf(stack.back());
      if (node == none || done[node]) {
        stack.pop_back();
        continue;
      }
      size_t before = stack.size();
      if (graph.isFree(node) || graph.classOf(node) == NodeClass::Wait)
        for (std::span<const ValueId> values : {graph.operands(node), graph.scalarOperands(node)})
          for (ValueId operand : values)
            if (NodeId p = graph.producerOf(operand); p != none && !done[p])
              stack.push_back(operand);
      if (stack.size() != before)
        continue;
      if (!runsOnDemand(node))
        return fail((who == none ? "an output" : graph.nameOf(who)) + ": needs " +
                    graph.nameOf(node) + ", which has not run");
      done[node] = true;
      stack.pop_back();
    }
  }

  void checkComplete() {
    for (ValueId value : graph.graphOutputs())
      need(value, none);
    for (NodeId node = 0; ok() && node != graph.numNodes(); ++node) {
      if ((graph.isKernel(node) || graph.isCollective(node)) && position[node] == none)
        fail(graph.nameOf(node) + ": never runs");
      if (graph.classOf(node) == NodeClass::Wait)
        for (ValueId value : graph.operands(node))
          if (NodeId collective = graph.pendingOf(value);
              collective != none && inFlight[collective])
            fail(graph.nameOf(node) + ": its collective " + graph.nameOf(collective) +
                 " is never waited for");
    }
    for (BucketId id = 0; ok() && id != plan.buckets.size(); ++id)
      if (progress[id] != Progress::Unpacked &&
          (progress[id] != Progress::Waited || needsUnpack(graph.kindOf(plan.buckets[id][0]))))
        fail(nameOf(id) + ": is never unpacked");
  }

  /// For each storage that some node overwrites: walks those that touch it in graph order, and
  /// keeps the latest position before, and the last overwriting position.
  void checkOverwrites() {
    struct State {
      uint32_t latest = 0, latestWrite = 0;
      NodeId latestNode = none, writer = none;
    };
    std::vector<bool> written(graph.numValues());
    auto forEachWrite = [&](NodeId node, auto fn) {
      if (graph.classOf(node) == NodeClass::InPlace ||
          (graph.isCollective(node) && graph.outBuffers(node)))
        for (ValueId value : graph.results(node))
          fn(graph.rootOf(value));
    };
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      forEachWrite(node, [&](ValueId root) { written[root] = true; });
    std::vector<State> states(graph.numValues());
    auto note = [&](ValueId root, NodeId node, uint32_t at, bool writes, bool isWait) {
      if (at == none || !written[root])
        return;
      State &state = states[root];
      // A wait only holds back what comes after it.
      if (isWait)
        writes &= state.writer == node;
      else if (state.writer != none && state.writer != node && at < state.latestWrite)
        failOrder(state.writer, node);
      if (!isWait && writes && state.latestNode != none && state.latestNode != node &&
          at < state.latest)
        failOrder(state.latestNode, node);
      if (at >= state.latest || state.latestNode == none) {
        state.latest = at;
        state.latestNode = node;
      }
      if (writes && (at >= state.latestWrite || state.writer == none)) {
        state.latestWrite = at;
        state.writer = node;
      }
    };
    std::vector<ValueId> writes;
    for (NodeId node = 0; ok() && node != graph.numNodes(); ++node) {
      if (graph.classOf(node) == NodeClass::Wait) {
        for (ValueId value : graph.operands(node))
          if (NodeId collective = graph.pendingOf(value); collective != none)
            noteWait(collective, note);
        continue;
      }
      if (position[node] == none)
        continue;
      writes.clear();
      forEachWrite(node, [&](ValueId root) { writes.push_back(root); });
      for (std::span<const ValueId> values : {graph.operands(node), graph.results(node)})
        for (ValueId value : values) {
          ValueId root = graph.rootOf(value);
          note(root, node, position[node],
               std::find(writes.begin(), writes.end(), root) != writes.end(), false);
        }
    }
  }

  /// A collective reads its operands and writes its results until its wait.
  template <typename Fn> void noteWait(NodeId collective, Fn note) {
    for (ValueId value : graph.operands(collective))
      note(graph.rootOf(value), collective, waitPosition[collective], false, true);
    for (ValueId value : graph.results(collective))
      note(graph.rootOf(value), collective, waitPosition[collective],
           graph.outBuffers(collective) != 0, true);
  }

  void failOrder(NodeId first, NodeId second) {
    fail(graph.nameOf(first) + " and " + graph.nameOf(second) +
         " changed their order on a storage that one of them overwrites");
  }

  const Graph &graph;
  const Plan &plan;
  const CheckOptions &options;
  std::string error;
  std::vector<BucketId> bucketOf;
  std::vector<uint32_t> position, waitPosition;
  std::vector<bool> done, inFlight;
  std::vector<Progress> progress;
  std::vector<ValueId> stack;
};

} // namespace

std::string shardc::collectives::checkPlan(const Graph &graph, const Plan &plan,
                                           const CheckOptions &options) {
  return Checker(graph, plan, options).run();
}
