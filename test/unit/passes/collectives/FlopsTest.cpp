// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/exported/Flops.h"
#include "passes/collectives/exported/FromProgram.h"
#include "passes/cost/core/TargetDescription.h"
#include "test/unit/passes/collectives/ProgramBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;
namespace te = shardc::torch_export;

namespace {

/// Flops of one node with operands and a result of these sizes.
double flops(const char *target,
             std::vector<std::pair<const char *, std::vector<int64_t>>> operands,
             std::vector<int64_t> result, std::vector<te::NamedArgument> more = {}) {
  test::ProgramBuilder b;
  std::vector<te::NamedArgument> inputs = std::move(more);
  for (auto &[name, sizes] : operands)
    inputs.push_back({name, b.tensor(name, sizes)});
  b.node("node", target, inputs, {b.tensor("result", std::move(result))});
  return flopsOf(b.program.graph.nodes[0], b.program.graph);
}

TEST(Flops, Products) {
  EXPECT_EQ(flops("torch.ops.aten.mm.default", {{"self", {3, 5}}, {"mat2", {5, 7}}}, {3, 7}),
            2 * 3 * 5 * 7);
  EXPECT_EQ(flops("torch.ops.aten.addmm.default",
                  {{"self", {7}}, {"mat1", {3, 5}}, {"mat2", {5, 7}}}, {3, 7}),
            2 * 3 * 5 * 7);
  EXPECT_EQ(
      flops("torch.ops.aten.bmm.default", {{"self", {2, 3, 5}}, {"mat2", {2, 5, 7}}}, {2, 3, 7}),
      2 * 2 * 3 * 5 * 7);
  EXPECT_EQ(
      flops("torch.ops.aten.linear.default", {{"input", {4, 3, 5}}, {"weight", {7, 5}}}, {4, 3, 7}),
      2 * 4 * 3 * 5 * 7);
  EXPECT_EQ(flops("torch.ops.aten.add.Tensor", {{"self", {3, 5}}, {"other", {3, 5}}}, {3, 5}), 0);
  EXPECT_EQ(flops("torch.ops.aten.mm.default", {{"self", {0, 5}}, {"mat2", {5, 7}}}, {0, 7}), 0);
  // A name that does not belong to the operator is no operand of it.
  EXPECT_EQ(flops("torch.ops.aten.mm.default", {{"a", {3, 5}}, {"b", {5, 7}}}, {3, 7}), 0);
}

TEST(Flops, AttentionAndConvolution) {
  std::vector<std::pair<const char *, std::vector<int64_t>>> qkv = {
      {"query", {2, 4, 6, 8}}, {"key", {2, 4, 10, 8}}, {"value", {2, 4, 10, 3}}};
  double forward = 2.0 * 2 * 4 * 6 * 10 * (8 + 3);
  EXPECT_EQ(flops("torch.ops.aten.scaled_dot_product_attention.default", qkv, {2, 4, 6, 3}),
            forward);
  EXPECT_EQ(flops("torch.ops.aten._scaled_dot_product_flash_attention_backward.default", qkv,
                  {2, 4, 6, 8}),
            2.5 * forward);
  // 5 x 5 outputs of 6 channels, each over a 3 x 3 window of 4 / 2 channels.
  EXPECT_EQ(flops("torch.ops.aten.convolution.default",
                  {{"input", {1, 4, 7, 7}}, {"weight", {6, 2, 3, 3}}}, {1, 6, 5, 5},
                  {{"transposed", false}}),
            2.0 * 6 * 25 * 2 * 9);
  EXPECT_EQ(flops("torch.ops.aten.convolution.default",
                  {{"input", {1, 4, 5, 5}}, {"weight", {4, 6, 3, 3}}}, {1, 6, 7, 7},
                  {{"transposed", true}}),
            2.0 * 4 * 25 * 6 * 9);
}

TEST(Flops, PriceKernels) {
  test::ProgramBuilder b;
  te::TensorArg x = b.tensor("x", {4096, 4096}), y = b.tensor("y", {4096, 4096});
  b.input(x);
  b.node("mm", "torch.ops.aten.mm.default", {{"self", x}, {"mat2", x}}, {y});
  b.output(y);
  std::vector<std::string> errors;
  auto price = [&](const char *name) {
    auto model = cost::makeBuiltinModel(name);
    return graphFromProgram(b.program, {}, {}, *model, errors)->durationUs(0);
  };
  // bf16: 2 * 4096^3 at 989.5 TFLOP/s; sim-v1 looks at bytes alone (each storage once).
  EXPECT_NEAR(price("h100-64"), 2.0 * 4096 * 4096 * 4096 / 989.5e6, 1e-6);
  EXPECT_NEAR(price("sim-v1"), 2.0 * 4096 * 4096 * 2 / 3.35e6, 1e-6);
}

} // namespace
