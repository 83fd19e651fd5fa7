// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Resolve.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::plan;
using Target = Annotation::Target;

namespace {

/// Two layers of one column and one row linear (with biases), a norm between, and an embedding that
/// is tied to the head: what is looked up in the one is given to the result in the other.
ModelNames model() {
  ModelNames m;
  auto parameter = [&](std::vector<std::string> names, std::vector<int64_t> shape,
                       std::optional<int64_t> column, std::optional<int64_t> row) {
    m.parameters.push_back({std::move(names), std::move(shape), {column, row, {}}});
    return ModuleParameter{static_cast<unsigned>(m.parameters.size() - 1),
                           m.parameters.back().roles};
  };
  for (const char *layer : {"model.layers.0", "model.layers.1"}) {
    std::string base = layer;
    ModuleParameter up = parameter({base + ".up.weight"}, {32, 8}, 0, 1);
    ModuleParameter upBias = parameter({base + ".up.bias"}, {32}, 0, std::nullopt);
    ModuleParameter down = parameter({base + ".down.weight"}, {8, 32}, 0, 1);
    ModuleParameter downBias = parameter({base + ".down.bias"}, {8}, 0, std::nullopt);
    ModuleParameter norm = parameter({base + ".norm.weight"}, {8}, std::nullopt, std::nullopt);
    std::vector<int64_t> stream = {2, 16, 8}, hidden = {2, 16, 32};
    m.modules.push_back({base + ".up", {up, upBias}, {stream}, {hidden}});
    m.modules.push_back({base + ".down", {down, downBias}, {hidden}, {stream}});
    m.modules.push_back({base + ".norm", {norm}, {stream}, {stream}});
    m.modules.push_back({base, {}, {stream}, {stream}});
  }
  m.parameters.push_back({{"model.embed.weight", "lm_head.weight"}, {1003, 8}, {1, 0, 0}});
  unsigned table = static_cast<unsigned>(m.parameters.size() - 1);
  m.modules.push_back({"model.embed", {{table, {1, 0, 0}}}, {{2, 16}}, {{2, 16, 8}}});
  m.modules.push_back({"lm_head", {{table, {0, 1, {}}}}, {{2, 16, 8}}, {{2, 16, 1003}}});
  m.inputs.push_back({{"input_ids"}, {2, 16}, {}});
  m.outputs.push_back({{"logits"}, {2, 16, 1003}, {}});
  m.numReturned = 1;
  return m;
}

const Mesh mesh({{"dp", 2}, {"tp", 4}});

Resolution resolve(std::initializer_list<const char *> specs, const Mesh &on = mesh) {
  Plan plan;
  std::vector<std::string> errors;
  for (const char *spec : specs)
    parsePlaceSpec(spec, plan, errors);
  EXPECT_TRUE(errors.empty());
  return resolvePlan(plan, on, model());
}

std::string layoutOf(const Resolution &r, Target target, unsigned index) {
  for (const Annotation &a : r.annotations)
    if (a.target == target && a.index == index)
      return a.layout.str();
  return "none";
}

TEST(Resolve, StylesPlaceWeightsAndBiases) {
  Resolution r = resolve({"module:layers.*.up=colwise", "module:layers.*.down=rowwise"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[?, S(0)]"); // up.weight [out, in]
  EXPECT_EQ(layoutOf(r, Target::Parameter, 1), "[?, S(0)]"); // up.bias
  EXPECT_EQ(layoutOf(r, Target::Parameter, 2), "[?, S(1)]"); // down.weight
  EXPECT_EQ(layoutOf(r, Target::Parameter, 3), "[?, R]");    // down.bias
  EXPECT_EQ(layoutOf(r, Target::Parameter, 4), "none");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 5), "[?, S(0)]");
}

TEST(Resolve, SequenceAndGatherOutputConstrainBoundaries) {
  Resolution r = resolve({"module:*.norm=sequence", "module:*.up=colwise_rep"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::ModuleInput, 2), "[?, S(1)]");
  EXPECT_EQ(layoutOf(r, Target::ModuleOutput, 2), "[?, S(1)]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 4), "[?, R]");
  EXPECT_EQ(layoutOf(r, Target::ModuleOutput, 0), "[?, R]");
}

TEST(Resolve, AxesOfDifferentRulesCombine) {
  Resolution r =
      resolve({"param:*=dp:S(0)", "module:*.up=colwise", "input:0=dp:S(0)", "output:logits=R"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[S(0), S(0)]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 4), "[S(0), ?]");
  EXPECT_EQ(layoutOf(r, Target::Input, 0), "[S(0), ?]");
  EXPECT_EQ(layoutOf(r, Target::Output, 0), "[R, R]");
}

TEST(Resolve, ParametersShardedOverADataAxisAreOnlyStoredSo) {
  Resolution r = resolve({"param:*=dp:S(0)", "module:*.up=colwise", "input:0=dp:S(0)"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  for (const Annotation &a : r.annotations)
    if (a.target == Target::Parameter && a.index == 0)
      EXPECT_EQ(a.strengths,
                (std::vector{Annotation::Strength::Weak, Annotation::Strength::Pinned}));
  // Without a sharded input the same rule says how ops compute.
  r = resolve({"param:*.up.weight=dp:S(0)"});
  EXPECT_EQ(r.annotations.front().strengths.front(), Annotation::Strength::Pinned);
}

TEST(Resolve, InputsAndOutputsMayBeOnAnotherMesh) {
  Plan plan;
  std::vector<std::string> errors;
  parseNamedMesh("io:a=2,b=2,devices=[4,5,6,7]", "--other-mesh", plan, errors);
  for (const char *spec : {"input:*=dp:S(0)", "input:input_ids=mesh:io,b:S(1)",
                           "output:logits=mesh:io", "output:*=dp:S(1)"})
    parsePlaceSpec(spec, plan, errors);
  ASSERT_TRUE(errors.empty()) << errors.front();
  Resolution r = resolvePlan(plan, mesh, model());
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  // The exact name decides on which mesh it is; an axis that is not named replicates.
  EXPECT_EQ(layoutOf(r, Target::Input, 0), "[R, S(1)]");
  EXPECT_EQ(layoutOf(r, Target::Output, 0), "[R, R]");
  ASSERT_EQ(r.annotations.size(), 2u);
  EXPECT_EQ(r.annotations[0].mesh, "io");
  EXPECT_EQ(r.annotations[0].layout.mesh, plan.meshes[0].mesh);
}

TEST(Resolve, MistakesAboutOtherMeshes) {
  auto errorsOf = [](std::initializer_list<const char *> specs) {
    Plan plan;
    std::vector<std::string> errors;
    parseNamedMesh("io:a=2", "--other-mesh", plan, errors);
    for (const char *spec : specs)
      parsePlaceSpec(spec, plan, errors);
    EXPECT_TRUE(errors.empty());
    return resolvePlan(plan, mesh, model()).errors;
  };
  EXPECT_EQ(errorsOf({"input:0=mesh:oi"}),
            (std::vector<std::string>{
                "--place input:0=mesh:oi: there is no mesh 'oi'; the meshes are io"}));
  EXPECT_EQ(errorsOf({"input:0=mesh:io,dp:R"}),
            (std::vector<std::string>{
                "--place input:0=mesh:io,dp:R: the mesh 'io' has no axis 'dp'; it has a"}));
  ASSERT_EQ(errorsOf({"input:0=mesh:io,a:S(2)"}).size(), 1u);
  EXPECT_EQ(errorsOf({"input:0=mesh:io", "input:input_ids=tp:R"}),
            (std::vector<std::string>{
                "--place input:input_ids=tp:R: 'input_ids' puts 'input_ids' on the mesh of the "
                "program, but '0' (--place input:0=mesh:io) on the mesh 'io'"}));
}

TEST(Resolve, AnExactNameBeatsAPattern) {
  Resolution r = resolve({"param:model.layers.0.norm.weight=dp:R", "param:*=dp:S(0)"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 4), "[R, ?]");
}

TEST(Resolve, TiedNamesReachOneParameter) {
  Resolution r = resolve({"param:lm_head.weight=tp:S(0)", "module:embed=embedding_rowwise"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 10), "[?, S(0)]");
}

TEST(Resolve, RolesOfATiedTableAreThoseInTheNamedModule) {
  for (auto [spec, layout] : {std::pair("module:embed=embedding_rowwise", "[?, S(0)]"),
                              std::pair("module:embed=colwise", "[?, S(1)]"),
                              std::pair("module:lm_head=colwise", "[?, S(0)]"),
                              std::pair("module:lm_head=rowwise", "[?, S(1)]")}) {
    Resolution r = resolve({spec});
    ASSERT_TRUE(r.errors.empty()) << r.errors.front();
    EXPECT_EQ(layoutOf(r, Target::Parameter, 10), layout) << spec;
  }
  Resolution r = resolve({"module:layers.0.up=embedding_rowwise"});
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("has no weight of its own that is looked up"), std::string::npos)
      << r.errors[0];
}

Resolution paste(llvm::StringRef text, const ModelNames &names, const Mesh &on = mesh) {
  Plan plan;
  std::vector<std::string> errors;
  parseYaml(text, "plan.yaml", plan, errors);
  EXPECT_TRUE(errors.empty());
  return resolvePlan(plan, on, names);
}

TEST(Resolve, PastedRulesThatMatchNothingAreRemarks) {
  Resolution r = paste("base_model_tp_plan:\n"
                       "  layers.*.up: colwise\n"
                       "  layers.*.self_attn.o_proj: rowwise\n",
                       model());
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[?, S(0)]");
  EXPECT_EQ(r.remarks, std::vector<std::string>{"plan.yaml:3: 'layers.*.self_attn.o_proj' matches "
                                                "nothing of this model"});
  EXPECT_EQ(paste("modules:\n  layers.*.self_attn.o_proj: rowwise\n", model()).errors.size(), 1u);
}

/// Experts in one tensor, sinks, and a norm between sharded heads.
ModelNames experts() {
  ModelNames m;
  std::string base = "model.layers.0.mlp";
  m.parameters.push_back({{base + ".experts.gate_up_proj"}, {4, 32, 8}, {}});
  m.parameters.push_back({{base + ".experts.down_proj"}, {4, 8, 16}, {}});
  m.parameters.push_back({{base + ".experts.down_proj_bias"}, {4, 8}, {}});
  m.parameters.push_back({{"model.layers.0.self_attn.sinks"}, {4}, {}});
  m.parameters.push_back({{"model.layers.0.self_attn.q_norm.weight"}, {8}, {}});
  m.parameters.push_back({{"model.layers.0.router.bias"}, {4}, {}});
  std::vector<int64_t> stream = {2, 16, 8};
  m.modules.push_back({base + ".experts", {{0, {}}, {1, {}}, {2, {}}}, {stream}, {stream}});
  m.modules.push_back({"model.layers.0.self_attn", {{3, {}}}, {stream}, {stream}});
  m.modules.push_back({"model.layers.0.self_attn.q_norm", {{4, {}}}, {stream}, {stream}});
  return m;
}

TEST(Resolve, PlansNameBareParameters) {
  Resolution r = paste("base_model_tp_plan:\n"
                       "  layers.*.mlp.experts.gate_up_proj: packed_colwise\n"
                       "  layers.*.mlp.experts.down_proj: rowwise\n"
                       "  layers.*.mlp.experts: moe_tp_experts\n"
                       "  layers.*.self_attn.sinks: colwise\n"
                       "  layers.*.self_attn: local_params\n"
                       "  layers.*.self_attn.q_norm: replicated_with_grad_allreduce\n"
                       "  layers.*.router.bias: rowwise\n",
                       experts());
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_TRUE(r.remarks.empty());
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[?, S(1)]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 1), "[?, S(2)]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 2), "none");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 3), "[?, S(0)]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 4), "[?, R]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 5), "[?, R]");
  EXPECT_EQ(layoutOf(r, Target::ModuleOutput, 0), "none");
}

TEST(Resolve, RulesAboutBareParametersSayWhatTheyLack) {
  // A pattern means no buffers: a rule that matches nothing else is a mistake.
  ModelNames m = experts();
  m.parameters.push_back({{"model.layers.0.self_attn.table"}, {4, 8}, {}, /*isBuffer=*/true});
  Resolution r = paste("modules: {\"*.table\": colwise}\n", m);
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("'*.table' matches no module"), std::string::npos) << r.errors[0];
  r = paste("modules: {layers.0.self_attn.table: colwise}\n", m);
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 6), "[?, S(0)]");
  // Without an axis the parameter is found all the same, and a style that says nothing needs none.
  r = paste("modules: {layers.*.self_attn.sinks: colwise, layers.*.self_attn: local_params}\n", m,
            Mesh({{"x", 2}, {"y", 2}}));
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("which mesh axis"), std::string::npos) << r.errors[0];
}

TEST(Resolve, PlansForExpertsActOnTheirAxis) {
  const char *text = "base_model_ep_plan:\n"
                     "  layers.*.mlp.experts.gate_up_proj: grouped_gemm\n"
                     "  layers.*.mlp.experts.down_proj_bias: grouped_gemm\n"
                     "  layers.*.mlp.experts: ep_dispatch_experts\n";
  Resolution r = paste(text, experts(), Mesh({{"tp", 2}, {"ep", 4}}));
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[?, S(0)]");
  EXPECT_EQ(layoutOf(r, Target::Parameter, 2), "[?, S(0)]");
  // Without an axis `ep` it is that of all styles.
  r = paste(text, experts());
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[?, S(0)]");
  // Both plans on one axis disagree about the weights.
  r = paste((std::string(text) + "tp_plan: {layers.*.mlp.experts.gate_up_proj: packed_colwise}\n"),
            experts());
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("asks for tp:S(1)"), std::string::npos) << r.errors[0];
}

TEST(Resolve, TheOpBetweenAModuleAndTheUseOfItsWeightIsNamed) {
  ModelNames m = experts();
  m.parameters[4].changedBy = "'aten.mul' in model.layers.0.self_attn.q_norm (model.py:7)";
  Resolution r = paste("modules: {\"*.q_norm\": colwise}\n", m);
  EXPECT_EQ(r.errors,
            std::vector<std::string>{
                "plan.yaml:1: nothing says which dim of 'model.layers.0.self_attn.q_norm.weight' "
                "can be sharded by columns: between the module 'model.layers.0.self_attn.q_norm' "
                "and the use of its weight is 'aten.mul' in model.layers.0.self_attn.q_norm "
                "(model.py:7); place the weight by its dims, e.g. --place "
                "'param:model.layers.0.self_attn.q_norm.weight=tp:S(0)'"});
}

TEST(Resolve, DisagreementAboutATiedTableIsAnError) {
  // Whichever rule would win for one name, and whoever comes first.
  const char *wanted[] = {"'model.embed.weight'", "'lm_head.weight'", "is tied to", "tp:S(0)",
                          "tp:S(1)"};
  for (auto specs : {std::initializer_list<const char *>{"module:model.embed=embedding_rowwise",
                                                         "module:*head=rowwise"},
                     {"module:*head=rowwise", "module:model.embed=embedding_rowwise"},
                     {"param:lm_head.weight=tp:S(1)", "param:*.embed.weight=tp:S(0)"},
                     {"module:*{embed,head}=colwise"}}) {
    Resolution r = resolve(specs);
    ASSERT_EQ(r.errors.size(), 1u);
    for (const char *part : wanted)
      EXPECT_NE(r.errors[0].find(part), std::string::npos) << r.errors[0];
  }
}

TEST(Resolve, AnExactNameThatBeatsAPatternOnATiedNameIsARemark) {
  Resolution r = resolve({"param:*=dp:S(0)", "param:lm_head.weight=dp:R"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 10), "[R, ?]");
  ASSERT_EQ(r.remarks.size(), 1u);
  EXPECT_NE(r.remarks[0].find("'lm_head.weight' is tied to 'model.embed.weight': dp:R replaces "
                              "dp:S(0) of '*'"),
            std::string::npos)
      << r.remarks[0];
  EXPECT_TRUE(resolve({"param:*=dp:S(0)", "param:*.up.weight=dp:S(0)"}).remarks.empty());
}

TEST(Resolve, MistakesNameTheNearest) {
  Resolution r = resolve({"module:layers.*.upp=colwise", "param:*.up.weight=ep:S(0)",
                          "input:1=dp:S(0)", "param:*.norm.weight=tp:S(1)", "output:logit=R"});
  ASSERT_EQ(r.errors.size(), 6u); // the last but one hits two layers
  EXPECT_NE(r.errors[0].find("the nearest are model.layers.0.up"), std::string::npos)
      << r.errors[0];
  EXPECT_NE(r.errors[1].find("mesh has no axis 'ep'; it has dp, tp"), std::string::npos)
      << r.errors[1];
  EXPECT_NE(r.errors[2].find("there is no input 1; the model has 1"), std::string::npos)
      << r.errors[2];
  EXPECT_NE(r.errors[3].find("tp:S(1) does not fit 'model.layers.0.norm.weight'"),
            std::string::npos)
      << r.errors[3];
  EXPECT_NE(r.errors[5].find("the nearest are logits"), std::string::npos) << r.errors[5];
}

TEST(Resolve, ModulesToRecomputeExist) {
  Plan plan;
  plan.recompute = {{"layers.*.up", "plan.yaml:1"}, {"layers.*.upp", "plan.yaml:2"}};
  Resolution r = resolvePlan(plan, mesh, model());
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_EQ(r.errors[0].rfind("plan.yaml:2: 'layers.*.upp' matches no module of the model; the "
                              "nearest are model.layers.0.up",
                              0),
            0u)
      << r.errors[0];
}

TEST(Resolve, NegativeDimsCountFromTheEnd) {
  Resolution r = resolve({"param:*.up.{weight,bias}=tp:S(-1)", "input:0=dp:S(-2)"});
  ASSERT_TRUE(r.errors.empty()) << r.errors.front();
  EXPECT_EQ(layoutOf(r, Target::Parameter, 0), "[?, S(1)]"); // of rank 2
  EXPECT_EQ(layoutOf(r, Target::Parameter, 1), "[?, S(0)]"); // of rank 1
  EXPECT_EQ(layoutOf(r, Target::Input, 0), "[S(0), ?]");
  ASSERT_EQ(resolve({"input:0=dp:S(-3)"}).errors.size(), 1u);
  EXPECT_EQ(resolve({"input:0=dp:S(-3)"}).errors[0],
            "--place input:0=dp:S(-3): dp:S(-3) does not fit 'input_ids': axis \"dp\": S(-3): dim "
            "-3 is out of range for a tensor of rank 2");
}

TEST(Resolve, WeightsAreNotPartial) {
  for (const char *reduction : {"sum", "avg", "min", "max", "prod"}) {
    std::string spec = "param:*.0.up.bias=tp:P(" + std::string(reduction) + ")";
    Resolution r = resolve({spec.c_str()});
    ASSERT_EQ(r.errors.size(), 1u) << spec;
    EXPECT_EQ(r.errors[0],
              "--place " + spec + ": tp:P(" + reduction +
                  ") does not fit 'model.layers.0.up.bias': every rank loads a parameter or buffer "
                  "from the file, so none has a partial value; write tp:R for a whole copy on "
                  "every rank, or tp:S(d) for a shard of dim d");
  }
  EXPECT_TRUE(resolve({"input:0=tp:P(sum)", "output:0=tp:P(sum)"}).errors.empty());
}

TEST(Resolve, OnlyWhatTheModelReturnsHasAPosition) {
  Plan plan;
  std::vector<std::string> errors;
  for (const char *spec : {"output:0=R", "output:1=R", "output:x=tp:S(0)", "output:seen=R"})
    parsePlaceSpec(spec, plan, errors);
  ModelNames m = model();
  m.outputs.push_back({{"x"}, {4}, {}}); // an input that the model changes
  m.parameters.push_back({{"seen"}, {4}, {}, /*isBuffer=*/true});
  Resolution r = resolvePlan(plan, mesh, m);
  ASSERT_EQ(r.errors.size(), 2u);
  EXPECT_EQ(r.errors[0], "--place output:1=R: there is no output 1; the model has 1");
  EXPECT_EQ(r.errors[1], "--place output:seen=R: 'seen' is a parameter or buffer: its new value "
                         "is placed as it is; write param:seen");
  EXPECT_EQ(layoutOf(r, Target::Output, 1), "[?, S(0)]");
}

TEST(Resolve, DisagreementIsAnError) {
  Resolution r = resolve({"param:*.up.weight=tp:S(1)", "module:*.0.up=colwise"});
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("asks for tp:S(0) on 'model.layers.0.up.weight', but '*.up.weight'"),
            std::string::npos)
      << r.errors[0];
}

TEST(Resolve, AModuleWithoutWeightsNamesItsParts) {
  Resolution r = resolve({"module:model.layers.0=colwise"});
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("its parts are model.layers.0.up"), std::string::npos) << r.errors[0];
}

TEST(Resolve, StylesNeedOneAxis) {
  EXPECT_EQ(resolve({"module:*.up=colwise"}, Mesh({{"x", 4}})).errors.size(), 0u);
  Resolution r = resolve({"module:*.up=colwise"}, Mesh({{"x", 2}, {"y", 2}}));
  ASSERT_EQ(r.errors.size(), 1u);
  EXPECT_NE(r.errors[0].find("the axes are x, y"), std::string::npos) << r.errors[0];
}

} // namespace
