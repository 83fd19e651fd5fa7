// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Manifest.h"
#include "runtime/host/CpuFeatures.h"
#include "runtime/support/Failure.h"

#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

/// A small valid manifest, with one piece of text replaced.
std::string manifest(const std::string &from = "", const std::string &to = "") {
  std::string text = R"({
    "format": 1, "tool": "hand", "name": "m", "artifact_hash": "a", "sequence_hash": "s",
    "target": {"kind": "cpu", "triple": "x86_64-linux", "cpu": "any", "features": []},
    "world_size": 4,
    "mesh": {"name": "mesh", "axes": [{"name": "dp", "size": 2}, {"name": "tp", "size": 2}]},
    "symbols": [{"name": "s0", "min": 1, "max": 512}],
    "constraints": [{"left": ["mod", "s0", 4], "relation": "==", "right": 0}],
    "parameters": [{"names": ["w", "tied"], "type": "f32", "shape": [6, 4], "layout": "[R, S(0)]"}],
    "entries": [{"name": "forward",
      "inputs": [{"name": "x", "type": "i64", "shape": [8, ["mul", 2, "s0"]], "layout": "[S(0), R]"}],
      "outputs": [{"name": "y", "type": "f32", "shape": [8, "s0"], "layout": "[S(0), R]",
                   "kind": "user"}],
      "arena_bytes": [0]}]
  })";
  if (size_t at = text.find(from); !from.empty() && at != std::string::npos)
    text.replace(at, from.size(), to);
  else
    EXPECT_EQ(from, "") << "not found";
  return text;
}

std::string errorOf(const std::string &text) {
  try {
    Manifest::parse(text);
  } catch (const Failure &failure) {
    return failure.message;
  }
  return "";
}

} // namespace

TEST(Manifest, Parses) {
  Manifest m = Manifest::parse(manifest());
  EXPECT_EQ(m.mesh.str(), "[\"dp\" = 2, \"tp\" = 2]");
  ASSERT_EQ(m.parameters.size(), 1u);
  EXPECT_EQ(m.parameters[0].names, (std::vector<std::string>{"w", "tied"}));
  EXPECT_EQ(m.parameters[0].extents(), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(m.parameters[0].layout.str(), "[R, S(0)]");
  EXPECT_FALSE(m.parameters[0].isConstant);
  EXPECT_EQ(m.entries[0].inputs[0].shape[1].str(m.symbolNames), "(2 * s0)");
  EXPECT_EQ(m.entries[0].userOutputs, (std::vector<size_t>{0}));
  EXPECT_EQ(m.constraints[0].text, "(s0 % 4) == 0");
}

TEST(Manifest, InputsAndOutputsMayBeOnAnotherMesh) {
  std::string text = manifest("\"symbols\": [", "\"meshes\": [{\"name\": \"io\", \"axes\": "
                                                "[{\"name\": \"a\", \"size\": 2}], \"devices\": "
                                                "[1, 3]}], \"symbols\": [");
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return copy;
  };
  std::string input = "\"layout\": \"[S(0), R]\"}]";
  Manifest m = Manifest::parse(replaced(input, "\"layout\": \"[S(0)]\", \"mesh\": \"io\"}]"));
  ASSERT_EQ(m.meshes.size(), 1u);
  EXPECT_EQ(m.entries[0].inputs[0].mesh, 1u);
  EXPECT_EQ(m.entries[0].inputs[0].layout.mesh, m.meshes[0].mesh);
  EXPECT_EQ(m.entries[0].outputs[0].mesh, 0u);
  EXPECT_FALSE(m.coordinatesOf(2)[1].has_value());
  EXPECT_EQ(m.coordinatesOf(3)[1], (shardc::Coordinate{1}));
  EXPECT_EQ(m.coordinatesOf(3)[0], (shardc::Coordinate{1, 1}));
  EXPECT_NE(errorOf(replaced(input, "\"layout\": \"[S(0)]\", \"mesh\": \"oi\"}]"))
                .find("entries[0].inputs[0].mesh: expected the name of one of meshes, but oi is "
                      "none"),
            std::string::npos);
  EXPECT_NE(
      errorOf(replaced("\"layout\": \"[R, S(0)]\"", "\"layout\": \"[R]\", \"mesh\": \"io\""))
          .find("parameters[0].mesh: expected none: parameters are on the program's own mesh"),
      std::string::npos);
  EXPECT_NE(errorOf(replaced("[1, 3]", "[1, 4]")).find("meshes[0].devices: rank 4 is outside"),
            std::string::npos);
}

TEST(Manifest, SymbolsMayHaveNoUpperBound) {
  Manifest m = Manifest::parse(manifest(", \"max\": 512", ""));
  ASSERT_EQ(m.symbols.size(), 1u);
  EXPECT_EQ(m.symbols[0].min, 1);
  EXPECT_EQ(m.symbols[0].max, INT64_MAX);
}

TEST(Manifest, EveryMistakeNamesItsKey) {
  struct {
    const char *from, *to, *message;
  } mistakes[] = {
      {"\"format\": 1", "\"format\": 2", "format 2"},
      {"\"tool\": \"hand\"", "\"tool\": 3", ".tool: expected a string"},
      {"\"world_size\": 4", "\"world_size\": 3", "3 ranks are too few for a mesh of 4"},
      {"\"world_size\": 4", "\"world_size\": 0", "world_size: expected a positive integer"},
      {"\"size\": 2}]", "\"size\": 0}]", "mesh: "},
      {"\"kind\": \"user\"}",
       "\"kind\": \"user\"}, {\"name\": \"y\", \"type\": \"i64\", \"shape\": [], \"layout\": \"[R, "
       "R]\", "
       "\"kind\": \"user\"}",
       "entries[0].outputs[1]: another output is called y too"},
      {"\"inputs\": [",
       "\"inputs\": [{\"name\": \"x\", \"type\": \"i64\", \"shape\": [], \"layout\": \"[R, R]\"}, ",
       "entries[0].inputs[1]: another input is called x too"},
      {"\"min\": 1", "\"min\": 600", "symbols[0]: expected 0 <= min <= max"},
      {"[\"mod\", \"s0\", 4]", "[\"pow\", \"s0\", 4]", "constraints[0].left: expected"},
      {"\"==\"", "\"~\"", "constraints[0].relation: expected"},
      {"\"type\": \"f32\", \"shape\": [6", "\"type\": \"f33\", \"shape\": [6",
       "parameters[0].type: expected an element type"},
      {"[6, 4]", "[6, \"s0\"]", "parameters[0].shape: expected integers"},
      {"[6, 4]", "[-6, 4]", "parameters[0].shape[0]"},
      {"\"[R, S(0)]\"", "\"[R]\"", "parameters[0].layout: "},
      {"\"[R, S(0)]\"", "\"[R, S(7)]\"", "parameters[0].layout: "},
      {"\"[R, S(0)]\"", "\"[R, ?]\"", "parameters[0].layout: "},
      {"\"[R, S(0)]\"", "\"[R, P(sum)]\"",
       "parameters[0].layout: [R, P(sum)] is partial, but every rank loads a parameter"},
      {"\"tied\"", "\"w\"", "w belongs to two parameters"},
      {"[\"mul\", 2, \"s0\"]", "\"s9\"", "entries[0].inputs[0].shape[1]: expected a symbol"},
      {"\"kind\": \"user\"", "\"kind\": \"loss\"", "entries[0].outputs[0].kind"},
      {"\"kind\": \"user\"", "\"kind\": \"state\", \"updates\": \"w\"", "which must be mutable"},
      {"\"[R, S(0)]\"", "\"[R, S(0)]\", \"source\": \"file\"",
       "parameters[0].source: expected weights, constant or state"},
      {"\"[R, S(0)]\"", "\"[R, S(0)]\", \"source\": \"state\"",
       "parameters[0].initial: expected a number"},
      {"\"[R, S(0)]\"", "\"[R, P(sum)]\", \"source\": \"state\", \"initial\": 0",
       "is partial, but every rank loads a parameter"},
      {"\"[R, S(0)]\"", "\"[R, P(sum)]\", \"source\": \"state\", \"initial\": 1, \"saved\": false",
       "parameters[0].initial: expected 0 of a sum"},
      {"\"entries\"", "\"training\": 1, \"entries\"", "training: expected an object"},
      {"\"entries\"", "\"training\": {\"step\": \"train\"}, \"entries\"",
       "training.step: expected the name of an entry"},
      {"\"entries\"",
       "\"training\": {\"step\": \"forward\", \"loss\": \"z\", \"learning_rate\": \"x\", "
       "\"non_finite\": \"skip\"}, \"entries\"",
       "training.loss: expected the name of an output of forward"},
      {"\"entries\"",
       "\"training\": {\"step\": \"forward\", \"loss\": \"y\", \"learning_rate\": \"x\", "
       "\"non_finite\": \"skip\", \"micro_batches\": 2}, \"entries\"",
       "training.micro_batches: expected a positive number"},
      {"\"entries\"",
       "\"training\": {\"step\": \"forward\", \"loss\": \"y\", \"learning_rate\": \"x\", "
       "\"non_finite\": \"skip\", \"loss_scale\": \"x\"}, \"entries\"",
       "training.loss_scale: expected the name of a state"},
  };
  for (auto &mistake : mistakes)
    EXPECT_NE(errorOf(manifest(mistake.from, mistake.to)).find(mistake.message), std::string::npos)
        << mistake.message << " is not in: " << errorOf(manifest(mistake.from, mistake.to));
  EXPECT_NE(errorOf("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(errorOf("{").find("not JSON"), std::string::npos);
}

TEST(Manifest, StatesAndTraining) {
  std::string text =
      manifest("\"[R, S(0)]\"", "\"[R, S(0)]\", \"source\": \"state\", \"initial\": 0.5");
  text.replace(text.find("\"entries\""), 9,
               "\"training\": {\"step\": \"forward\", \"loss\": \"y\", \"learning_rate\": \"x\", "
               "\"non_finite\": \"skip\", \"loss_scale\": \"w\"}, \"entries\"");
  Manifest m = Manifest::parse(text);
  EXPECT_TRUE(m.parameters[0].isState());
  EXPECT_FALSE(m.parameters[0].isWeight());
  EXPECT_TRUE(m.parameters[0].isSaved);
  EXPECT_EQ(m.parameters[0].initial, 0.5);
  ASSERT_TRUE(m.training);
  EXPECT_EQ(m.training->step, "forward");
  EXPECT_EQ(m.training->microBatches, 1);
  EXPECT_EQ(m.training->accumulate, "");
  EXPECT_EQ(m.training->lossScale, "w");
}

TEST(Manifest, AllMistakesAtOnce) {
  std::string text = manifest("\"tool\": \"hand\", \"name\": \"m\"", "\"tool\": 1, \"name\": 2");
  EXPECT_NE(errorOf(text).find(".tool"), std::string::npos);
  EXPECT_NE(errorOf(text).find(".name"), std::string::npos);
}

TEST(Manifest, Patterns) {
  EXPECT_TRUE(matchesPattern("h.*.attn.bias", "h.11.attn.bias"));
  EXPECT_TRUE(matchesPattern("*", ""));
  EXPECT_TRUE(matchesPattern("*a*b", "xxayyab"));
  EXPECT_FALSE(matchesPattern("h.*.bias", "h.1.bias.x"));
  EXPECT_FALSE(matchesPattern("", "x"));
}

TEST(Expression, EvaluatesAndSolves) {
  Manifest m = Manifest::parse(manifest());
  using K = Expression::Kind;
  Expression s = Expression::symbol(0);
  auto make = [](K kind, Expression a, Expression b) { return Expression{kind, 0, {a, b}}; };
  auto number = [](int64_t v) { return Expression::constant(v); };
  std::vector<std::optional<int64_t>> seven = {7}, unknown = {std::nullopt};
  auto value = [&](K kind, int64_t a, int64_t b) {
    return make(kind, number(a), number(b)).evaluate(seven);
  };
  EXPECT_EQ(value(K::FloorDiv, -7, 2), -4);
  EXPECT_EQ(value(K::CeilDiv, -7, 2), -3);
  EXPECT_EQ(value(K::CeilDiv, 7, 2), 4);
  EXPECT_EQ(value(K::Mod, -7, 3), 2); // as Python and SymPy
  EXPECT_EQ(value(K::Min, 3, 5), 3);
  EXPECT_EQ(value(K::Mod, 1, 0), std::nullopt);
  EXPECT_EQ(value(K::Mul, INT64_MAX, 2), std::nullopt);
  EXPECT_EQ(make(K::Add, s, number(1)).evaluate(seven), 8);
  EXPECT_EQ(make(K::Add, s, number(1)).evaluate(unknown), std::nullopt);
  // 3 * (s0 - 1) + 2 = 20
  Expression affine = make(K::Add, make(K::Mul, number(3), make(K::Sub, s, number(1))), number(2));
  ASSERT_TRUE(affine.solve(20, unknown));
  EXPECT_EQ(affine.solve(20, unknown)->value, 7);
  EXPECT_FALSE(affine.solve(21, unknown)) << "no integer";
  EXPECT_FALSE(affine.solve(20, seven)) << "nothing unknown";
  EXPECT_EQ(make(K::Sub, number(10), s).solve(4, unknown)->value, 6);
  EXPECT_FALSE(make(K::FloorDiv, s, number(2)).solve(4, unknown)) << "not affine";
  EXPECT_FALSE(make(K::Mul, s, s).solve(4, unknown));
}

TEST(CpuFeatures, KnownOnesAreAskedUnknownOnesAreMissing) {
  std::vector<std::string> none = {"avx1024"};
  EXPECT_EQ(missingCpuFeatures(none), none);
#if defined(__x86_64__)
  std::vector<std::string> base = {"sse2", "cx8"}; // every x86-64 has these
  EXPECT_TRUE(missingCpuFeatures(base).empty());
  for (auto [name, present] : {std::pair("avx2", bool(__builtin_cpu_supports("avx2"))),
                               std::pair("avx512f", bool(__builtin_cpu_supports("avx512f"))),
                               std::pair("fma", bool(__builtin_cpu_supports("fma"))),
                               std::pair("avx512vnni", bool(__builtin_cpu_supports("avx512vnni"))),
                               std::pair("bmi2", bool(__builtin_cpu_supports("bmi2")))}) {
    std::vector<std::string> one = {name};
    EXPECT_EQ(missingCpuFeatures(one).empty(), present) << name;
  }
#endif
}
