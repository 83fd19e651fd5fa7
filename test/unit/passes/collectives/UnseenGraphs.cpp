// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/passes/collectives/UnseenGraphs.h"

#include "passes/cost/core/SimV1.h"
#include "support/NearestNames.h"
#include "support/SplitMix.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

constexpr auto AG = CollectiveKind::AllGather, RS = CollectiveKind::ReduceScatter,
               AR = CollectiveKind::AllReduce, A2A = CollectiveKind::AllToAll;

class Draw {
public:
  explicit Draw(uint64_t seed) : state(seed) {}
  uint64_t bits() { return splitMix64(state); }
  uint32_t below(uint32_t n) { return bits() % n; }
  bool chance(uint32_t percent) { return below(100) < percent; }
  double uniform(double low, double high) {
    return low + (high - low) * (double(bits() >> 11) / double(uint64_t(1) << 53));
  }
  /// Equally likely at every magnitude.
  double magnitude(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  template <typename T> T of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

private:
  uint64_t state;
};

class Maker {
public:
  Maker(std::string_view family, uint32_t seed, size_t target)
      : draw(seed), target(target), data(group("data", draw.of<uint32_t>({8, 16, 64, 256}))),
        inner(group("inner", draw.of<uint32_t>({2, 4, 8}))),
        other(group("other", draw.of<uint32_t>({2, 8, 32}))),
        // A layer's kernels over its collectives.
        computeOverNetwork(draw.magnitude(0.6, 4)), latencyBound(draw.chance(50)),
        activation(uint64_t(draw.magnitude(1e6, 1e8))) {
    // Each family draws its own numbers, also where two names are equally long.
    for (char c : family)
      for (int i = 0; i != c % 7; ++i)
        draw.bits();
    size_t parameters = 1 + draw.below(latencyBound ? 12 : 5);
    for (size_t i = 0; i != parameters; ++i)
      weights.push_back(latencyBound ? uint64_t(draw.magnitude(1e3, 2e7))
                                     : uint64_t(draw.magnitude(2e7, 8e8)));
    ahead = draw.below(4);
    sequence = draw.chance(50);
  }

  Graph run(std::string_view family) {
    if (family == "pipeline")
      pipeline();
    else if (family == "random")
      random();
    else if (family.ends_with("backward") || family == "data-parallel")
      backward(family);
    else
      forward(family);
    std::vector<std::string> errors;
    if (!graph.finalize(errors))
      std::abort();
    return std::move(graph);
  }

private:
  GroupId group(const char *name, uint32_t size) { return graph.addGroup({name, size, {}}); }
  std::string name(const char *what) {
    return what + std::string("_") + std::to_string(graph.numNodes());
  }
  ValueId input(uint64_t bytes) {
    ValueId value = graph.addTensor(bytes);
    graph.addInput(value);
    return value;
  }
  /// Its time is decided when the layer ends: a share of what the layer's collectives take.
  ValueId kernel(std::vector<ValueId> operands, uint64_t bytes, double share = 1) {
    ValueId result = graph.addTensor(bytes);
    kernels.push_back(
        {graph.addNode(NodeClass::Compute, name("kernel"), operands, std::vector{result}),
         share * draw.magnitude(0.2, 3)});
    return result;
  }
  ValueId start(CollectiveKind kind, GroupId of, ValueId operand, uint64_t bytes) {
    ValueId result = graph.addTensor(bytes);
    graph.addCollective({kind, of, kind == RS || kind == AR ? "sum" : ""}, name("collective"),
                        std::vector{operand}, std::vector{result});
    networkUs += model.collectiveUs(kind, graph.group(of).shape(),
                                    kind == AG ? bytes : graph.bytesOf(operand));
    return result;
  }
  ValueId wait(ValueId value) {
    ValueId result = graph.addTensor(graph.bytesOf(value));
    graph.addNode(NodeClass::Wait, name("wait"), std::vector{value}, std::vector{result});
    return result;
  }
  ValueId gather(GroupId of, ValueId x) {
    return wait(start(AG, of, x, graph.bytesOf(x) * graph.group(of).size));
  }
  ValueId scatter(GroupId of, ValueId x) {
    return wait(start(RS, of, x, graph.bytesOf(x) / graph.group(of).size));
  }
  ValueId same(CollectiveKind kind, GroupId of, ValueId x) {
    return wait(start(kind, of, x, graph.bytesOf(x)));
  }
  bool done() const { return graph.numNodes() >= target; }

  /// Gives the kernels since the last layer their times. Layers differ.
  void endLayer() {
    double shares = 0;
    for (auto &[node, share] : kernels)
      shares += share;
    double us = networkUs * computeOverNetwork * draw.magnitude(0.7, 1.4);
    for (auto &[node, share] : kernels)
      graph.setDurationUs(node, us * share / shares);
    kernels.clear();
    networkUs = 0;
  }

  //===--------------------------------------------------------------------===//
  // Layers
  //===--------------------------------------------------------------------===//

  using Values = std::vector<ValueId>;

  Values startGathers() {
    Values started;
    for (uint64_t bytes : weights) {
      ValueId shard = input(std::max<uint64_t>(bytes / graph.group(data).size, 1));
      if (draw.chance(50))
        shard = kernel({shard}, graph.bytesOf(shard), 0.02); // a cast
      started.push_back(start(AG, data, shard, bytes));
    }
    return started;
  }
  /// Parameters that are not sharded.
  Values whole() {
    Values values;
    for (uint64_t bytes : weights)
      values.push_back(input(bytes));
    return values;
  }

  /// The parameters of the next layer; those of some layers behind it are gathered meanwhile.
  Values nextGathered(std::deque<Values> &started) {
    while (!done() && started.size() <= ahead)
      started.push_back(startGathers());
    Values parameters;
    for (ValueId value : started.front())
      parameters.push_back(wait(value));
    started.pop_front();
    return parameters;
  }

  /// A chain through all weights, with side branches.
  ValueId block(ValueId x, const Values &parameters) {
    for (ValueId weight : parameters) {
      ValueId y = kernel({x, weight}, activation);
      if (draw.chance(30))
        y = kernel({y, kernel({x}, activation, 0.3)}, activation, 0.3);
      x = y;
    }
    return x;
  }
  ValueId parallelBlock(ValueId x, const Values &parameters) {
    uint32_t ranks = graph.group(inner).size;
    size_t half = parameters.size() / 2;
    for (Values part : {Values(parameters.begin(), parameters.begin() + half),
                        Values(parameters.begin() + half, parameters.end())}) {
      ValueId in = x;
      if (sequence) {
        ValueId slice = kernel({x}, std::max<uint64_t>(activation / ranks, 1), 0.1);
        in = gather(inner, slice);
      }
      ValueId out = block(kernel({in}, activation), part);
      x = sequence ? kernel({scatter(inner, out)}, activation, 0.1)
                   : kernel({same(AR, inner, out), x}, activation, 0.1);
    }
    return x;
  }
  ValueId expertBlock(ValueId x, const Values &parameters) {
    ValueId routed = kernel({x}, activation, 0.1);
    ValueId there = same(A2A, other, routed);
    ValueId shared = kernel({x, parameters.front()}, activation, 0.5);
    ValueId back = same(A2A, other, block(there, parameters));
    return kernel({back, shared}, activation, 0.1);
  }

  void forward(std::string_view family) {
    ValueId x = input(activation);
    std::deque<Values> started;
    bool sharded = family != "tensor-parallel";
    while (!done() || !started.empty()) {
      Values parameters = sharded ? nextGathered(started) : whole();
      x = family == "experts"        ? expertBlock(x, parameters)
          : family == "fsdp-forward" ? block(x, parameters)
                                     : parallelBlock(x, parameters);
      if (draw.chance(60))
        graph.addOutput(x); // saved for the backward
      endLayer();
    }
    graph.addOutput(x);
  }

  /// Gradients of what the layer computes with are products of their own, reduced when they exist.
  void backward(std::string_view family) {
    ValueId g = input(activation);
    std::deque<Values> started;
    bool sharded = family == "fsdp-backward" || family == "two-dim-backward";
    bool parallel = family == "tensor-backward" || family == "two-dim-backward";
    while (!done() || !started.empty()) {
      Values parameters = sharded ? nextGathered(started) : whole();
      if (parallel && sequence)
        g = gather(inner,
                   kernel({g}, std::max<uint64_t>(activation / graph.group(inner).size, 1), 0.1));
      ValueId first = g;
      for (ValueId weight : parameters) {
        ValueId saved = input(activation);
        ValueId gradient = kernel({g, saved}, graph.bytesOf(weight));
        g = kernel({g, weight}, activation);
        if (sharded)
          gradient = scatter(data, gradient);
        else if (family == "data-parallel")
          gradient = same(AR, data, gradient);
        graph.addOutput(gradient);
      }
      if (parallel)
        g = sequence ? kernel({scatter(inner, g)}, activation, 0.1)
                     : kernel({same(AR, inner, g), first}, activation, 0.1);
      endLayer();
    }
    graph.addOutput(g);
  }

  void pipeline() {
    Values parameters = whole();
    Values sums;
    for (ValueId weight : parameters)
      sums.push_back(kernel({weight}, graph.bytesOf(weight), 0.01));
    bool split = draw.chance(50);
    while (!done()) {
      ValueId x = same(A2A, other, input(activation));
      Values saved;
      for (ValueId weight : parameters) {
        saved.push_back(x);
        x = kernel({x, weight}, activation, split ? draw.magnitude(0.3, 3) : 1);
      }
      ValueId g = same(A2A, other, x);
      for (size_t i = parameters.size(); i-- != 0;) {
        ValueId dw = kernel({g, saved[i]}, graph.bytesOf(parameters[i]));
        ValueId sum = graph.addTensor(graph.bytesOf(sums[i]));
        kernels.push_back(
            {graph.addNode(NodeClass::InPlace, name("add"), Values{sums[i], dw}, std::vector{sum}),
             0.1});
        sums[i] = sum;
        g = kernel({g, parameters[i]}, activation);
      }
      graph.addOutput(same(A2A, other, g));
      endLayer();
    }
    for (ValueId sum : sums)
      graph.addOutput(same(AR, data, sum));
    endLayer();
  }

  void random() {
    Values values;
    for (int i = 0; i != 8; ++i)
      values.push_back(input(uint64_t(draw.magnitude(1e3, 1e8))));
    auto any = [&] {
      size_t back = std::min<size_t>(values.size(), draw.chance(25) ? values.size() : 12);
      return values[values.size() - 1 - draw.below(back)];
    };
    std::deque<ValueId> flying;
    uint32_t share = 5 + draw.below(25), depth = 1 + draw.below(20);
    for (int count = 0; !done(); ++count) {
      if (draw.chance(share)) {
        GroupId of = draw.of({data, inner, other});
        CollectiveKind kind = draw.of({AG, RS, AR, A2A});
        ValueId operand = any();
        uint32_t ranks = graph.group(of).size;
        uint64_t bytes = graph.bytesOf(operand);
        if (kind == AG && bytes > 1e7)
          kind = A2A;
        flying.push_back(start(kind, of, operand,
                               kind == AG   ? bytes * ranks
                               : kind == RS ? std::max<uint64_t>(bytes / ranks, 1)
                                            : bytes));
      } else {
        Values operands = {any()};
        while (draw.chance(40))
          operands.push_back(any());
        values.push_back(kernel(operands, uint64_t(draw.magnitude(1e3, 1e8))));
        if (draw.chance(3))
          graph.addOutput(values.back());
      }
      while (flying.size() > depth) {
        values.push_back(wait(flying.front()));
        flying.pop_front();
      }
      if (count % 50 == 49)
        endLayer();
    }
    for (ValueId value : flying)
      graph.addOutput(wait(value));
    graph.addOutput(values.back());
    endLayer();
  }

  Graph graph;
  Draw draw;
  size_t target;
  cost::SimV1 model;
  GroupId data, inner, other;
  double computeOverNetwork;
  bool latencyBound;
  uint64_t activation;
  std::vector<uint64_t> weights;
  size_t ahead = 0;
  bool sequence = false;
  std::vector<std::pair<NodeId, double>> kernels;
  double networkUs = 0;
};

} // namespace

std::string shardc::collectives::test::describeUnknownFamily(std::string_view family) {
  std::vector<NameCandidate> families;
  for (const char *name : unseenFamilies) {
    if (name == family)
      return "";
    families.push_back({name, name});
  }
  return "there is no family '" + std::string(family) + "'; the nearest are " +
         listNames(nearestNames(family, families, 3));
}

Graph shardc::collectives::test::unseenGraph(std::string_view family, uint32_t seed, size_t nodes) {
  return Maker(family, seed, nodes).run(family);
}
