// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/exported/Origins.h"
#include "test/unit/passes/collectives/ProgramBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;
namespace te = shardc::torch_export;

namespace {

TEST(Origins, ParametersInputsAndOutputs) {
  test::ProgramBuilder b;
  te::TensorArg p = b.tensor("p", {4}), x = b.tensor("x", {4});
  b.input(p);
  b.input(x);
  te::InputSpec parameter, user;
  parameter.kind = te::InputSpec::Kind::Parameter;
  parameter.target = "layers.0.mlp.weight";
  user.name = "tokens";
  b.program.inputs = {parameter, user};
  te::TensorArg cast = b.tensor("cast", {4}), full = b.tensor("full", {8}),
                waited = b.tensor("waited", {8}), product = b.tensor("product", {8}),
                reduced = b.tensor("reduced", {2}), done = b.tensor("done", {2}),
                wide = b.tensor("wide", {8});
  b.node("cast", "torch.ops.prims.convert_element_type.default", {{"a", p}}, {cast});
  b.node("gather", "torch.ops._c10d_functional.all_gather_into_tensor.default", {{"input", cast}},
         {full});
  b.node("wait", "torch.ops._c10d_functional.wait_tensor.default", {{"tensor", full}}, {waited});
  b.node("mul", "torch.ops.aten.mul.Tensor", {{"self", waited}, {"other", wide}}, {product});
  b.node("scatter", "torch.ops._c10d_functional.reduce_scatter_tensor.default",
         {{"input", product}}, {reduced});
  b.node("wait2", "torch.ops._c10d_functional.wait_tensor.default", {{"tensor", reduced}}, {done});
  b.node("gather2", "torch.ops._c10d_functional.all_gather_into_tensor.default", {{"input", x}},
         {wide});
  b.program.graph.nodes[3].moduleStack = "k,layers.0.act,torch.nn.SiLU";
  b.program.graph.nodes[3].stackTrace = "  File \"model.py\", line 12, in forward\n    x * y";
  te::OutputSpec gradient;
  gradient.kind = te::OutputSpec::Kind::GradientToParameter;
  gradient.value = done;
  gradient.target = "layers.0.act.scale";
  b.program.outputs = {gradient};

  std::vector<Origin> origins = originsOf(b.program);
  ASSERT_EQ(origins.size(), 7u);
  EXPECT_EQ(origins[1].tensor, "layers.0.mlp.weight"); // through the cast
  EXPECT_EQ(origins[1].module, "layers.0.mlp");
  EXPECT_EQ(origins[3].module, "layers.0.act");
  EXPECT_EQ(origins[3].location, "model.py:12");
  EXPECT_EQ(origins[4].tensor, "layers.0.act.scale");
  EXPECT_EQ(origins[6].tensor, "tokens");
  EXPECT_EQ(origins[6].module, "");
}

} // namespace
