// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Plan.h"

#include "support/JsonText.h"

#include <ostream>

using namespace shardc;
using namespace shardc::collectives;

Plan shardc::collectives::identityPlan(const Graph &graph) {
  Plan plan;
  plan.items.reserve(graph.numNodes());
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    plan.items.push_back({PlanItem::Kind::Op, node});
  return plan;
}

namespace {

class Orderer {
public:
  explicit Orderer(const Graph &graph)
      : graph(graph), done(graph.numNodes()), waitsOf(graph.numNodes()) {
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      if (NodeId collective = waitedBy(node); collective != none)
        waitsOf[collective].push_back(node);
  }

  void run(NodeId node) {
    stack.assign(1, node);
    while (!stack.empty()) {
      NodeId at = stack.back();
      size_t before = stack.size();
      if (!done[at])
        for (std::span<const ValueId> values : {graph.operands(at), graph.scalarOperands(at)})
          for (ValueId value : values)
            if (NodeId p = graph.producerOf(value); p != none && !done[p])
              stack.push_back(p);
      if (stack.size() != before)
        continue;
      stack.pop_back();
      if (done[at])
        continue;
      done[at] = true;
      order.push_back(at);
    }
  }

  void waitFor(NodeId collective) {
    for (NodeId wait : waitsOf[collective])
      run(wait);
  }

  std::vector<NodeId> finish() {
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      run(node);
    return std::move(order);
  }

  /// The collective that a node waits for, or `none`.
  NodeId waitedBy(NodeId node) const {
    if (graph.classOf(node) == NodeClass::Wait)
      for (ValueId value : graph.operands(node))
        if (graph.pendingOf(value) != none)
          return graph.pendingOf(value);
    return none;
  }

private:
  const Graph &graph;
  std::vector<bool> done;
  std::vector<std::vector<NodeId>> waitsOf;
  std::vector<NodeId> order, stack;
};

} // namespace

std::vector<NodeId> shardc::collectives::nodeOrder(const Graph &graph, const Plan &plan) {
  Orderer orderer(graph);
  for (const PlanItem &item : plan.items) {
    if (item.kind == PlanItem::Kind::Op) {
      if (NodeId collective = orderer.waitedBy(item.id); collective != none)
        orderer.waitFor(collective);
      else
        orderer.run(item.id);
    } else if (item.kind == PlanItem::Kind::Start) {
      for (NodeId member : plan.buckets[item.id])
        orderer.run(member);
    } else if (item.kind == PlanItem::Kind::Wait) {
      for (NodeId member : plan.buckets[item.id])
        orderer.waitFor(member);
    }
  }
  return orderer.finish();
}

/// "bucket" and as many underscores as it takes to start no node's name.
static std::string bucketPrefix(const Graph &graph) {
  std::string prefix = "bucket";
  for (NodeId node = 0; node != graph.numNodes();) {
    if (graph.nameOf(node).starts_with(prefix)) {
      prefix += '_';
      node = 0;
    } else {
      ++node;
    }
  }
  return prefix;
}

void shardc::collectives::writePlan(const Graph &graph, const Plan &plan, std::ostream &out) {
  std::string prefix = plan.buckets.empty() ? "" : bucketPrefix(graph);
  out << "[";
  const char *separator = "\n";
  for (const PlanItem &item : plan.items) {
    out << separator;
    separator = ",\n";
    std::string id = item.kind == PlanItem::Kind::Op ? jsonString(graph.nameOf(item.id))
                                                     : jsonString(prefix + std::to_string(item.id));
    switch (item.kind) {
    case PlanItem::Kind::Op:
      out << "{\"op\": " << id << "}";
      break;
    case PlanItem::Kind::Pack:
      out << "{\"pack\": " << id << "}";
      break;
    case PlanItem::Kind::Start: {
      const std::vector<NodeId> &members = plan.buckets[item.id];
      out << "{\"start\": " << id << ", \"kind\": \"" << shortNameOf(graph.kindOf(members.front()))
          << "\", \"members\": [";
      for (size_t i = 0; i != members.size(); ++i)
        out << (i ? ", " : "") << jsonString(graph.nameOf(members[i]));
      out << "]}";
      break;
    }
    case PlanItem::Kind::Wait:
      out << "{\"wait\": " << id << "}";
      break;
    case PlanItem::Kind::Unpack:
      out << "{\"unpack\": " << id << "}";
      break;
    }
  }
  out << "\n]\n";
}
