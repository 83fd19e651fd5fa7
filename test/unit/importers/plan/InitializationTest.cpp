// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Training.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace shardc::plan;

namespace {

std::vector<std::string> problemsOf(const std::string &list, Training *result = nullptr) {
  Training training;
  std::vector<std::string> problems;
  parseTraining("{init: " + list + "}", "plan", training, problems);
  for (const std::string &problem : training.validate())
    problems.push_back(problem);
  if (result)
    *result = training;
  return problems;
}

InitialValues valuesOf(const std::string &entry, std::vector<int64_t> shape) {
  Training training;
  EXPECT_EQ(problemsOf("[{parameters: \"*\", " + entry + "}]", &training),
            std::vector<std::string>());
  std::string problem;
  auto values = training.init.front().valuesOf(shape, problem);
  EXPECT_TRUE(values) << problem;
  return values.value_or(InitialValues());
}

using Kind = InitialValues::Kind;

TEST(Initialization, HasTheDefaultsOfPyTorch) {
  EXPECT_EQ(valuesOf("distribution: uniform", {3}), (InitialValues{Kind::Uniform, 0, 0, 0, 1}));
  EXPECT_EQ(valuesOf("distribution: normal", {3}), (InitialValues{Kind::Normal, 0, 1, 0, 0}));
  EXPECT_EQ(valuesOf("distribution: trunc_normal, std: 0.5", {3}),
            (InitialValues{Kind::TruncatedNormal, 0, 0.5, -2, 2}));
  EXPECT_EQ(valuesOf("distribution: ones", {}), (InitialValues{Kind::Constant, 1, 0, 0, 0}));
  EXPECT_EQ(valuesOf("distribution: constant, value: -3", {2, 2}),
            (InitialValues{Kind::Constant, -3, 0, 0, 0}));
}

// Of a kernel of 5 outputs, 3 inputs and 2 x 2 positions: fans of 12 and 20.
TEST(Initialization, ScalesByTheNumbersOfInputsAndOutputs) {
  const std::vector<int64_t> shape = {5, 3, 2, 2};
  EXPECT_DOUBLE_EQ(valuesOf("distribution: kaiming_normal", shape).deviation, std::sqrt(2. / 12));
  EXPECT_DOUBLE_EQ(
      valuesOf("distribution: kaiming_normal, mode: fan_out, nonlinearity: relu", shape).deviation,
      std::sqrt(2. / 20));
  // torch.nn.Linear has a of sqrt(5): bounds of 1 / sqrt(fan_in).
  EXPECT_DOUBLE_EQ(valuesOf("distribution: kaiming_uniform, a: 2.23606797749979", shape).high,
                   std::sqrt(1. / 12));
  EXPECT_DOUBLE_EQ(valuesOf("distribution: kaiming_uniform, nonlinearity: tanh", shape).low,
                   -5. / 3 * std::sqrt(3. / 12));
  EXPECT_DOUBLE_EQ(valuesOf("distribution: xavier_uniform, gain: 2", shape).high,
                   2 * std::sqrt(6. / 32));
  EXPECT_DOUBLE_EQ(valuesOf("distribution: xavier_normal", shape).deviation, std::sqrt(2. / 32));
  EXPECT_EQ(valuesOf("distribution: kaiming_normal", {4, 0}).kind, Kind::Constant);
}

TEST(Initialization, NeedsTwoDimsForFans) {
  Training training;
  problemsOf("[{parameters: \"*\", distribution: xavier_normal}]", &training);
  std::string problem;
  EXPECT_FALSE(training.init.front().valuesOf({7}, problem));
  EXPECT_EQ(problem.substr(0, 10), "has 1 dim,");
}

TEST(Initialization, SaysAllThatIsWrong) {
  auto problems = problemsOf(
      "[{parameters: \"*\", distribution: orthogonal}, {parameters: a, distribution: uniform, std: "
      "1, a: 2}, "
      "{parameters: a, distribution: kaiming_normal, mode: fan, nonlinearity: gelu}, "
      "{parameters: a, distribution: constant}, {parameters: a, distribution: normal, std: -1}, "
      "{parameters: a, distribution: truncated_normal, std: 0, a: 1, b: 1}, {parameters: a, "
      "distribution: unifrom}, "
      "{parameters: a, distribution: ones, value: 1}]");
  std::vector<std::string> wanted = {
      "init[0].distribution 'orthogonal' is not supported",
      "init[1].std is nothing that 'uniform' takes; it takes a, b",
      "init[1].a is 2, which is not below b, 1",
      "init[2].mode is fan_in or fan_out, not 'fan'",
      "init[2].nonlinearity is one that",
      "init[3].value is what a constant needs",
      "init[4].std must not be negative, not -1",
      "init[5].std must be positive, not 0",
      "init[5].a is 1, which is not below b, 1",
      "init[6].distribution is one of uniform, normal, truncated_normal, kaiming_uniform, "
      "kaiming_normal, "
      "xavier_uniform, xavier_normal, constant, zeros, ones, keep, not 'unifrom'; did you mean "
      "uniform?",
      "init[7].value is nothing that 'ones' takes; it takes nothing"};
  ASSERT_EQ(problems.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(problems[i].substr(0, wanted[i].size()), wanted[i]);
  EXPECT_EQ(problemsOf("[{distribution: ones, stdd: 1}]").size(), 2u);
}

TEST(Initialization, PrintsWhatItReads) {
  Training training, again;
  problemsOf("[{parameters: [a, \"b.*\"], distribution: kaiming_uniform, a: 0.5, mode: fan_out}, "
             "{parameters: \"*\", distribution: zeros}]",
             &training);
  std::vector<std::string> errors;
  parseTraining(printTraining(training), "printed", again, errors);
  EXPECT_EQ(errors, std::vector<std::string>());
  EXPECT_EQ(again, training);
  EXPECT_EQ(again.init.size(), 2u);
}

} // namespace
