// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Simulate.h"

#include "passes/collectives/core/StorageEvents.h"

#include <algorithm>
#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

double Figures::totalExposedUs() const {
  return std::accumulate(exposedUs.begin(), exposedUs.end(), 0.0);
}
double Figures::totalCommUs() const { return std::accumulate(commUs.begin(), commUs.end(), 0.0); }

namespace {

/// The clocks of all streams.
class Clock {
public:
  Clock(const Graph &graph, const cost::CostModel &model, const SimulateOptions &options,
        Figures &figures)
      : graph(graph), model(model), options(options), figures(figures), free(graph.numGroups()) {}

  void kernel(Span::What what, bool isBucket, uint32_t id, double us) {
    record({what, isBucket, id, none, now, model.launchUs() + us});
    now += model.launchUs() + us;
    figures.computeUs += us;
    ++figures.launches;
  }

  /// Returns when the collective ends.
  double start(bool isBucket, uint32_t id, CollectiveKind kind, GroupId group, uint64_t bytes) {
    double us = model.collectiveUs(kind, graph.group(group).shape(), bytes);
    now += model.launchUs();
    ++figures.launches;
    double begin = std::max(now, free[group]);
    free[group] = begin + us;
    figures.commUs[static_cast<size_t>(kind)] += us;
    ++figures.counts[static_cast<size_t>(kind)];
    record({Span::What::Collective, isBucket, id, group, begin, us});
    return free[group];
  }

  /// `first` is the collective, or the first member of the bucket.
  void wait(bool isBucket, uint32_t id, NodeId first, double end) {
    ++figures.waits;
    if (end <= now)
      return;
    figures.exposedUs[static_cast<size_t>(graph.kindOf(first))] += end - now;
    if (options.exposedOf)
      (*options.exposedOf)[first] += end - now;
    record({Span::What::Stall, isBucket, id, none, now, end - now});
    now = end;
  }

  double finish() const {
    double step = now;
    for (double us : free)
      step = std::max(step, us);
    return step;
  }

private:
  void record(const Span &span) {
    if (options.timeline)
      options.timeline->push_back(span);
  }

  const Graph &graph;
  const cost::CostModel &model;
  const SimulateOptions &options;
  Figures &figures;
  std::vector<double> free;
  double now = 0;
};

void beginStorages(const Graph &graph, StorageEvents &events) {
  for (ValueId value = 0; value != graph.numValues(); ++value)
    events.setBytes(value, graph.bytesOf(value));
  for (ValueId value : graph.graphInputs()) {
    events.addInput(graph.rootOf(value));
    events.pin(graph.rootOf(value));
  }
}

void prepare(const Graph &graph, const SimulateOptions &options) {
  if (options.timeline)
    options.timeline->clear();
  if (options.exposedOf)
    options.exposedOf->assign(graph.numNodes(), 0);
}

} // namespace

Figures shardc::collectives::simulate(const Graph &graph, const cost::CostModel &model,
                                      const SimulateOptions &options) {
  Figures figures;
  prepare(graph, options);
  Clock clock(graph, model, options, figures);
  StorageEvents events(graph.numValues());
  beginStorages(graph, events);
  for (ValueId value : graph.graphOutputs())
    events.pin(graph.rootOf(value));
  std::vector<double> end(graph.numNodes());

  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    events.beginEvent();
    for (ValueId value : graph.results(node))
      events.allocate(graph.rootOf(value));
    for (ValueId value : graph.operands(node))
      events.use(graph.rootOf(value));
    for (ValueId value : graph.results(node))
      events.use(graph.rootOf(value));

    switch (graph.classOf(node)) {
    case NodeClass::Compute:
    case NodeClass::InPlace:
      clock.kernel(Span::What::Kernel, false, node, graph.durationUs(node));
      break;
    case NodeClass::Collective:
      end[node] =
          clock.start(false, node, graph.kindOf(node), graph.groupOf(node), graph.fullBytes(node));
      break;
    case NodeClass::Wait: {
      bool waited = false;
      for (ValueId value : graph.operands(node)) {
        NodeId collective = graph.pendingOf(value);
        if (collective == none)
          continue;
        for (ValueId operand : graph.operands(collective))
          events.hold(graph.rootOf(operand));
        if (!waited)
          clock.wait(false, collective, collective, end[collective]);
        waited = true;
      }
      // A wait for something complete still counts as a wait.
      figures.waits += !waited;
      break;
    }
    default:
      break;
    }
  }
  figures.stepUs = clock.finish();
  figures.peakBytes = events.peak(false);
  figures.peakHoldBytes = events.peak(true);
  return figures;
}

namespace {

/// Simulates a plan. Free nodes run when they are needed, and all they do is bring the storages of
/// `empty` nodes into being.
class PlanSimulator {
public:
  PlanSimulator(const Graph &graph, const Plan &plan, const cost::CostModel &model,
                const SimulateOptions &options)
      : graph(graph), plan(plan), model(model), options(options),
        clock(graph, model, options, figures), events(graph.numValues()),
        storageOf(graph.numValues()), pending(graph.numNodes()), done(graph.numNodes()),
        end(graph.numNodes()), bucketOf(graph.numNodes(), none), buckets(plan.buckets.size()) {
    beginStorages(graph, events);
    std::iota(storageOf.begin(), storageOf.end(), 0);
    for (BucketId bucket = 0; bucket != plan.buckets.size(); ++bucket)
      beginBucket(bucket);
    for (ValueId value : graph.graphOutputs())
      events.pin(root(value));
  }

  Figures run() {
    for (const PlanItem &item : plan.items)
      item.kind == PlanItem::Kind::Op ? runNode(item.id) : runBucket(item);
    for (ValueId value : graph.graphOutputs())
      need(value);
    figures.stepUs = clock.finish();
    figures.buckets = plan.buckets.size();
    figures.peakBytes = events.peak(false);
    figures.peakHoldBytes = events.peak(true);
    return figures;
  }

private:
  struct BucketState {
    uint32_t packed = none, out = none;
    uint64_t operandBytes = 0, resultBytes = 0, fullBytes = 0;
    double end = 0;
  };

  uint32_t root(ValueId value) const { return storageOf[graph.rootOf(value)]; }
  /// Whether the results of a bucket are used where the collective leaves them, in one storage.
  bool sharesResult(CollectiveKind kind) const { return !options.flat && !needsUnpack(kind); }

  void beginBucket(BucketId id) {
    BucketState &state = buckets[id];
    CollectiveKind kind = graph.kindOf(plan.buckets[id].front());
    for (NodeId member : plan.buckets[id]) {
      bucketOf[member] = id;
      state.operandBytes += graph.operandBytes(member);
      state.resultBytes += graph.resultBytes(member);
      state.fullBytes += graph.fullBytes(member);
    }
    if (options.flat)
      return;
    state.packed = addStorage(state.operandBytes);
    state.out = addStorage(state.resultBytes);
    if (sharesResult(kind))
      for (NodeId member : plan.buckets[id])
        for (ValueId value : graph.results(member))
          storageOf[graph.rootOf(value)] = state.out;
  }

  uint32_t addStorage(uint64_t bytes) {
    uint32_t storage = events.addStorage(bytes);
    storageOf.push_back(storage);
    return storage;
  }

  /// Runs the free nodes that a value comes from.
  void need(ValueId value) {
    stack.assign(1, value);
    while (!stack.empty()) {
      NodeId node = graph.producerOf(stack.back());
      if (node == none || done[node] ||
          !(graph.isFree(node) || graph.classOf(node) == NodeClass::Wait)) {
        stack.pop_back();
        continue;
      }
      size_t before = stack.size();
      for (std::span<const ValueId> values : {graph.operands(node), graph.scalarOperands(node)})
        for (ValueId operand : values)
          if (NodeId p = graph.producerOf(operand); p != none && !done[p])
            stack.push_back(operand);
      if (stack.size() != before)
        continue;
      stack.pop_back();
      done[node] = true;
      if (graph.classOf(node) == NodeClass::Empty) {
        events.beginEvent();
        for (ValueId result : graph.results(node)) {
          events.allocate(root(result));
          events.use(root(result));
        }
      }
    }
  }

  void needOperands(NodeId node) {
    for (ValueId value : graph.operands(node))
      need(value);
    for (ValueId value : graph.scalarOperands(node))
      need(value);
  }

  void useAll(std::span<const ValueId> values) {
    for (ValueId value : values)
      events.use(root(value));
  }
  void allocateAll(std::span<const ValueId> values) {
    for (ValueId value : values)
      events.allocate(root(value));
  }

  void runNode(NodeId node) {
    if (done[node])
      return;
    if (graph.isFree(node)) {
      for (ValueId value : graph.results(node))
        need(value);
      for (ValueId value : graph.scalarResults(node))
        need(value);
      done[node] = true;
      return;
    }
    needOperands(node);
    done[node] = true;
    if (graph.classOf(node) == NodeClass::Wait) {
      runWait(node);
      return;
    }
    events.beginEvent();
    if (graph.isCollective(node)) {
      end[node] =
          clock.start(false, node, graph.kindOf(node), graph.groupOf(node), graph.fullBytes(node));
      pending[node] = true;
      allocateAll(graph.results(node));
    } else {
      clock.kernel(Span::What::Kernel, false, node, graph.durationUs(node));
      if (graph.classOf(node) == NodeClass::Compute)
        allocateAll(graph.results(node));
    }
    useAll(graph.operands(node));
    useAll(graph.results(node));
  }

  void runWait(NodeId node) {
    events.beginEvent();
    useAll(graph.operands(node));
    for (ValueId value : graph.operands(node)) {
      NodeId collective = graph.pendingOf(value);
      if (collective == none || !pending[collective])
        continue;
      pending[collective] = false;
      clock.wait(false, collective, collective, end[collective]);
      for (ValueId operand : graph.operands(collective))
        events.hold(root(operand));
      return;
    }
  }

  void runBucket(const PlanItem &item) {
    BucketState &state = buckets[item.id];
    const std::vector<NodeId> &members = plan.buckets[item.id];
    CollectiveKind kind = graph.kindOf(members.front());
    switch (item.kind) {
    case PlanItem::Kind::Start:
      startBucket(item.id, kind);
      break;
    case PlanItem::Kind::Wait:
      events.beginEvent();
      clock.wait(true, item.id, members.front(), state.end);
      if (options.flat)
        for (NodeId member : members)
          useAll(graph.results(member));
      else
        events.use(state.out);
      holdOperands(item.id);
      break;
    case PlanItem::Kind::Unpack:
      if (options.flat || !needsUnpack(kind))
        break;
      clock.kernel(Span::What::Unpack, true, item.id,
                   model.memoryUs(2.0 * static_cast<double>(state.resultBytes)));
      events.beginEvent();
      events.use(state.out);
      for (NodeId member : members) {
        allocateAll(graph.results(member));
        useAll(graph.results(member));
      }
      break;
    default: // a pack runs with its start
      break;
    }
  }

  void startBucket(BucketId id, CollectiveKind kind) {
    BucketState &state = buckets[id];
    const std::vector<NodeId> &members = plan.buckets[id];
    for (NodeId member : members) {
      needOperands(member);
      done[member] = true;
    }
    if (!options.flat) {
      clock.kernel(Span::What::Pack, true, id,
                   model.memoryUs(2.0 * static_cast<double>(state.operandBytes)));
      events.beginEvent();
      events.allocate(state.packed);
      events.use(state.packed);
      for (NodeId member : members)
        useAll(graph.operands(member));
    }
    state.end = clock.start(true, id, kind, graph.groupOf(members.front()), state.fullBytes);
    events.beginEvent();
    if (options.flat) {
      for (NodeId member : members) {
        allocateAll(graph.results(member));
        useAll(graph.results(member));
        useAll(graph.operands(member));
      }
      return;
    }
    events.use(state.packed);
    events.allocate(state.out);
    events.use(state.out);
  }

  void holdOperands(BucketId id) {
    if (!options.flat) {
      events.hold(buckets[id].packed);
      return;
    }
    for (NodeId member : plan.buckets[id])
      for (ValueId operand : graph.operands(member))
        events.hold(root(operand));
  }

  const Graph &graph;
  const Plan &plan;
  const cost::CostModel &model;
  const SimulateOptions &options;
  Figures figures;
  Clock clock;
  StorageEvents events;
  /// By root value: the storage it lives in, which a bucket may replace.
  std::vector<uint32_t> storageOf;
  std::vector<bool> pending, done;
  std::vector<double> end;
  std::vector<BucketId> bucketOf;
  std::vector<BucketState> buckets;
  std::vector<ValueId> stack;
};

} // namespace

Figures shardc::collectives::simulate(const Graph &graph, const Plan &plan,
                                      const cost::CostModel &model,
                                      const SimulateOptions &options) {
  prepare(graph, options);
  return PlanSimulator(graph, plan, model, options).run();
}

Bounds shardc::collectives::computeBounds(const Graph &graph, const cost::CostModel &model) {
  Bounds bounds;
  double kernels = 0, launches = 0;
  std::vector<double> busy(graph.numGroups()), busyNoLatency(graph.numGroups());
  std::vector<double> ready(graph.numValues());
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    double us = 0;
    if (graph.isKernel(node)) {
      us = model.launchUs() + graph.durationUs(node);
      kernels += us;
    } else if (graph.isCollective(node)) {
      cost::Group shape = graph.group(graph.groupOf(node)).shape();
      us = model.collectiveUs(graph.kindOf(node), shape, graph.fullBytes(node));
      busy[graph.groupOf(node)] += us;
      busyNoLatency[graph.groupOf(node)] += us - model.latencyUs(graph.kindOf(node), shape);
      launches += model.launchUs();
      us += model.launchUs();
    }
    double begin = 0;
    for (std::span<const ValueId> values : {graph.operands(node), graph.scalarOperands(node)})
      for (ValueId value : values)
        begin = std::max(begin, ready[value]);
    for (std::span<const ValueId> values : {graph.results(node), graph.scalarResults(node)})
      for (ValueId value : values)
        ready[value] = begin + us;
    bounds.criticalPathUs = std::max(bounds.criticalPathUs, begin + us);
  }
  bounds.lowerBoundUs = kernels + launches;
  bounds.lowerBoundNoLatencyUs = kernels;
  for (double us : busy)
    bounds.lowerBoundUs = std::max(bounds.lowerBoundUs, us);
  for (double us : busyNoLatency)
    bounds.lowerBoundNoLatencyUs = std::max(bounds.lowerBoundNoLatencyUs, us);
  return bounds;
}
