// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checker against the definition: layouts are legal where every rank, given its local operands,
// computes what its layout of the result says. All layouts of small tensors are tried, on data.
#include "passes/verify/core/RuleCheck.h"

#include "dialects/sharding/RuleBuilder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace shardc;

namespace {
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> data;

  explicit Tensor(std::vector<int64_t> shape) : shape(std::move(shape)) {
    int64_t count = 1;
    for (int64_t size : this->shape)
      count *= size;
    data.assign(count, 0.0);
  }
  int64_t offset(std::span<const int64_t> index) const {
    int64_t result = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      result = result * shape[d] + index[d];
    return result;
  }
};

void forEachIndex(std::span<const int64_t> shape,
                  const std::function<void(std::span<const int64_t>)> &visit) {
  std::vector<int64_t> index(shape.size(), 0);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return;
  while (true) {
    visit(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

/// Irregular numbers: a wrong placement gives a wrong sum.
double number(int64_t i, int64_t salt) {
  return std::sin(1.7 * double(i) + 3.1 * double(salt)) + 1.3;
}

/// Addend of a coordinate: they add to 1 along each partial axis.
double share(const Layout &layout, std::span<const int64_t> coordinate) {
  double result = 1;
  for (unsigned axis : layout.partialAxes()) {
    double sum = 0;
    for (int64_t r = 0; r < layout.mesh.axes[axis].size; ++r)
      sum += number(r, axis);
    result *= number(coordinate[axis], axis) / sum;
  }
  return result;
}

Tensor localPart(const Tensor &global, const Layout &layout, std::span<const int64_t> coordinate) {
  Tensor local(layout.localShape(global.shape, coordinate));
  double factor = share(layout, coordinate);
  forEachIndex(local.shape, [&](std::span<const int64_t> index) {
    std::vector<int64_t> at = layout.globalIndex(global.shape, coordinate, index);
    local.data[local.offset(index)] = factor * global.data[global.offset(at)];
  });
  return local;
}

/// Whether the local results are `global` in `layout`.
bool matches(const Tensor &global, const Layout &layout, const std::vector<Tensor> &locals) {
  for (int64_t position = 0; position < layout.mesh.numDevices(); ++position) {
    Coordinate coordinate = layout.mesh.coordinateOfPosition(position);
    Tensor sum(layout.localShape(global.shape, coordinate));
    std::vector<unsigned> partial = layout.partialAxes();
    for (int64_t other = 0; other < layout.mesh.numDevices(); ++other) {
      Coordinate at = layout.mesh.coordinateOfPosition(other);
      bool sameGroup = true;
      for (unsigned axis = 0; axis < at.size(); ++axis)
        sameGroup &= at[axis] == coordinate[axis] ||
                     std::find(partial.begin(), partial.end(), axis) != partial.end();
      if (!sameGroup)
        continue;
      if (locals[other].shape != sum.shape)
        return false;
      for (size_t i = 0; i < sum.data.size(); ++i)
        sum.data[i] += locals[other].data[i];
    }
    bool equal = true;
    forEachIndex(sum.shape, [&](std::span<const int64_t> index) {
      std::vector<int64_t> at = layout.globalIndex(global.shape, coordinate, index);
      equal &= std::abs(sum.data[sum.offset(index)] - global.data[global.offset(at)]) < 1e-9;
    });
    if (!equal)
      return false;
  }
  return true;
}

std::vector<Layout> allLayouts(const Mesh &mesh, std::span<const int64_t> shape) {
  std::vector<Placement> choices = {Placement::replicate(), Placement::partial()};
  for (size_t d = 0; d < shape.size(); ++d) {
    choices.push_back(Placement::shard(d));
    if (shape[d] % 2 == 0)
      choices.push_back(Placement::shard(d, /*blocks=*/2));
  }
  std::vector<std::vector<Placement>> lists = {{}};
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    std::vector<std::vector<Placement>> longer;
    for (const auto &list : lists)
      for (const Placement &choice : choices) {
        longer.push_back(list);
        longer.back().push_back(choice);
      }
    lists = std::move(longer);
  }
  std::vector<Layout> layouts;
  for (const auto &list : lists) {
    Layout layout(mesh, list);
    if (layout.validate(shape).empty())
      layouts.push_back(layout);
  }
  return layouts;
}

using Compute = std::function<std::optional<Tensor>(const std::vector<Tensor> &)>;

/// Tries all layouts. `compute` gives nothing where local shapes do not fit.
void compare(const ShardingRule &rule, const Mesh &mesh,
             const std::vector<std::vector<int64_t>> &operandShapes, const Compute &compute) {
  std::vector<Tensor> globals;
  for (size_t i = 0; i < operandShapes.size(); ++i) {
    globals.emplace_back(operandShapes[i]);
    for (size_t k = 0; k < globals[i].data.size(); ++k)
      globals[i].data[k] = number(k, i + 10);
  }
  Tensor result = *compute(globals);
  std::vector<std::vector<Layout>> operandLayouts;
  for (const auto &shape : operandShapes)
    operandLayouts.push_back(allLayouts(mesh, shape));
  std::vector<Layout> resultLayouts = allLayouts(mesh, result.shape);
  std::vector<size_t> choice(operandShapes.size(), 0);
  int64_t legalCount = 0;
  while (true) {
    std::vector<PlacedTensor> placed;
    for (size_t i = 0; i < choice.size(); ++i)
      placed.push_back({&operandLayouts[i][choice[i]], operandShapes[i]});
    std::vector<Tensor> locals;
    for (int64_t position = 0; position < mesh.numDevices(); ++position) {
      std::vector<Tensor> parts;
      for (size_t i = 0; i < choice.size(); ++i)
        parts.push_back(
            localPart(globals[i], *placed[i].layout, mesh.coordinateOfPosition(position)));
      if (std::optional<Tensor> local = compute(parts))
        locals.push_back(*local);
    }
    for (const Layout &layout : resultLayouts) {
      PlacedTensor out{&layout, result.shape};
      std::vector<std::string> errors = checkRule(rule, placed, {&out, 1});
      bool right = locals.size() == size_t(mesh.numDevices()) && matches(result, layout, locals);
      legalCount += right;
      if (errors.empty() != right) {
        std::string text;
        for (const PlacedTensor &operand : placed)
          text += operand.layout->str() + " ";
        FAIL() << text << "-> " << layout.str() << ": "
               << (right ? "right, but refused: " + errors.front() : "wrong, but accepted");
      }
    }
    size_t i = 0;
    while (i < choice.size() && ++choice[i] == operandLayouts[i].size())
      choice[i++] = 0;
    if (i == choice.size())
      break;
  }
  EXPECT_GT(legalCount, 1);
}

std::optional<Tensor> add(const std::vector<Tensor> &in) {
  if (in[0].shape != in[1].shape)
    return std::nullopt;
  Tensor out = in[0];
  for (size_t i = 0; i < out.data.size(); ++i)
    out.data[i] += in[1].data[i];
  return out;
}

std::optional<Tensor> linear(const std::vector<Tensor> &in) {
  const Tensor &x = in[0], &w = in[1], &bias = in[2];
  if (x.shape[1] != w.shape[1] || bias.shape[0] != w.shape[0])
    return std::nullopt;
  Tensor out({x.shape[0], w.shape[0]});
  forEachIndex(out.shape, [&](std::span<const int64_t> at) {
    double sum = bias.data[at[1]];
    for (int64_t i = 0; i < x.shape[1]; ++i)
      sum += x.data[at[0] * x.shape[1] + i] * w.data[at[1] * x.shape[1] + i];
    out.data[out.offset(at)] = sum;
  });
  return out;
}
} // namespace

TEST(RuleCheckBruteForce, Add) {
  for (const Mesh &mesh : {Mesh({{"a", 3}}), Mesh({{"a", 2}, {"b", 2}})}) {
    std::vector<std::vector<int64_t>> shapes = {{5, 2}, {5, 2}};
    ShardingRule rule =
        RuleBuilder::ofShapes(shapes, {{5, 2}}).pointwise().linearJointly({0, 1}).build();
    compare(rule, mesh, shapes, add);
  }
}

TEST(RuleCheckBruteForce, Linear) {
  std::vector<std::vector<int64_t>> shapes = {{3, 4}, {5, 4}, {5}};
  ShardingRule rule = RuleBuilder::ofShapes(shapes, {{3, 5}})
                          .einsum({"bi", "oi", "o"}, {"bo"})
                          .linearJointly({0, 2})
                          .linearJointly({1, 2})
                          .additive(2)
                          .build();
  compare(rule, Mesh({{"a", 2}}), shapes, linear);
}

TEST(RuleCheckBruteForce, LinearOnTwoAxes) {
  std::vector<std::vector<int64_t>> shapes = {{3, 3}, {2, 3}, {2}};
  ShardingRule rule = RuleBuilder::ofShapes(shapes, {{3, 2}})
                          .einsum({"bi", "oi", "o"}, {"bo"})
                          .linearJointly({0, 2})
                          .linearJointly({1, 2})
                          .additive(2)
                          .build();
  compare(rule, Mesh({{"a", 2}, {"b", 2}}), shapes, linear);
}
