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
        done(graph.numNodes()), assumed(graph.numNodes()), inFlight(graph.numNodes()),
        members(plan.buckets.size()), progress(plan.buckets.size()),
        disordered(plan.buckets.size()) {}

  std::vector<PlanMistake> run() {
    for (BucketId id = 0; id != plan.buckets.size(); ++id)
      checkBucket(id);
    for (uint32_t i = 0; i != plan.items.size(); ++i)
      runItem(plan.items[i], i);
    checkComplete();
    checkOverwrites();
    return std::move(mistakes);
  }

private:
  enum class Progress : uint8_t { None, Packed, Started, Waited, Unpacked };

  void fail(const std::string &what, uint32_t item = none, BucketId bucket = none) {
    mistakes.push_back({what, item, bucket});
  }
  /// What has no member that could run is not checked any further.
  std::string nameOf(BucketId bucket) const {
    return "bucket of " + graph.nameOf(members[bucket].front());
  }

  bool sameGroup(NodeId a, NodeId b) const {
    const Group &x = graph.group(graph.groupOf(a)), &y = graph.group(graph.groupOf(b));
    if (options.groupsByName || x.ranks.empty() || y.ranks.empty())
      return x.name == y.name;
    return x.ranks == y.ranks;
  }

  /// Keeps the members that are collectives in no other bucket.
  void checkBucket(BucketId id) {
    for (NodeId node : plan.buckets[id])
      if (node < graph.numNodes() && graph.isCollective(node) && bucketOf[node] == none) {
        bucketOf[node] = id;
        members[id].push_back(node);
      }
    if (std::string wrong = mistakeIn(id); !wrong.empty())
      fail(wrong, none, id);
  }

  std::string mistakeIn(BucketId id) const {
    const std::vector<NodeId> &nodes = plan.buckets[id];
    if (nodes.size() < 2)
      return members[id].empty() ? "a bucket has no collective"
                                 : nameOf(id) + ": has fewer than two members";
    std::set<NodeId> seen;
    std::set<uint32_t> types;
    for (NodeId node : nodes) {
      if (node >= graph.numNodes())
        return "a bucket has a member that is no node";
      if (!graph.isCollective(node))
        return graph.nameOf(node) + ": is no collective and cannot be in a bucket";
      if (bucketOf[node] != id || !seen.insert(node).second)
        return graph.nameOf(node) + ": is in two buckets, or twice in one";
      CollectiveKind kind = graph.kindOf(node);
      if (kind != CollectiveKind::AllGather && kind != CollectiveKind::ReduceScatter &&
          kind != CollectiveKind::AllReduce)
        return graph.nameOf(node) + ": this kind of collective has no buckets";
      if (kind != graph.kindOf(nodes[0]) || !sameGroup(node, nodes[0]) ||
          graph.reductionId(node) != graph.reductionId(nodes[0]))
        return graph.nameOf(node) + ": differs in kind, group or reduction from " +
               graph.nameOf(nodes[0]) + " in its bucket";
      if (graph.outBuffers(node))
        return graph.nameOf(node) + ": writes a buffer of its own and cannot be in a bucket";
      for (ValueId value : graph.operands(node))
        types.insert(graph.elementTypeOf(value));
    }
    bool mayMix = options.mixedDtype && graph.kindOf(nodes[0]) == CollectiveKind::AllGather;
    return types.size() > 1 && !mayMix ? nameOf(id) + ": members differ in element type" : "";
  }

  void runItem(const PlanItem &item, uint32_t at) {
    if (item.kind != PlanItem::Kind::Op) {
      if (item.id >= plan.buckets.size())
        return fail("item " + std::to_string(at) + " names a bucket that does not exist", at);
      if (!members[item.id].empty())
        runBucket(item, at);
      return;
    }
    if (item.id >= graph.numNodes())
      return fail("item " + std::to_string(at) + " names a node that does not exist", at);
    NodeId node = item.id;
    if (graph.isFree(node) || graph.classOf(node) == NodeClass::Wait) {
      if (done[node] && !isHeldUp(node))
        return;
      needOperands(node, at);
      if (graph.classOf(node) == NodeClass::Wait)
        runWait(node, at);
      done[node] = true;
      return;
    }
    if (bucketOf[node] != none)
      return fail(graph.nameOf(node) + ": runs alone and in a bucket", at);
    if (position[node] != none)
      return fail(graph.nameOf(node) + ": runs twice", at);
    begin(node, at);
    done[node] = true;
    // What has been waited for too early is not said to be left in flight as well.
    inFlight[node] = graph.isCollective(node) && !assumed[node];
  }

  void begin(NodeId node, uint32_t at) {
    needOperands(node, at);
    for (ValueId value : graph.operands(node))
      if (NodeId collective = graph.pendingOf(value); collective != none && inFlight[collective]) {
        fail(graph.nameOf(node) + ": reads the result of " + graph.nameOf(collective) +
                 " while it is in flight",
             at);
        break;
      }
    position[node] = at;
  }

  void runWait(NodeId node, uint32_t at) {
    for (ValueId value : graph.operands(node)) {
      NodeId collective = graph.pendingOf(value);
      if (collective == none || !inFlight[collective])
        continue;
      if (bucketOf[collective] != none)
        return fail(graph.nameOf(node) + ": waits for a member of a bucket; use the bucket's wait",
                    at);
      complete(collective, at);
    }
  }

  void complete(NodeId collective, uint32_t at) {
    inFlight[collective] = false;
    waitPosition[collective] = at;
  }

  void runBucket(const PlanItem &item, uint32_t at) {
    Progress &state = progress[item.id];
    const std::vector<NodeId> &bucket = members[item.id];
    bool unpacks = needsUnpack(graph.kindOf(bucket[0]));
    auto advance = [&](Progress from, Progress to, const char *what) {
      if (state != from && !disordered[item.id]) {
        disordered[item.id] = true;
        fail(nameOf(item.id) + ": " + what + " out of order or twice", at, item.id);
      }
      state = to;
    };
    switch (item.kind) {
    case PlanItem::Kind::Pack:
      return advance(Progress::None, Progress::Packed, "packed");
    case PlanItem::Kind::Start:
      advance(Progress::Packed, Progress::Started, "started");
      // All operands first: a member that needs another one's result must not find it.
      for (NodeId member : bucket)
        begin(member, at);
      for (NodeId member : bucket)
        inFlight[member] = !assumed[member], done[member] = true;
      return;
    case PlanItem::Kind::Wait:
      advance(Progress::Started, Progress::Waited, "waited for");
      for (NodeId member : bucket)
        unpacks ? void(waitPosition[member] = at) : complete(member, at);
      return;
    case PlanItem::Kind::Unpack:
      if (!unpacks && state == Progress::Waited)
        return;
      advance(Progress::Waited, Progress::Unpacked, "unpacked");
      for (NodeId member : bucket)
        inFlight[member] = false;
      return;
    default:
      return;
    }
  }

  /// Whether a node waits for something that is in flight.
  bool isHeldUp(NodeId node) const {
    if (graph.classOf(node) == NodeClass::Wait)
      for (ValueId value : graph.operands(node))
        if (NodeId collective = graph.pendingOf(value); collective != none && inFlight[collective])
          return true;
    return false;
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

  void needOperands(NodeId node, uint32_t at) {
    for (std::span<const ValueId> values : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : values)
        need(value, node, at);
  }

  /// What is missing is reported once, and taken to have run from there on.
  void need(ValueId value, NodeId who, uint32_t at) {
    stack.assign(1, value);
    while (!stack.empty()) {
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
      if (!runsOnDemand(node)) {
        fail((who == none ? "an output" : graph.nameOf(who)) + ": needs " + graph.nameOf(node) +
                 ", which has not run",
             at);
        assumed[node] = true;
      }
      done[node] = true;
      stack.pop_back();
    }
  }

  void checkComplete() {
    for (ValueId value : graph.graphOutputs())
      need(value, none, none);
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
      if ((graph.isKernel(node) || graph.isCollective(node)) && position[node] == none &&
          !assumed[node])
        fail(graph.nameOf(node) + ": never runs");
      if (graph.classOf(node) == NodeClass::Wait && !assumed[node])
        for (ValueId value : graph.operands(node))
          if (NodeId collective = graph.pendingOf(value);
              collective != none && inFlight[collective])
            failInFlight(node, collective);
    }
    for (BucketId id = 0; id != plan.buckets.size(); ++id)
      if (!members[id].empty() && !disordered[id] && progress[id] != Progress::Unpacked &&
          (progress[id] != Progress::Waited || needsUnpack(graph.kindOf(members[id][0]))))
        fail(nameOf(id) + ": is never unpacked", none, id);
  }

  /// Once for each collective, and once for a bucket.
  void failInFlight(NodeId wait, NodeId collective) {
    inFlight[collective] = false;
    BucketId bucket = bucketOf[collective];
    if (bucket != none && disordered[bucket])
      return;
    if (bucket != none)
      disordered[bucket] = true;
    fail(graph.nameOf(wait) + ": its collective " + graph.nameOf(collective) +
             " is never waited for",
         position[collective], bucket);
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
        failOrder(root, state.writer, node);
      if (!isWait && writes && state.latestNode != none && state.latestNode != node &&
          at < state.latest)
        failOrder(root, state.latestNode, node);
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
    for (NodeId node = 0; node != graph.numNodes(); ++node) {
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

  /// Once for each storage: what comes after is in the wrong place as well.
  void failOrder(ValueId root, NodeId first, NodeId second) {
    if (reordered.insert(root).second)
      fail(graph.nameOf(first) + " and " + graph.nameOf(second) +
               " changed their order on a storage that one of them overwrites",
           position[second]);
  }

  const Graph &graph;
  const Plan &plan;
  const CheckOptions &options;
  std::vector<PlanMistake> mistakes;
  std::vector<BucketId> bucketOf;
  std::vector<uint32_t> position, waitPosition;
  /// `assumed`: has not run where it was needed, which has been reported.
  std::vector<bool> done, assumed, inFlight;
  /// Of each bucket, those that can run.
  std::vector<std::vector<NodeId>> members;
  std::vector<Progress> progress;
  /// A mistake in the order of a bucket's parts has been reported.
  std::vector<bool> disordered;
  std::set<ValueId> reordered;
  std::vector<ValueId> stack;
};

} // namespace

std::vector<PlanMistake> shardc::collectives::planMistakes(const Graph &graph, const Plan &plan,
                                                           const CheckOptions &options) {
  return Checker(graph, plan, options).run();
}

std::string shardc::collectives::checkPlan(const Graph &graph, const Plan &plan,
                                           const CheckOptions &options) {
  std::vector<PlanMistake> mistakes = planMistakes(graph, plan, options);
  return mistakes.empty() ? "" : mistakes.front().text;
}
