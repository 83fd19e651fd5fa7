// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small models as propagation graphs, with named tensors. float32 everywhere.
#ifndef SHARDC_TEST_UNIT_PASSES_PLACEMENT_MODELS_H
#define SHARDC_TEST_UNIT_PASSES_PLACEMENT_MODELS_H

#include "dialects/sharding/RuleBuilder.h"
#include "passes/placement/core/Graph.h"

#include <map>

namespace shardc::test {

using Shape = std::vector<int64_t>;

class Model {
public:
  explicit Model(Mesh mesh) : graph(std::move(mesh)) {}

  PropagationGraph graph;
  std::map<std::string, TensorId> names;

  TensorId input(const std::string &name, Shape shape) {
    return names[name] = graph.addInput(std::move(shape), 4);
  }
  TensorId op(RuleBuilder builder, std::vector<TensorId> operands, Shape shape) {
    int64_t size = 4;
    return graph.addOp(builder.build(), operands, {std::move(shape)}, std::span(&size, 1));
  }
  std::vector<Shape> shapes(const std::vector<TensorId> &tensors) const {
    std::vector<Shape> result;
    for (TensorId t : tensors)
      result.push_back(graph.shape(t));
    return result;
  }
  Shape shape(TensorId t) const { return graph.shape(t); }
  RuleBuilder rule(const std::vector<TensorId> &operands, const Shape &result) const {
    return RuleBuilder::ofShapes(shapes(operands), {result});
  }

  void annotate(const std::string &name, const char *layout, std::vector<Strength> strengths = {}) {
    graph.annotate(
        {names.at(name), *parseLayout(graph.mesh, layout).value, std::move(strengths), {}});
  }
  TensorId constrain(TensorId tensor, const char *layout) {
    return graph.addConstraint(tensor, *parseLayout(graph.mesh, layout).value);
  }

  // Ops.
  TensorId linear(TensorId x, const std::string &weight, int64_t out, bool bias = true) {
    Shape xs = shape(x), ys = xs;
    ys.back() = out;
    std::vector<TensorId> operands{x, input(weight, {out, xs.back()})};
    std::string batch = std::string("abcde").substr(0, xs.size() - 1);
    std::vector<std::string> letters{batch + "i", "oi"};
    if (bias) {
      operands.push_back(input(weight + ".bias", {out}));
      letters.push_back("o");
    }
    RuleBuilder b = rule(operands, ys).einsum(letters, {batch + "o"});
    bias ? b.linearJointly({0, 2}).linearJointly({1, 2}).additive(2) : b.linear(0).linear(1);
    return op(std::move(b), operands, ys);
  }
  TensorId add(TensorId a, TensorId b) {
    return op(rule({a, b}, shape(a)).pointwise().linearJointly({0, 1}), {a, b}, shape(a));
  }
  TensorId mul(TensorId a, TensorId b) {
    return op(rule({a, b}, shape(a)).pointwise().linear(0).linear(1), {a, b}, shape(a));
  }
  TensorId gelu(TensorId x) { return op(rule({x}, shape(x)).pointwise(), {x}, shape(x)); }
  TensorId norm(TensorId x, const std::string &weight) {
    std::vector<TensorId> operands{x, input(weight, {shape(x).back()})};
    return op(rule(operands, shape(x)).cooperative({-1}, 2), operands, shape(x));
  }
  TensorId view(TensorId x, Shape to) { return op(rule({x}, to).view(), {x}, to); }
  TensorId permute(TensorId x, std::vector<int64_t> p) {
    Shape to;
    for (int64_t d : p)
      to.push_back(shape(x)[d]);
    return op(rule({x}, to).permute(p), {x}, to);
  }
  TensorId expand(TensorId x, Shape to) { return op(rule({x}, to).expand(), {x}, to); }
  std::vector<TensorId> split(TensorId x, int64_t dim, int64_t pieces) {
    Shape piece = shape(x);
    piece[dim] /= pieces;
    std::vector<Shape> to(pieces, piece);
    std::vector<int64_t> sizes(pieces, 4);
    RuleBuilder b = RuleBuilder::ofShapes({shape(x)}, to).split(dim);
    TensorId first = graph.addOp(b.build(), std::span(&x, 1), to, sizes);
    std::vector<TensorId> results;
    for (int64_t i = 0; i < pieces; ++i)
      results.push_back(first + static_cast<TensorId>(i));
    return results;
  }
  /// q, k, v: [batch, heads, length, width].
  TensorId attention(TensorId q, TensorId k, TensorId v) {
    RuleBuilder b = rule({q, k, v}, shape(q))
                        .einsum({"bhsd", "bhtd", "bhte"}, {"bhse"})
                        .letter('d', FactorKind::NeedReplication)
                        .letter('t', FactorKind::Cooperative, 4);
    return op(std::move(b), {q, k, v}, shape(q));
  }
  TensorId embedding(TensorId ids, const std::string &table, int64_t rows, int64_t width) {
    Shape out = shape(ids);
    out.push_back(width);
    std::vector<TensorId> operands{input(table, {rows, width}), ids};
    return op(rule(operands, out).einsum({"vd", "bs"}, {"bsd"}).linear(0), operands, out);
  }
  /// [b, s, heads * width] -> [b, heads, s, width]
  TensorId toHeads(TensorId x, int64_t heads) {
    Shape s = shape(x);
    return permute(view(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
  }
  TensorId fromHeads(TensorId x) {
    Shape s = shape(x);
    return view(permute(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
  }

  // Blocks; residual stream in, residual stream out. Weights are named with `prefix`.
  TensorId mlp(TensorId x, const std::string &prefix, int64_t hidden) {
    TensorId h = gelu(linear(norm(x, prefix + "norm"), prefix + "up", hidden));
    return add(x, names[prefix + "out"] = linear(h, prefix + "down", shape(x).back()));
  }
  TensorId selfAttention(TensorId x, const std::string &prefix, int64_t heads) {
    TensorId n = norm(x, prefix + "norm");
    int64_t width = shape(x).back();
    TensorId q = toHeads(linear(n, prefix + "q", width), heads);
    TensorId k = toHeads(linear(n, prefix + "k", width), heads);
    TensorId v = toHeads(linear(n, prefix + "v", width), heads);
    TensorId a = fromHeads(attention(q, k, v));
    return add(x, names[prefix + "out"] = linear(a, prefix + "o", width));
  }
  /// As GPT-2: one weight for q, k and v, applied to [b * s, width].
  TensorId fusedAttention(TensorId x, const std::string &prefix, int64_t heads) {
    Shape s = shape(x);
    int64_t rows = s[0] == kDynamic ? kDynamic : s[0] * s[1];
    TensorId flat = view(norm(x, prefix + "norm"), {rows, s[2]});
    TensorId qkv = view(linear(flat, prefix + "qkv", 3 * s[2]), {s[0], s[1], 3 * s[2]});
    std::vector<TensorId> parts = split(qkv, 2, 3);
    for (TensorId &part : parts)
      part = toHeads(part, heads);
    TensorId a = view(fromHeads(attention(parts[0], parts[1], parts[2])), {rows, s[2]});
    TensorId out = names[prefix + "out"] = linear(a, prefix + "o", s[2]);
    return add(x, view(out, s));
  }
};

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_PASSES_PLACEMENT_MODELS_H
