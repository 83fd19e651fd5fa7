// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Plan.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::plan;

namespace {

struct Read {
  Plan plan;
  std::vector<std::string> errors;
};
Read yaml(llvm::StringRef text) {
  Read read;
  parseYaml(text, "plan.yaml", read.plan, read.errors);
  return read;
}
Read spec(llvm::StringRef text) {
  Read read;
  parsePlaceSpec(text, read.plan, read.errors);
  return read;
}

TEST(Pattern, StarsCrossDotsAndBracesListChoices) {
  EXPECT_TRUE(
      matchesPattern("model.layers.*.self_attn.{q,k,v}_proj", "model.layers.11.self_attn.k_proj"));
  EXPECT_FALSE(
      matchesPattern("model.layers.*.self_attn.{q,k,v}_proj", "model.layers.11.self_attn.o_proj"));
  EXPECT_TRUE(matchesPattern("*", ""));
  EXPECT_TRUE(matchesPattern("*.weight", "a.b.c.weight"));
  EXPECT_FALSE(matchesPattern("*.weight", "a.b.c.weight_scale"));
  EXPECT_TRUE(matchesPattern("{a,{b,c}d}e", "cde"));
  EXPECT_FALSE(matchesPattern("a.b", "a.b.c"));
  EXPECT_TRUE(matchesPattern("*a*b*a*", "xxaxbxaa"));
  // An unclosed brace stands for itself.
  EXPECT_TRUE(matchesPattern("a{b", "a{b"));
}

TEST(Pattern, NearestNamesCompareLastParts) {
  std::vector<std::string> names = {"model.layers.0.self_attn.q_proj",
                                    "model.layers.0.self_attn.o_proj",
                                    "model.layers.0.mlp.down_proj", "lm_head"};
  EXPECT_EQ(nearestNames("model.layers.*.mlp.down_prj", names, 1), "model.layers.0.mlp.down_proj");
  EXPECT_EQ(nearestNames("lm_haed", names, 1), "lm_head");
  EXPECT_EQ(nearestNames("x", {}, 3), "");
}

TEST(Yaml, ReadsEverySection) {
  Read read = yaml("mesh: {dp: 2, tp: 4}\n"
                   "inputs:  {\"*\": {dp: S(0)}}\n"
                   "modules:\n"
                   "  \"model.layers.*.self_attn.{q,k,v}_proj\": colwise\n"
                   "  \"model.layers.*.mlp\": {tp: S(1)}\n"
                   "parameters:\n"
                   "  \"*\": {dp: \"S(0, blocks = 3)\", tp: R}\n"
                   "outputs: {\"*\": R}\n"
                   "recompute: [\"model.layers.*\", head]\n"
                   "reshard_after_forward: true\n");
  ASSERT_TRUE(read.errors.empty()) << read.errors.front();
  ASSERT_EQ(read.plan.recompute.size(), 2u);
  EXPECT_EQ(read.plan.recompute[0].pattern, "model.layers.*");
  EXPECT_EQ(read.plan.recompute[1].pattern, "head");
  EXPECT_EQ(read.plan.recompute[1].origin, "plan.yaml:9");
  EXPECT_EQ(read.plan.reshardAfterForward, true);
  ASSERT_EQ(read.plan.mesh.axes.size(), 2u);
  EXPECT_EQ(read.plan.mesh.axes[1].name, "tp");
  EXPECT_EQ(read.plan.mesh.axes[1].size, 4);
  ASSERT_EQ(read.plan.rules.size(), 5u);
  EXPECT_EQ(read.plan.rules[0].section, Section::Input);
  EXPECT_EQ(read.plan.rules[0].origin, "plan.yaml:2");
  EXPECT_EQ(read.plan.rules[1].style, Style::Colwise);
  EXPECT_EQ(read.plan.rules[1].origin, "plan.yaml:4");
  ASSERT_EQ(read.plan.rules[3].placements.size(), 2u);
  EXPECT_EQ(read.plan.rules[3].placements[0].placement, Placement::shard(0, 3));
  EXPECT_EQ(read.plan.rules[3].placements[1].placement, Placement::replicate());
  EXPECT_TRUE(read.plan.rules[4].replicateAll);
}

TEST(Yaml, WhatTheBackwardKeeps) {
  EXPECT_EQ(yaml("recompute: model.layers.*\n").plan.recompute.size(), 1u);
  EXPECT_EQ(yaml("reshard_after_forward: false\n").plan.reshardAfterForward, false);
  EXPECT_EQ(yaml("reshard_after_forward: auto\n").plan.reshardAfterForward, std::nullopt);
  EXPECT_EQ(yaml("mesh: {dp: 2}\n").plan.reshardAfterForward, std::nullopt);
}

TEST(Yaml, AcceptsAHuggingFacePlan) {
  Read read = yaml("base_model_tp_plan:\n"
                   "  layers.*.self_attn.q_proj: colwise\n"
                   "  layers.*.self_attn.o_proj: rowwise\n"
                   "  layers.*.mlp.gate_up_proj: packed_colwise\n"
                   "  embed_tokens: embedding_rowwise\n"
                   "  lm_head: colwise_gather_output\n"
                   "  norm: sequence_parallel\n");
  ASSERT_TRUE(read.errors.empty()) << read.errors.front();
  ASSERT_EQ(read.plan.rules.size(), 6u);
  EXPECT_EQ(read.plan.rules[2].style, Style::Colwise);
  EXPECT_EQ(read.plan.rules[3].style, Style::EmbeddingRowwise);
  EXPECT_EQ(read.plan.rules[4].style, Style::ColwiseGatherOutput);
  EXPECT_EQ(read.plan.rules[5].style, Style::Sequence);
}

TEST(Yaml, SectionsForExpertsArePasted) {
  Read read = yaml("base_model_ep_plan:\n"
                   "  layers.*.mlp.experts.down_proj: grouped_gemm\n"
                   "  layers.*.mlp.experts: ep_dispatch_experts\n"
                   "tp_plan: {lm_head: colwise_gather_output}\n"
                   "modules: {lm_head: replicate}\n");
  ASSERT_TRUE(read.errors.empty()) << read.errors.front();
  ASSERT_EQ(read.plan.rules.size(), 4u);
  EXPECT_EQ(read.plan.rules[0].style, Style::Experts);
  EXPECT_EQ(read.plan.rules[1].style, Style::Unchanged);
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ(read.plan.rules[i].isPasted, i < 3);
    EXPECT_EQ(read.plan.rules[i].isOfExperts, i < 2);
  }
}

TEST(Yaml, ReportsAllMistakesWithTheirLines) {
  Read read = yaml("mesh: {dp: 0}\n"
                   "inputz: {}\n"
                   "modules:\n"
                   "  a: colwize\n"
                   "  b: {tp: T(1)}\n"
                   "parameters:\n"
                   "  c: colwise\n");
  ASSERT_EQ(read.errors.size(), 5u);
  EXPECT_EQ(read.errors[0].rfind("plan.yaml:1: 'dp=0' is not NAME=SIZE", 0), 0u) << read.errors[0];
  EXPECT_NE(read.errors[1].find("did you mean inputs?"), std::string::npos) << read.errors[1];
  EXPECT_EQ(read.errors[2].rfind("plan.yaml:4: unknown style 'colwize' for 'a'", 0), 0u)
      << read.errors[2];
  EXPECT_EQ(read.errors[3].rfind("plan.yaml:5: 'T(1)' for axis 'tp' of 'b'", 0), 0u)
      << read.errors[3];
  EXPECT_EQ(read.errors[4].rfind("plan.yaml:7: style 'colwise' applies to modules", 0), 0u)
      << read.errors[4];
}

TEST(Yaml, PlacementsWithCommasMustBeQuoted) {
  for (const char *text :
       {"parameters:\n  up.weight: {tp: S(0, blocks = 3), dp: R}\n  b: colwize\n",
        "parameters:\n  up.weight: {tp: S(0, sizes = [5, 3])}\n"}) {
    Read read = yaml(text);
    ASSERT_FALSE(read.errors.empty());
    EXPECT_EQ(read.errors[0].rfind("plan.yaml:2: ", 0), 0u) << read.errors[0];
    EXPECT_NE(read.errors[0].find("must be quoted in YAML, e.g. {tp: \"S(0, blocks = 3)\"}"),
              std::string::npos)
        << read.errors[0];
  }
  // The other mistakes are reported, and nothing that the comma only seems to be.
  EXPECT_EQ(yaml("parameters: {a: {tp: S(0, blocks = 3)}}\nmodules: {b: colwize}\n").errors.size(),
            2u);
  for (const char *text : {"parameters: {a: {tp: \"S(0, blocks = 3)\"}}\n",
                           "parameters: {a: {tp: 'S(0, sizes = [5, 3])'}}\n",
                           "parameters:\n  a: tp:S(0, blocks = 3)\n",
                           "parameters:\n  a:\n    tp: S(0, sizes = [5, 3])\n"})
    EXPECT_TRUE(yaml(text).errors.empty()) << text;
}

TEST(Mesh, HasAtMost65536Ranks) {
  Mesh axes;
  std::vector<std::string> errors;
  parseMesh("dp=256,tp=256", "mesh", axes, errors);
  EXPECT_TRUE(errors.empty());
  for (const char *text :
       {"tp=65537", "dp=256,tp=257", "tp=100000000000", "a=65536,b=65536,c=65536"}) {
    errors.clear();
    parseMesh(text, "mesh", axes, errors);
    ASSERT_EQ(errors.size(), 1u) << text;
    EXPECT_EQ(errors[0], "mesh: it has more than 65536 ranks, the most that a mesh may have");
  }
}

TEST(Yaml, ReadsMeshesThatListRanks) {
  Read read = yaml("mesh: {dp: 2, tp: 2, devices: [3, 2, 1, 0]}\n"
                   "meshes:\n"
                   "  readers: {io: 2, devices: [4, 5]}\n"
                   "  line: \"r=4\"\n"
                   "inputs: {x: {mesh: readers, io: S(0)}, y: {mesh: line}}\n"
                   "outputs: {z: \"mesh:readers,io:R\"}\n");
  ASSERT_TRUE(read.errors.empty()) << read.errors.front();
  EXPECT_EQ(read.plan.mesh.str(), "[\"dp\" = 2, \"tp\" = 2], devices = [3, 2, 1, 0]");
  ASSERT_EQ(read.plan.meshes.size(), 2u);
  EXPECT_EQ(read.plan.meshes[0].name, "readers");
  EXPECT_EQ(read.plan.meshes[0].mesh.str(), "[\"io\" = 2], devices = [4, 5]");
  EXPECT_EQ(read.plan.meshes[1].mesh.str(), "[\"r\" = 4]");
  ASSERT_EQ(read.plan.rules.size(), 3u);
  EXPECT_EQ(read.plan.rules[0].mesh, "readers");
  ASSERT_EQ(read.plan.rules[0].placements.size(), 1u);
  EXPECT_EQ(read.plan.rules[0].placements[0].axis, "io");
  EXPECT_EQ(read.plan.rules[1].mesh, "line");
  EXPECT_TRUE(read.plan.rules[1].placements.empty());
  EXPECT_EQ(read.plan.rules[2].mesh, "readers");
}

TEST(Yaml, AnAxisMayBeCalledMeshOrDevices) {
  Read read = yaml("mesh: {mesh: 2, devices: 2}\ninputs: {x: {mesh: S(0), devices: R}}\n");
  ASSERT_TRUE(read.errors.empty()) << read.errors.front();
  EXPECT_EQ(read.plan.mesh.numDevices(), 4);
  EXPECT_EQ(read.plan.rules[0].mesh, "");
  EXPECT_EQ(read.plan.rules[0].placements.size(), 2u);
}

TEST(Yaml, BrokenSyntaxIsAnError) {
  EXPECT_FALSE(yaml("modules: [a, {b\n").errors.empty());
  EXPECT_FALSE(yaml("- just\n- a list\n").errors.empty());
  EXPECT_TRUE(yaml("").errors.empty());
}

TEST(PlaceSpec, ReadsAllKinds) {
  Read read = spec("param:*.c_attn.weight=dp:S(0),tp:S(1, blocks = 3)");
  ASSERT_TRUE(read.errors.empty()) << read.errors.front();
  ASSERT_EQ(read.plan.rules[0].placements.size(), 2u);
  EXPECT_EQ(read.plan.rules[0].placements[1].placement, Placement::shard(1, 3));
  EXPECT_EQ(spec("param:w=tp:S(0, blocks=[64,32,32])").plan.rules[0].placements[0].placement,
            Placement::shardBlocks(0, {{64, 1}, {32, 1}, {32, 1}}));
  EXPECT_EQ(spec("module:*.q_proj=colwise").plan.rules[0].style, Style::Colwise);
  EXPECT_EQ(spec("input:0=dp:S(0)").plan.rules[0].section, Section::Input);
  EXPECT_TRUE(spec("output:logits=R").plan.rules[0].replicateAll);
}

TEST(PlaceSpec, Mistakes) {
  EXPECT_FALSE(spec("weight=S(0)").errors.empty());
  EXPECT_FALSE(spec("param:w=S(0)").errors.empty());
  EXPECT_FALSE(spec("param:w=tp:S(0),tp:R").errors.empty());
  EXPECT_FALSE(spec("param:=tp:S(0)").errors.empty());
}

} // namespace
