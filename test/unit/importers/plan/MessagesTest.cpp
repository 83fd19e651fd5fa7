// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What people read whose plan is wrong, word by word.
#include "importers/plan/Plan.h"
#include "importers/plan/Resolve.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::plan;

namespace {

using Errors = std::vector<std::string>;

Errors yaml(llvm::StringRef text) {
  Plan plan;
  Errors errors;
  parseYaml(text, "plan.yaml", plan, errors);
  return errors;
}

Errors spec(llvm::StringRef text) {
  Plan plan;
  Errors errors;
  parsePlaceSpec(text, plan, errors);
  return errors;
}

TEST(YamlMessages, WhatIsExpectedWhere) {
  EXPECT_EQ(yaml("- a\n- b\n"), Errors{"plan.yaml:1: a plan is a mapping with the keys mesh, "
                                       "inputs, modules, parameters, outputs, ops"});
  EXPECT_EQ(yaml("mesh: {dp: 2}\nmodule: {}\n"),
            Errors{"plan.yaml:2: unknown section 'module'; did you mean modules?"});
  EXPECT_EQ(yaml("? [modules]\n: {}\n"),
            Errors{"plan.yaml:1: expected the name of a section here"});
  EXPECT_EQ(yaml("modules: colwise\n"),
            Errors{"plan.yaml:1: section 'modules' is a mapping from names to placements or "
                   "styles"});
  EXPECT_EQ(yaml("modules:\n"), Errors{});
  EXPECT_EQ(yaml("tp_axis: [tp]\n"), Errors{"plan.yaml:1: expected the name of a mesh axis here"});
  EXPECT_EQ(yaml("recompute: {a: b}\n"),
            Errors{"plan.yaml:1: expected the path of a module or a pattern, e.g. "
                   "\"model.layers.*\" here"});
  EXPECT_EQ(yaml("recompute: [a, [b]]\n"),
            Errors{"plan.yaml:1: expected the path of a module or a pattern, e.g. "
                   "\"model.layers.*\" here"});
  EXPECT_EQ(yaml("reshard_after_forward: maybe\n"),
            Errors{"plan.yaml:1: reshard_after_forward is true, false or auto, not 'maybe'"});
  EXPECT_EQ(yaml("reshard_after_forward: [true]\n"),
            Errors{"plan.yaml:1: expected true, false or auto here"});
  EXPECT_EQ(yaml("mesh: [2, 4]\n"),
            Errors{"plan.yaml:1: expected a mesh, e.g. {dp: 2, tp: 4} here"});
  EXPECT_EQ(yaml("mesh: {dp: [2]}\n"), Errors{"plan.yaml:1: expected the size of an axis here"});
  EXPECT_EQ(yaml("mesh: {? [dp] : 2}\n"), Errors{"plan.yaml:1: expected the name of an axis here"});
  EXPECT_EQ(yaml("modules: {? [a] : colwise}\n"),
            Errors{"plan.yaml:1: expected a name or pattern here"});
  EXPECT_EQ(yaml("modules:\n  a: [colwise]\n"),
            Errors{"plan.yaml:2: expected a style or placements, e.g. colwise or {tp: S(0)} here"});
  EXPECT_EQ(yaml("modules:\n  a: {tp: [S]}\n"),
            Errors{"plan.yaml:2: expected a placement, e.g. S(0) here"});
  EXPECT_EQ(yaml("modules:\n  a: {? [tp] : S(0)}\n"),
            Errors{"plan.yaml:2: expected the name of a mesh axis here"});
}

TEST(YamlMessages, Meshes) {
  EXPECT_EQ(yaml("meshes: [a]\n"),
            Errors{"plan.yaml:1: section 'meshes' is a mapping from names to meshes, e.g. readers: "
                   "{io: 2, devices: [4, 5]}"});
  EXPECT_EQ(yaml("meshes: {a: {io: two}}\n"),
            Errors{"plan.yaml:1: mesh 'a': 'io=two' is not NAME=SIZE with a size of at least 1; "
                   "e.g. dp=2,tp=4"});
  EXPECT_EQ(yaml("meshes: {a: {io: 2, devices: [x, 1]}}\n"),
            Errors{"plan.yaml:1: mesh 'a': 'devices=[x,1]' is no list of ranks; e.g. "
                   "devices=[3,2,1,0]"});
  EXPECT_EQ(yaml("meshes: {a: {io: 1, devices: [65536]}}\n"),
            Errors{"plan.yaml:1: mesh 'a': rank 65536 is outside of every world: ranks are 0 to "
                   "65535"});
  EXPECT_EQ(yaml("meshes: {R: {io: 2}}\n"),
            Errors{"plan.yaml:1: a mesh cannot be called 'R', which is a placement"});
  EXPECT_EQ(yaml("meshes: {a: {io: 2, devices: [1]}}\n").size(), 1u);
  EXPECT_EQ(yaml("meshes:\n"), Errors{});
}

TEST(RuleMessages, Values) {
  EXPECT_EQ(spec("param:w=mesh:there,io:R"),
            Errors{"--place param:w=mesh:there,io:R: 'mesh:there' for 'w': only inputs and outputs "
                   "may be on another mesh; modules compute, and their parameters are, on the mesh "
                   "of the program"});
  EXPECT_EQ(
      yaml("modules: {a: colwize}\n"),
      Errors{"plan.yaml:1: unknown style 'colwize' for 'a'; the nearest are colwise, rowwise or "
             "colwise_rep, and placements are written axis:S(0), axis:R or axis:P(sum)"});
  EXPECT_EQ(spec("param:w=tp:S(0, blocks = [64, 32], granule = [2])"),
            Errors{"--place param:w=tp:S(0, blocks = [64, 32], granule = [2]): 'S(0, blocks = [64, "
                   "32], granule = [2])' for axis 'tp' of 'w': expected a granule for each of 2 "
                   "blocks, got 1 at character 38 of 'S(0, blocks = [64, 32], granule = [2])'"});
  EXPECT_EQ(spec("param:w=colwise"),
            Errors{"--place param:w=colwise: style 'colwise' applies to modules, not to parameter "
                   "'w'; write placements, e.g. tp:S(0)"});
  EXPECT_EQ(spec("param:w=S(0)"),
            Errors{"--place param:w=S(0): 'S(0)' for 'w' is not axis:placement; e.g. tp:S(0)"});
  EXPECT_EQ(spec("param:w=tp:S(0),tp:R"),
            Errors{"--place param:w=tp:S(0),tp:R: axis 'tp' is given twice for 'w'"});
  EXPECT_EQ(spec("weight=tp:S(0)"),
            Errors{"--place weight=tp:S(0): not KIND:NAME=VALUE with KIND one of input, output, "
                   "param, module; e.g. param:*.weight=tp:S(0) or module:*.q_proj=colwise"});
}

TEST(ResolveMessages, OneElementIsNotShared) {
  ModelNames m;
  m.parameters.push_back({{"gate.weight"}, {1, 64}, {std::nullopt, 1, std::nullopt}});
  m.modules.push_back({"gate", {{0, {}}}, {{2, 64}}, {{2, 1}}});
  Plan plan;
  Errors errors;
  parseYaml("modules: {gate: colwise}\n", "plan.yaml", plan, errors);
  EXPECT_EQ(errors, Errors{});
  EXPECT_EQ(
      resolvePlan(plan, Mesh({{"tp", 2}}), m).errors,
      Errors{"plan.yaml:1: 'gate.weight' (1x64) of module 'gate' has one element in the "
             "dim that would be shared out; leave the module out, or place it as 'replicate'"});
}

} // namespace
