// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/exported/ProgramRules.h"
#include "passes/collectives/chunk/core/ChunkGraph.h"
#include "passes/collectives/exported/FromProgram.h"
#include "passes/cost/core/SimV1.h"
#include "passes/cost/core/TargetDescription.h"
#include "test/unit/passes/collectives/ProgramBuilder.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::ProgramBuilder;
namespace te = shardc::torch_export;
using std::string_view;

namespace {

/// A sequence-parallel layer as PyTorch traces it: collectives along dim 0, so that the shares of
/// dim 1 are split and concatenated around them.
struct Layer : ProgramBuilder {
  te::TensorArg last;

  te::TensorArg op(const char *name, const char *target, std::vector<te::NamedArgument> inputs,
                   std::vector<int64_t> shape) {
    return last = (node(name, target, std::move(inputs), {tensor(name, shape)}),
                   te::TensorArg{name, program.graph.tensors.numberOf(name)});
  }
  te::TensorArg wait(const char *name, te::TensorArg of, std::vector<int64_t> shape) {
    return op(name, "torch.ops._c10d_functional.wait_tensor.default", {{"tensor", of}}, shape);
  }
  te::TensorListArg split(const char *name, te::TensorArg of, int64_t size, int64_t dim,
                          std::vector<const char *> parts, std::vector<int64_t> shape) {
    std::vector<te::Argument> outputs;
    te::TensorListArg list;
    for (const char *part : parts)
      list.tensors.push_back(tensor(part, shape));
    node(name, "torch.ops.aten.split.Tensor", {{"self", of}, {"split_size", size}, {"dim", dim}},
         {list});
    return list;
  }
};

Graph graphOf(const te::ExportedProgram &program) {
  std::vector<std::string> errors;
  auto graph = graphFromProgram(program, {{"tp", {"tp", 2, {4, 6}}}}, {}, cost::SimV1(), errors);
  EXPECT_TRUE(graph) << (errors.empty() ? "" : errors[0]);
  return std::move(*graph);
}

std::vector<std::string> names(const Graph &graph, const ChunkRegion &region) {
  std::vector<std::string> result;
  for (NodeId node : region.nodes)
    result.push_back(graph.nameOf(node));
  return result;
}

/// From a gather to a scatter; a share may be read elsewhere as well.
void addLayer(Layer &b, bool readsShare = false) {
  te::TensorArg x = b.tensor("x", {2, 1024, 64}), w = b.tensor("w", {64, 64});
  b.input(x);
  b.input(w);
  auto gather = b.op("gather", "torch.ops._c10d_functional.all_gather_into_tensor.default",
                     {{"input", x}, {"group_size", int64_t(2)}, {"group_name", string_view("tp")}},
                     {4, 1024, 64});
  auto got = b.wait("got", gather, {4, 1024, 64});
  auto shares = b.split("shares", got, 2, 0, {"s0", "s1"}, {2, 1024, 64});
  auto all = b.op("all", "torch.ops.aten.cat.default", {{"tensors", shares}, {"dim", int64_t(1)}},
                  {2, 2048, 64});
  auto flat = b.op("flat", "torch.ops.aten.view.default", {{"self", all}}, {4096, 64});
  auto turned = b.op("turned", "torch.ops.aten.t.default", {{"self", w}}, {64, 64});
  auto mm = b.op("mm", "torch.ops.aten.mm.default", {{"self", flat}, {"mat2", turned}}, {4096, 64});
  auto wide = b.op("wide", "torch.ops.prims.convert_element_type.default", {{"a", mm}}, {4096, 64});
  auto deep = b.op("deep", "torch.ops.aten.view.default", {{"self", wide}}, {2, 2048, 64});
  auto parts = b.split("parts", deep, 1024, 1, {"p0", "p1"}, {2, 1024, 64});
  auto side = b.op("side", "torch.ops.aten.cat.default", {{"tensors", parts}}, {4, 1024, 64});
  auto scatter = b.op("scatter", "torch.ops._c10d_functional.reduce_scatter_tensor.default",
                      {{"input", side},
                       {"reduce_op", string_view("sum")},
                       {"group_size", int64_t(2)},
                       {"group_name", string_view("tp")}},
                      {2, 1024, 64});
  auto done = b.wait("done", scatter, {2, 1024, 64});
  b.output(b.op("unknown", "torch.ops.aten.sort.default", {{"self", done}}, {2, 1024, 64}));
  if (readsShare)
    b.output(shares.tensors[0]);
}

} // namespace

TEST(ProgramRules, FollowRowsThroughShares) {
  Layer b;
  addLayer(b);
  Graph graph = graphOf(b.program);
  ProgramRules rules(b.program, graph);
  std::vector<std::string> nodes = {"gather", "got",  "shares", "all",  "flat",    "mm",
                                    "wide",   "deep", "parts",  "side", "scatter", "done"};
  // Of the shares of dim 1; and of the batch, which is dim 0 of the gather.
  for (auto [along, extent, dim] :
       {std::tuple(ChunkDim::Other, 1024u, 1u), std::tuple(ChunkDim::Gathered, 2u, 0u)}) {
    std::vector<ChunkRegion> regions = findChunkRegions(graph, rules, cost::SimV1(), along);
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_EQ(names(graph, regions[0]), nodes);
    EXPECT_EQ(regions[0].extent, extent);
    ASSERT_EQ(regions[0].cuts.size(), 1u);
    EXPECT_EQ(regions[0].cuts.begin()->second.rows, (RowBlocks{dim, 1, 1}));
    // Rows of the flat tensor: each rank's share of each sample, or whole samples.
    RowBlocks flat = along == ChunkDim::Other ? RowBlocks{0, 4, 1} : RowBlocks{0, 1, 2048};
    EXPECT_EQ(regions[0].made.at(graph.results(4)[0]), flat);
  }
  // As a ring, whose pieces are the shares: there is nothing to split and to concatenate.
  std::vector<ChunkRegion> rings = findChunkRegions(graph, rules, cost::SimV1(), ChunkDim::Ring);
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_EQ(names(graph, rings[0]), nodes);
  EXPECT_EQ(rings[0].extent, 2048u);
  EXPECT_EQ(rings[0].made.at(graph.results(4)[0]), (RowBlocks{0, 2, 1}));
  EXPECT_TRUE(rings[0].cuts.empty());
  std::vector<ChunkChoice> choices = {{&rings[0], 2}};
  ChunkedGraph chunked = chunkGraph(graph, *cost::makeBuiltinModel("h100-8"), choices);
  std::vector<std::string> run;
  for (NodeId node = 0; node != chunked.graph.numNodes(); ++node)
    run.push_back(chunked.graph.nameOf(node));
  EXPECT_EQ(run,
            (std::vector<std::string>{"flat.0", "turned", "mm.0", "wide.0", "deep.0", "gather.1",
                                      "gather.1.wait", "flat.1", "mm.1", "wide.1", "deep.1",
                                      "scatter.1", "scatter.1.wait", run[13], "unknown"}));
  EXPECT_EQ(chunked.graph.resultBytes(2), 2u * 1024 * 64 * 2);
}

TEST(ProgramRules, KeepSharesThatAreReadElsewhere) {
  Layer b;
  addLayer(b, /*readsShare=*/true);
  Graph graph = graphOf(b.program);
  std::vector<ChunkRegion> rings =
      findChunkRegions(graph, ProgramRules(b.program, graph), cost::SimV1(), ChunkDim::Ring);
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_EQ(names(graph, rings[0]),
            (std::vector<std::string>{"mm", "wide", "deep", "parts", "side", "scatter", "done"}));
}

TEST(ProgramRules, MakeRingsOfExactSumsOnly) {
  for (auto [type, size, op, alike] : {std::tuple(ElementType::F32, 4, "sum", true),
                                       {ElementType::I64, 4, "sum", true},
                                       {ElementType::BF16, 2, "sum", true},
                                       {ElementType::BF16, 4, "sum", false},
                                       {ElementType::F16, 4, "sum", false},
                                       {ElementType::F32, 4, "avg", false},
                                       {ElementType::F32, 4, "max", false}}) {
    Layer b;
    te::TensorArg x = b.tensor("x", {8, 64}, type);
    b.input(x);
    te::TensorArg part = b.tensor("part", {8 / size, 64}, type);
    b.node("scatter", "torch.ops._c10d_functional.reduce_scatter_tensor.default",
           {{"input", x},
            {"reduce_op", string_view(op)},
            {"group_size", int64_t(size)},
            {"group_name", string_view("tp")}},
           {part});
    b.output(b.wait("done", part, {8 / size, 64}));
    std::vector<std::string> errors;
    auto graph = graphFromProgram(b.program, {{"tp", {"tp", uint32_t(size), {}}}}, {},
                                  cost::SimV1(), errors);
    ASSERT_TRUE(graph) << errors[0];
    EXPECT_EQ(ProgramRules(b.program, *graph).mayAddInTurn(0), alike) << op << " of " << size;
  }
}

TEST(ProgramRules, LeaveSymbolicSizesWhole) {
  Layer b;
  te::TensorArg x = b.tensor("x", {-1, 64}), w = b.tensor("w", {64, 64});
  b.input(x);
  b.input(w);
  auto gather =
      b.op("gather", "torch.ops._c10d_functional.all_gather_into_tensor.default",
           {{"input", x}, {"group_size", int64_t(2)}, {"group_name", string_view("tp")}}, {-1, 64});
  auto got = b.wait("got", gather, {-1, 64});
  b.output(b.op("mm", "torch.ops.aten.mm.default", {{"self", got}, {"mat2", w}}, {-1, 64}));
  Graph graph = graphOf(b.program);
  ProgramRules rules(b.program, graph);
  for (ChunkDim along : {ChunkDim::Gathered, ChunkDim::Other})
    EXPECT_TRUE(findChunkRegions(graph, rules, cost::SimV1(), along).empty());
}
