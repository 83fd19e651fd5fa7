// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Program.h"
#include "importers/torch_export/program/Metadata.h"
#include "test/unit/importers/torch_export/Models.h"

#include <cmath>

using namespace shardc;
using namespace shardc::torch_export;
using shardc::test::modelJson;

namespace {

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

const Node *findNode(const Graph &graph, std::string_view target) {
  for (const Node &node : graph.nodes)
    if (node.target == target)
      return &node;
  ADD_FAILURE() << "no node " << target;
  return nullptr;
}

std::string errorOf(const std::string &json) {
  std::string error;
  EXPECT_FALSE(parseProgram(json, error));
  return error;
}

// Expected values follow from the Python of test/models/builders.py.
TEST(Program, SignatureOfMixed) {
  std::string error;
  auto program = parseProgram(modelJson("mixed_training.pt2"), error);
  ASSERT_TRUE(program) << error;
  EXPECT_TRUE(program->training);
  EXPECT_EQ(program->argumentNames, (std::vector<std::string_view>{"x", "pair", "extra"}));
  std::vector<std::string> inputs;
  for (const InputSpec &input : program->inputs)
    inputs.push_back(std::to_string(int(input.kind)) + " " + std::string(input.name) + " " +
                     std::string(input.target));
  EXPECT_EQ(inputs, (std::vector<std::string>{
                        "1 p_first_weight first.weight", "1 p_second_weight second.weight",
                        "1 p_second_bias second.bias", "2 b_steps steps", "2 b_scale scale",
                        "3 c_offset offset", "3 c_lifted_tensor_0 lifted_tensor_0", "0 x ",
                        "0 pair_0 ", "4 extra "}));
  EXPECT_TRUE(program->inputs[3].persistent);
  EXPECT_FALSE(program->inputs[4].persistent);
  std::vector<std::string> outputs;
  for (const OutputSpec &output : program->outputs)
    outputs.push_back(output.path);
  EXPECT_EQ(outputs, (std::vector<std::string>{"0.doubled", "0.parts.0", "0.parts.1", "1"}));
  EXPECT_EQ(program->modules, (std::vector<std::string_view>{"", "first", "second"}));
}

TEST(Program, ArgumentsAndMetadataOfMixed) {
  std::string error;
  auto program = parseProgram(modelJson("mixed_training.pt2"), error);
  ASSERT_TRUE(program) << error;
  const Graph &graph = program->graph;
  const Node *zeros = findNode(graph, "torch.ops.aten.zeros.default");
  const auto &size = std::get<SymIntListArg>(zeros->inputs[0].value).values;
  ASSERT_EQ(size.size(), 2u);
  EXPECT_FALSE(size[0].constant());
  EXPECT_EQ(graph.symInts.at(size[0].name).value, 12); // twice the example's batch
  EXPECT_EQ(size[1].value, 4);
  const auto &device = std::get<DeviceArg>(zeros->inputs[1].value);
  EXPECT_EQ(device.type, "cpu");
  EXPECT_FALSE(device.index);
  EXPECT_TRUE(zeros->inputs[1].keyword);
  EXPECT_FALSE(zeros->inputs[0].keyword);

  const Node *fill = findNode(graph, "torch.ops.aten.masked_fill.Scalar");
  EXPECT_EQ(std::get<double>(fill->inputs[2].value), -INFINITY);
  const Node *split = findNode(graph, "torch.ops.aten.split.Tensor");
  ASSERT_EQ(split->outputs.size(), 1u);
  EXPECT_EQ(std::get<TensorListArg>(split->outputs[0]).tensors.size(), 2u);
  const Node *max = findNode(graph, "torch.ops.aten.max.dim");
  ASSERT_EQ(max->outputs.size(), 2u);
  const TensorMeta &indices = graph.tensors.at(std::get<TensorArg>(max->outputs[1]).name);
  EXPECT_EQ(indices.type, ElementType::I64);
  ASSERT_EQ(indices.sizes.size(), 1u);
  EXPECT_TRUE(indices.sizes[0].hasHint && !indices.sizes[0].constant());
  EXPECT_EQ(indices.sizes[0].value, 6); // the example's batch

  const Node *nested = findNode(graph, "torch.ops.higher_order.wrap_with_set_grad_enabled");
  const auto &body = *std::get<GraphArg>(nested->inputs[1].value).graph;
  EXPECT_EQ(body.nodes.size(), 3u);
  EXPECT_EQ(body.inputs.size(), 2u);

  const Node *linear = findNode(graph, "torch.ops.aten.linear.default");
  EXPECT_EQ(modulePath(linear->moduleStack), "first");
  SourceLine source = sourceLine(linear->stackTrace);
  EXPECT_TRUE(source.file.ends_with("builders.py")) << source.file;
  EXPECT_GT(source.line, 0u);
  ASSERT_EQ(program->ranges.size(), 1u);
  EXPECT_EQ(program->ranges[0].min, 2);
  EXPECT_EQ(program->ranges[0].max, 64);
}

TEST(Program, NewerSchemasAreRefusedByName) {
  std::string json = modelJson("mlp.pt2");
  EXPECT_EQ(errorOf(replaced(json, "\"major\": 8", "\"major\": 9")),
            "the program has schema version 9, newer than version 8, which this version of shardc "
            "reads: update shardc, or export with PyTorch 2.13");
  EXPECT_NE(errorOf(replaced(json, "\"major\": 8", "\"major\": 7")).find("export it again"),
            std::string::npos);
  std::string error;
  EXPECT_TRUE(parseProgram(replaced(json, "\"minor\": 20", "\"minor\": 99"), error)) << error;
}

TEST(Program, ErrorsNameTheNode) {
  std::string json = modelJson("mlp.pt2");
  EXPECT_EQ(errorOf(replaced(json, R"({"as_tensor": {"name": "layer_norm"}}, "kind")",
                             R"({"as_tensor": {"name": "nothing"}}, "kind")")),
            "node 'linear' (torch.ops.aten.linear.default): the value 'nothing' is used but not "
            "defined before");
  EXPECT_EQ(errorOf(replaced(json, R"("outputs": [{"as_tensor": {"name": "linear_1"}}])",
                             R"("outputs": [{"as_tensor": {"name": "linear"}}])")),
            "node 'linear_1' (torch.ops.aten.linear.default): the value 'linear' is defined twice");
  EXPECT_EQ(
      errorOf(replaced(json, R"({"as_ints": [64]})", R"({"as_ints": [64.5]})")),
      "node 0 'layer_norm' (torch.ops.aten.layer_norm.default): an argument of form as_ints has "
      "a value of another form");
  EXPECT_EQ(errorOf(replaced(json, R"("gelu": {"dtype": 7)", R"("gelu": {"dtype": 77)")),
            "tensor 'gelu': the element type code 77 is not known");
  EXPECT_EQ(errorOf(replaced(json, R"("gelu": {"dtype": 7, "sizes": [{"as_int": 8})",
                             R"("gelu": {"dtype": 7, "sizes": [{"as_int": -8})")),
            "tensor 'gelu': it has a negative size");
}

} // namespace
