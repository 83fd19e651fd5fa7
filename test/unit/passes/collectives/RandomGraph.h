// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random valid graphs of every kind of node, from a seed.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_RANDOMGRAPH_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_RANDOMGRAPH_H

#include "test/unit/passes/collectives/Builder.h"

#include <random>
#include <set>

namespace shardc::collectives::test {

struct RandomShape {
  unsigned nodes = 40;
  unsigned groups = 3;
  /// Overwrites, output buffers, scalars and values returned in flight.
  bool sideEffects = true;
};

class RandomGraph {
public:
  RandomGraph(uint32_t seed, const RandomShape &shape) : random(seed), shape(shape) {}

  Graph make() {
    for (unsigned i = 0; i != shape.groups; ++i)
      b.group("g" + std::to_string(i), 2u << i);
    for (int i = 0; i != 4; ++i)
      values.push_back(b.input(bytes(), pick(2)));
    for (unsigned i = 0; i != shape.nodes; ++i)
      addNode("n" + std::to_string(i));
    for (auto &[name, value] : flying) {
      if (shape.sideEffects && pick(8) == 0)
        b.output(value);
      else
        values.push_back(b.wait(name + ".wait", value));
    }
    for (int i = 0; i != 5; ++i)
      b.output(content());
    return b.finish();
  }

private:
  uint32_t pick(uint32_t n) { return random() % n; }
  uint64_t bytes() { return pick(8) == 0 ? 0 : uint64_t(1) << (8 + pick(14)); }
  double us() { return pick(10) == 0 ? 0 : 1 + pick(200); }
  /// Recent ones more often, so that chains are long.
  ValueId value() {
    size_t back = std::min<size_t>(values.size(), pick(3) == 0 ? values.size() : 6);
    return values[values.size() - 1 - pick(back)];
  }
  /// A value that has been computed.
  ValueId content() {
    while (true)
      if (ValueId v = value(); !allocated.count(v))
        return v;
  }
  std::vector<ValueId> someValues() {
    std::vector<ValueId> list = {value()};
    while (pick(2) == 0)
      list.push_back(value());
    return list;
  }

  void addNode(const std::string &name) {
    uint32_t kind = pick(20);
    if (kind < 9) {
      values.push_back(b.kernel(name, someValues(), us(), bytes(), pick(2)));
    } else if (kind < 11) {
      ValueId of = value();
      values.push_back(b.view(name, of));
      if (allocated.count(of))
        allocated.insert(values.back());
    } else if (kind < 15) {
      startCollective(name);
    } else if (kind < 17 && !flying.empty()) {
      size_t at = pick(flying.size());
      values.push_back(b.wait(flying[at].first + ".wait", flying[at].second));
      flying.erase(flying.begin() + at);
    } else if (kind == 17 && shape.sideEffects) {
      values.push_back(b.inPlace(name, someValues(), us()));
    } else if (kind == 18 && shape.sideEffects) {
      ValueId scalar = b.graph.addScalar(), result = b.graph.addTensor(bytes());
      b.graph.addNode(NodeClass::Scalar, name, std::vector{content(), content()},
                      std::vector{scalar});
      b.graph.addNode(NodeClass::Empty, name + ".empty", std::vector{scalar}, std::vector{result});
      values.push_back(result);
      allocated.insert(result);
    } else {
      values.push_back(b.kernel(name, someValues(), us(), bytes(), pick(2)));
    }
  }

  void startCollective(const std::string &name) {
    auto kind = static_cast<CollectiveKind>(pick(4));
    bool reduces = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
    GroupId group = pick(shape.groups);
    ValueId operand = value();
    if (shape.sideEffects && pick(10) == 0) {
      ValueId buffer = value();
      if (b.graph.bytesOf(buffer) && buffer != operand) {
        ValueId result = b.graph.addTensor(b.graph.bytesOf(buffer));
        b.graph.addCollective({kind, group, reduces ? "sum" : "", 1}, name,
                              std::vector{operand, buffer}, std::vector{result});
        flying.push_back({name, result});
        return;
      }
    }
    uint64_t size = b.graph.bytesOf(operand);
    if (kind == CollectiveKind::AllGather)
      size *= 2u << group;
    if (kind == CollectiveKind::ReduceScatter)
      size /= 2u << group;
    flying.push_back({name, b.start(name, kind, group, operand, size, reduces ? "sum" : "")});
  }

  std::mt19937 random;
  RandomShape shape;
  Builder b;
  std::vector<ValueId> values;
  /// Allocations that nothing may have touched, and their views.
  std::set<ValueId> allocated;
  std::vector<std::pair<std::string, ValueId>> flying;
};

inline Graph randomGraph(uint32_t seed, const RandomShape &shape = {}) {
  return RandomGraph(seed, shape).make();
}

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_RANDOMGRAPH_H
