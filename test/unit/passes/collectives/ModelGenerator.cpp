// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/passes/collectives/ModelGenerator.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

constexpr uint32_t bf16 = 13, f32 = 7;
constexpr double flopsPerUs = 989.5e6, bytesPerUs = 3.35e6;

class Generator {
public:
  explicit Generator(const ModelShape &shape) : s(shape) {
    dpGroup = graph.addGroup({"dp", s.dp, {}});
    tpGroup = graph.addGroup({"tp", s.tp, {}});
    epGroup = graph.addGroup({"ep", s.ep, {}});
    local = s.tokens / s.tp;
  }

  Graph run() {
    s.part == Part::Forward ? forward() : backward();
    std::vector<std::string> errors;
    if (!graph.finalize(errors))
      std::abort();
    return std::move(graph);
  }

private:
  ValueId input(uint64_t elements, uint32_t type) {
    ValueId value = graph.addTensor(elements * (type == f32 ? 4 : 2), type);
    graph.addInput(value);
    return value;
  }
  std::string name(const char *what) {
    return what + std::string("_") + std::to_string(graph.numNodes());
  }
  uint64_t elements(ValueId value) {
    return graph.bytesOf(value) / (graph.elementTypeOf(value) == f32 ? 4 : 2);
  }

  ValueId kernel(const char *what, std::vector<ValueId> operands, uint64_t count, uint32_t type,
                 double flops = 0) {
    ValueId result = graph.addTensor(count * (type == f32 ? 4 : 2), type);
    double bytes = graph.bytesOf(result);
    for (ValueId value : operands)
      bytes += graph.bytesOf(value);
    graph.addNode(NodeClass::Compute, name(what), operands, std::vector{result},
                  std::max(flops / flopsPerUs, bytes / bytesPerUs));
    return result;
  }
  ValueId view(ValueId value) {
    ValueId result = graph.addTensor(graph.bytesOf(value), graph.elementTypeOf(value));
    graph.addNode(NodeClass::Alias, name("view"), std::vector{value}, std::vector{result});
    return result;
  }
  ValueId collective(CollectiveKind kind, GroupId group, ValueId value, uint64_t count) {
    uint32_t type = graph.elementTypeOf(value);
    ValueId started = graph.addTensor(count * (type == f32 ? 4 : 2), type);
    ValueId result = graph.addTensor(count * (type == f32 ? 4 : 2), type);
    bool reduces = kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
    graph.addCollective({kind, group, reduces ? "sum" : ""}, name("collective"), std::vector{value},
                        std::vector{started});
    graph.addNode(NodeClass::Wait, name("wait"), std::vector{started}, std::vector{result});
    return result;
  }

  /// The full parameter of one tp rank.
  ValueId parameter(uint64_t count) {
    count = std::max<uint64_t>(count / s.tp, 1);
    if (s.replicatedParameters)
      return view(kernel("cast", {input(count, f32)}, count, bf16));
    uint64_t shard = (count + s.dp - 1) / s.dp;
    ValueId cast = kernel("cast", {input(shard, f32)}, shard, bf16);
    return view(collective(CollectiveKind::AllGather, dpGroup, cast, shard * s.dp));
  }
  void gradient(ValueId value) {
    uint64_t count = elements(value);
    ValueId cast = kernel("cast", {value}, count, f32);
    graph.addOutput(
        s.replicatedParameters
            ? collective(CollectiveKind::AllReduce, dpGroup, cast, count)
            : collective(CollectiveKind::ReduceScatter, dpGroup, cast, (count + s.dp - 1) / s.dp));
  }
  ValueId gatherSequence(ValueId value) {
    if (s.tp == 1)
      return value;
    uint64_t count = elements(value) * s.tp;
    return kernel("cat", {collective(CollectiveKind::AllGather, tpGroup, value, count)}, count,
                  bf16);
  }
  ValueId scatterSequence(ValueId value) {
    if (s.tp == 1)
      return value;
    uint64_t count = elements(value);
    return collective(CollectiveKind::ReduceScatter, tpGroup, kernel("cat", {value}, count, bf16),
                      count / s.tp);
  }
  ValueId norm(ValueId x) {
    ValueId weight = parameter(s.hidden * s.tp);
    ValueId wide = kernel("cast", {x}, elements(x), f32);
    ValueId square = kernel("pow", {wide}, elements(x), f32);
    ValueId mean = kernel("mean", {square}, local, f32);
    ValueId scaled = kernel("mul", {wide, mean, weight}, elements(x), f32);
    return kernel("cast", {scaled}, elements(x), bf16);
  }
  /// [tokens, in] x [in, out / tp]
  ValueId linear(ValueId x, ValueId weight, uint64_t in, uint64_t out) {
    out /= s.tp;
    return kernel("mm", {x, weight}, s.tokens * out, bf16, 2.0 * s.tokens * in * out);
  }
  ValueId linear(ValueId x, uint64_t in, uint64_t out) {
    return linear(x, parameter(in * out), in, out);
  }
  /// [tokens, in / tp] x [in / tp, out]
  ValueId rowLinear(ValueId x, uint64_t in, uint64_t out) {
    return kernel("mm", {x, parameter(in * out)}, s.tokens * out, bf16,
                  2.0 * s.tokens * in * out / s.tp);
  }
  ValueId keep(ValueId value) {
    graph.addOutput(value);
    return value;
  }

  ValueId attention(ValueId x) {
    ValueId full = gatherSequence(norm(x));
    ValueId q = linear(full, s.hidden, s.hidden), k = linear(full, s.hidden, s.keyValue),
            v = linear(full, s.hidden, s.keyValue);
    ValueId mixed = keep(kernel("attention", {q, k, v}, elements(q), bf16,
                                2.0 * s.tokens * s.tokens * s.hidden / s.tp));
    return scatterSequence(rowLinear(mixed, s.hidden, s.hidden));
  }
  ValueId mlp(ValueId x) {
    ValueId full = gatherSequence(norm(x));
    ValueId gate = keep(linear(full, s.hidden, s.mlp));
    ValueId silu = kernel("silu", {gate}, elements(gate), bf16);
    ValueId up = keep(linear(full, s.hidden, s.mlp));
    ValueId product = kernel("mul", {silu, up}, elements(up), bf16);
    return scatterSequence(rowLinear(product, s.mlp, s.hidden));
  }
  ValueId experts(ValueId x) {
    ValueId normed = norm(x);
    ValueId scores = kernel("router", {normed, parameter(s.hidden * 64)}, local * 64, f32);
    ValueId counts =
        collective(CollectiveKind::AllToAll, epGroup, kernel("histogram", {scores}, 64, f32), 64);
    ValueId sorted = kernel("index", {normed, scores}, 4 * local * s.hidden, bf16);
    ValueId arrived = collective(CollectiveKind::AllToAll, epGroup, sorted, local * s.hidden);
    ValueId permuted = kernel("permute", {arrived, counts}, local * s.hidden, bf16);
    uint64_t size = s.localExperts * s.hidden * s.mlp / 8;
    double flops = 2.0 * local * s.hidden * s.mlp / 8;
    ValueId up = kernel("grouped_mm", {permuted, parameter(size)}, local * s.mlp / 8, bf16, flops);
    ValueId act = keep(kernel("silu", {up}, elements(up), bf16));
    ValueId down = kernel("grouped_mm", {act, parameter(size)}, local * s.hidden, bf16, flops);
    ValueId back = collective(CollectiveKind::AllToAll, epGroup, down, local * s.hidden);
    ValueId shared = linear(normed, s.hidden, s.mlp / 4);
    ValueId sharedOut =
        rowLinear(kernel("silu", {shared}, elements(shared), bf16), s.mlp / 4, s.hidden);
    ValueId combined = kernel("index_put", {back, scores}, local * s.hidden, bf16);
    return kernel("add", {combined, sharedOut}, local * s.hidden, bf16);
  }

  void forward() {
    ValueId ids = input(local, f32);
    ValueId x =
        kernel("embedding", {ids, parameter(s.vocabulary * s.hidden)}, local * s.hidden, bf16);
    for (unsigned layer = 0; layer != s.layers; ++layer) {
      x = keep(kernel("add", {x, attention(x)}, elements(x), bf16));
      x = keep(kernel("add", {x, s.localExperts ? experts(x) : mlp(x)}, elements(x), bf16));
    }
    keep(linear(gatherSequence(norm(x)), s.hidden, s.vocabulary));
  }

  /// Both products of a linear layer's backward; the gradient of the weight first, as autograd
  /// has it.
  ValueId linearBackward(ValueId x, ValueId gy, uint64_t weight, double flops) {
    ValueId gw = kernel("mm", {gy, x}, std::max<uint64_t>(weight / s.tp, 1), bf16, flops);
    ValueId gx = kernel("mm", {gy, parameter(weight)}, elements(x), bf16, flops);
    gradient(gw);
    return gx;
  }
  ValueId normBackward(ValueId x, ValueId g) {
    ValueId weight = parameter(s.hidden * s.tp);
    ValueId product = kernel("mul", {x, g, weight}, elements(x), f32);
    gradient(kernel("sum", {product}, s.hidden, bf16));
    return kernel("sub", {product, g}, elements(x), bf16);
  }
  ValueId blockBackward(ValueId g, uint64_t inner, bool attends) {
    ValueId saved = input(local * s.hidden, bf16);
    ValueId act = input(s.tokens * inner / s.tp, bf16);
    double flops = 2.0 * s.tokens * s.hidden * inner / s.tp;
    ValueId full = gatherSequence(g);
    ValueId gact = linearBackward(act, full, s.hidden * inner, flops);
    ValueId again = gatherSequence(kernel("norm", {saved}, local * s.hidden, bf16));
    if (attends)
      gact = kernel("attention_backward", {gact, act}, elements(gact), bf16,
                    5.0 * s.tokens * s.tokens * s.hidden / s.tp);
    ValueId sum = none;
    for (int branch = 0; branch != (attends ? 3 : 2); ++branch) {
      ValueId piece = kernel("mul", {gact, act}, elements(gact), bf16);
      ValueId gx = linearBackward(again, piece, s.hidden * inner, flops);
      sum = sum == none ? gx : kernel("add", {sum, gx}, elements(gx), bf16);
    }
    return kernel("add", {normBackward(saved, scatterSequence(sum)), g}, local * s.hidden, bf16);
  }
  ValueId expertsBackward(ValueId g) {
    ValueId saved = input(local * s.hidden, bf16), act = input(local * s.mlp / 8, bf16),
            arrived = input(local * s.hidden, bf16), scores = input(local * 64, f32);
    uint64_t size = s.localExperts * s.hidden * s.mlp / 8;
    double flops = 2.0 * local * s.hidden * s.mlp / 8;
    ValueId sorted = kernel("index", {g, scores}, 4 * local * s.hidden, bf16);
    ValueId there = collective(CollectiveKind::AllToAll, epGroup, sorted, local * s.hidden);
    ValueId gact = linearBackward(act, there, size * s.tp, flops);
    ValueId gup = kernel("silu_backward", {gact, act}, elements(act), bf16);
    ValueId gin = linearBackward(arrived, gup, size * s.tp, flops);
    ValueId back = collective(CollectiveKind::AllToAll, epGroup, gin, local * s.hidden);
    double shared = 2.0 * local * s.hidden * s.mlp / 4;
    ValueId gshared = linearBackward(saved, kernel("silu_backward", {g, saved}, elements(g), bf16),
                                     s.hidden * s.mlp / 4, shared);
    ValueId sum = kernel("add", {back, gshared, scores}, local * s.hidden, bf16);
    return kernel("add", {normBackward(saved, sum), g}, local * s.hidden, bf16);
  }
  void backward() {
    ValueId x = input(s.tokens * s.hidden, bf16);
    ValueId g = scatterSequence(linearBackward(x, input(s.tokens * s.vocabulary / s.tp, bf16),
                                               s.hidden * s.vocabulary,
                                               2.0 * s.tokens * s.hidden * s.vocabulary / s.tp));
    for (unsigned layer = 0; layer != s.layers; ++layer) {
      g = s.localExperts ? expertsBackward(g) : blockBackward(g, s.mlp, false);
      g = blockBackward(g, s.hidden, true);
    }
    gradient(kernel("embedding_backward", {g}, s.vocabulary * s.hidden / s.tp, bf16));
  }

  const ModelShape &s;
  Graph graph;
  GroupId dpGroup, tpGroup, epGroup;
  uint64_t local;
};

} // namespace

Graph shardc::collectives::test::generateModel(const ModelShape &shape) {
  return Generator(shape).run();
}
