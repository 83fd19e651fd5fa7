// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/exported/FromProgram.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/ProgramBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::ProgramBuilder;
namespace te = shardc::torch_export;

namespace {

using std::string_view;

/// A gather, its wait, a view, a product; a reduce-scatter into a buffer; a size read from a
/// tensor.
te::ExportedProgram someProgram() {
  ProgramBuilder b;
  te::TensorArg x = b.tensor("x", {4, 8}), y = b.tensor("y", {32, 16});
  b.input(x);
  b.input(y);
  te::TensorArg ag = b.tensor("ag", {32, 8}), w = b.tensor("w", {32, 8}),
                v = b.tensor("v", {8, 32});
  b.node("gather", "torch.ops._c10d_functional.all_gather_into_tensor.default",
         {{"input", x}, {"group_size", int64_t(8)}, {"group_name", string_view("dp")}}, {ag});
  b.node("wait", "torch.ops._c10d_functional.wait_tensor.default", {{"tensor", ag}}, {w});
  b.node("permute", "torch.ops.aten.permute.default", {{"self", w}}, {v});
  te::TensorArg mm = b.tensor("mm", {8, 16}, ElementType::F32);
  b.node("product", "torch.ops.aten.mm.default", {{"self", v}, {"mat2", y}}, {mm});
  te::TensorArg buffer = b.tensor("buffer", {1, 16}, ElementType::F32),
                rs = b.tensor("rs", {1, 16}, ElementType::F32),
                done = b.tensor("done", {1, 16}, ElementType::F32);
  b.node("buffer", "torch.ops.aten.empty.memory_format", {}, {buffer});
  b.node("scatter", "torch.ops._c10d_functional.reduce_scatter_tensor_out.default",
         {{"out", buffer},
          {"input", mm},
          {"reduce_op", string_view("avg")},
          {"group_name", string_view("dp")}},
         {rs});
  b.node("wait2", "torch.ops._c10d_functional.wait_tensor.default", {{"tensor", rs}}, {done});
  te::TensorArg odd = b.tensor("odd", {-1, 2}, ElementType::I64);
  b.node("n", "torch.ops.aten._local_scalar_dense.default", {{"self", done}}, {te::SymIntArg{"n"}});
  b.node("filled", "torch.ops.aten.full.default",
         {{"size", te::SymIntListArg{{te::SymIntArg{"n"}, te::SymIntArg{{}, 2}}}}}, {odd});
  b.node("add_", "torch.ops.aten.add_.Tensor", {{"self", odd}, {"other", done}},
         {b.tensor("sum", {-1, 2}, ElementType::I64)});
  b.output({"sum"});
  b.output(done);
  return b.program;
}

NodeId find(const Graph &graph, std::string_view name) {
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.nameOf(node) == name)
      return node;
  ADD_FAILURE() << name;
  return 0;
}

TEST(FromProgram, MapsNodesOneToOne) {
  cost::SimV1 model;
  std::string error;
  std::vector<std::string> errors;
  auto groups = parseGroups(R"({"dp": [0, 2, 4, 6, 8, 10, 12, 14]})", error);
  ASSERT_TRUE(groups) << error;
  auto durations = parseDurations(R"({"product": 12.5, "elsewhere": 1})", error);
  ASSERT_TRUE(durations) << error;
  te::ExportedProgram program = someProgram();
  auto graph = graphFromProgram(program, *groups, *durations, model, errors);
  ASSERT_TRUE(graph) << (errors.empty() ? "" : errors[0]);
  ASSERT_EQ(graph->numNodes(), program.graph.nodes.size());
  for (NodeId node = 0; node != graph->numNodes(); ++node)
    EXPECT_EQ(graph->nameOf(node), program.graph.nodes[node].name);

  NodeId gather = find(*graph, "gather"), scatter = find(*graph, "scatter");
  EXPECT_EQ(graph->kindOf(gather), CollectiveKind::AllGather);
  EXPECT_EQ(graph->group(graph->groupOf(gather)).ranks[3], 6);
  EXPECT_EQ(graph->fullBytes(gather), 32u * 8 * 2);
  EXPECT_EQ(graph->reductionOf(scatter), "avg");
  EXPECT_EQ(graph->fullBytes(scatter), 8u * 16 * 4);
  EXPECT_EQ(graph->outBuffers(scatter), 1u);
  EXPECT_EQ(graph->durationUs(find(*graph, "product")), 12.5);
  // A symbolic extent counts as 512; the scalar is an operand without bytes.
  NodeId filled = find(*graph, "filled");
  EXPECT_DOUBLE_EQ(graph->durationUs(filled), 512 * 2 * 8 / 3.35e6);
  EXPECT_EQ(graph->scalarOperands(filled).size(), 1u);
  // In place: both operands are read, nothing else is written.
  NodeId add = find(*graph, "add_");
  EXPECT_EQ(graph->classOf(add), NodeClass::InPlace);
  EXPECT_DOUBLE_EQ(graph->durationUs(add), (512 * 2 * 8 + 64) / 3.35e6);
  EXPECT_EQ(graph->rootOf(graph->results(add)[0]), graph->results(filled)[0]);
}

// Inductor's kernel in front of a bucketed gather writes one rank's part of the result.
TEST(FromProgram, FillingABucketWritesOnePart) {
  ProgramBuilder b;
  te::TensorArg x = b.tensor("x", {100}), all = b.tensor("all", {800});
  b.input(x);
  b.node("fill", "torch.ops.bucketing._pre_bucket_all_gather.default",
         {{"ag_ins", te::TensorListArg{{x}}}, {"group_size", int64_t(8)}}, {all});
  b.output(all);
  cost::SimV1 model;
  std::vector<std::string> errors;
  auto graph = graphFromProgram(b.program, {}, {}, model, errors);
  ASSERT_TRUE(graph);
  EXPECT_DOUBLE_EQ(graph->durationUs(0), (100 + 800 / 8) * 2 / 3.35e6);
}

TEST(FromProgram, GroupsMustBeKnown) {
  cost::SimV1 model;
  std::vector<std::string> errors;
  te::ExportedProgram program = someProgram();
  EXPECT_FALSE(graphFromProgram(program, {}, {}, model, errors));
  EXPECT_EQ(errors,
            (std::vector<std::string>{"unknown process groups: 'dp' (8 ranks); a groups file "
                                      "gives the ranks or the number of ranks of each, "
                                      "{\"dp\": [0, 1, ...]} or {\"dp\": 8}"}));
  errors.clear();
  EXPECT_FALSE(graphFromProgram(program, {{"dp", {"dp", 4, {}}}}, {}, model, errors));
  EXPECT_EQ(errors, (std::vector<std::string>{
                        "gather: group 'dp' has 8 ranks here, but 4 in the groups file"}));
}

TEST(FromProgram, Targets) {
  auto classOf = [](const char *target) { return classifyTarget(target).nodeClass; };
  EXPECT_EQ(classOf("torch.ops.bucketing._pre_bucket_all_gather.default"), NodeClass::Compute);
  EXPECT_EQ(classOf("torch.ops._c10d_functional.all_gather_into_tensor_coalesced.default"),
            NodeClass::Collective);
  EXPECT_EQ(classifyTarget("torch.ops._c10d_functional.all_to_all_single.default").kind,
            CollectiveKind::AllToAll);
  EXPECT_EQ(classOf("torch.ops.aten.split_with_sizes.default"), NodeClass::Alias);
  EXPECT_EQ(classOf("torch.ops.aten.slice_scatter.default"), NodeClass::Compute);
  EXPECT_EQ(classOf("torch.ops.aten.empty.memory_format"), NodeClass::Empty);
  EXPECT_EQ(classOf("torch.ops.aten.copy_.default"), NodeClass::InPlace);
  EXPECT_EQ(classOf("torch.ops.aten.__and__.Tensor"), NodeClass::Compute);
  EXPECT_EQ(classOf("_operator.mul"), NodeClass::Scalar);
  EXPECT_EQ(classOf("_operator.getitem"), NodeClass::Alias);
  EXPECT_EQ(classOf("torch.ops.aten.sym_size.int"), NodeClass::Scalar);
  EXPECT_EQ(classOf("torch.ops.spike.flex_attention.default"), NodeClass::Compute);
}

} // namespace
