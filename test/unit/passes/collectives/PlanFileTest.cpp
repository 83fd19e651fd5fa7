// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans from files: what is written is read back, and everything that contradicts the graph is
// named.
#include "passes/collectives/exported/PlanFile.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/RandomGraph.h"

#include <sstream>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::RandomGraph;

namespace {

constexpr auto AG = CollectiveKind::AllGather;
constexpr auto RS = CollectiveKind::ReduceScatter;
constexpr auto A2A = CollectiveKind::AllToAll;

/// make -> a, b (gathers), r (reduce) and t (all-to-all); use needs a and b. Two nodes are "twin".
Graph graphOfPlans() {
  Builder b;
  GroupId g = b.group("g", {0, 2}), same = b.group("same", {0, 2});
  ValueId x = b.kernel("make", {b.input(8)}, 1, 8);
  ValueId first = b.run("a", AG, g, x, 16), second = b.run("b", AG, g, x, 16);
  b.output(b.kernel("use", {first, second}, 1, 8));
  b.output(b.run("r", RS, g, x, 4, "sum"));
  b.output(b.run("e", AG, same, x, 16));
  b.output(b.run("t", A2A, g, x, 8));
  b.view("twin", x);
  b.view("twin", x);
  return b.finish();
}

using Errors = std::vector<std::string>;

Errors mistakesIn(std::string_view json) {
  Graph graph = graphOfPlans();
  Errors errors;
  std::optional<Plan> plan = parsePlan(json, graph, errors);
  EXPECT_EQ(plan.has_value(), errors.empty());
  return errors;
}

/// Items before which and after which those of the others stand, one a line; the first is on
/// line 2.
Errors mistakesAmong(const std::string &items,
                     const std::string &rest = R"({"op": "r"}, {"op": "r.wait"}, {"op": "e"},
{"op": "e.wait"}, {"op": "t"}, {"op": "t.wait"}])") {
  return mistakesIn("[\n" + items + rest);
}

const std::string bucket = R"({"op": "make"},
{"pack": "B"},
{"start": "B", "kind": "AG", "members": ["a", "b"]},
{"wait": "B"},
{"unpack": "B"},
{"op": "use"},
)";
std::string with(std::string text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PlanFile, ReadsWhatIsAPlan) {
  EXPECT_EQ(mistakesAmong(bucket), Errors{});
  // The kind by its long name, and in any layout.
  EXPECT_EQ(mistakesAmong(with(bucket, "AG", "all_gather")), Errors{});
  std::string flat = bucket;
  std::erase(flat, '\n');
  EXPECT_EQ(mistakesAmong(flat), Errors{});
}

TEST(PlanFile, WhatIsNoPlan) {
  EXPECT_EQ(mistakesIn("{}"), Errors{"a plan is an array of items, as --emit writes it"});
  EXPECT_EQ(mistakesIn("3"), Errors{"a plan is an array of items, as --emit writes it"});
  EXPECT_EQ(mistakesIn("[").size(), 1u);
  EXPECT_EQ(mistakesIn("").size(), 1u);
  EXPECT_EQ(
      mistakesAmong(R"(7, {"op": 3},
{}, {"op": "make", "pack": "B"}, {"op": "make", "op": "make"},
{"op": "make", "members": [], "frequency": 2},
)" + with(bucket, "{\"op\": \"make\"},\n", "")),
      (Errors{"2:1: an item is an object, such as {\"op\": NAME}",
              "2:4: the name of a node or a bucket is a string",
              "3:1: an item has one of \"op\", \"pack\", \"start\", \"wait\" and \"unpack\"",
              "3:5: an item has one of \"op\", \"pack\", \"start\", \"wait\" and \"unpack\"",
              "3:34: 'op' is there twice",
              "3:34: an item has one of \"op\", \"pack\", \"start\", \"wait\" and \"unpack\"",
              "4:1: items have no 'frequency'", "4:1: only a \"start\" has a kind and members"}));
}

TEST(PlanFile, NamesAndKindsThatTheGraphDoesNotHave) {
  EXPECT_EQ(mistakesAmong(R"({"op": "made"}, {"op": "twin"}, {"wait": "C"},)"
                          "\n" +
                          bucket),
            (Errors{"2:1: the graph has no node 'made'", "2:17: the graph has several nodes 'twin'",
                    "2:33: no bucket 'C' is started"}));
  // Of a bucket that lost a member only that is said.
  EXPECT_EQ(mistakesAmong(with(bucket, "\"b\"]", "\"c\"]")),
            (Errors{"4:1: the graph has no node 'c'", "7:1: use: needs b, which has not run"}));
  EXPECT_EQ(
      mistakesAmong(with(bucket, "[\"a\", \"b\"]", "\"a\"")),
      (Errors{"4:1: the members of bucket 'B' are a list of names",
              "7:1: use: needs a, which has not run", "7:1: use: needs b, which has not run"}));
  EXPECT_EQ(mistakesAmong(with(bucket, "\"AG\"", "\"RS\"")),
            Errors{"4:1: a: is of kind AG, but its bucket is said to be of kind RS"});
  EXPECT_EQ(mistakesAmong(with(bucket, "\"AG\"", "\"gather\"")),
            Errors{"4:1: the kind of bucket 'B' is not \"AG\", \"RS\" or \"AR\""});
  EXPECT_EQ(mistakesAmong(with(bucket, "\"kind\": \"AG\", ", "")),
            Errors{"4:1: the kind of bucket 'B' is not \"AG\", \"RS\" or \"AR\""});
  EXPECT_EQ(mistakesAmong(with(bucket, "{\"wait\"", R"({"start": "B", "kind": "AG", "members": []},
{"wait")")),
            Errors{"5:1: bucket 'B' is started twice"});
  std::string longName(1000, 'x');
  EXPECT_EQ(mistakesAmong("{\"op\": \"" + longName + "\"},\n" + bucket),
            Errors{"2:1: the graph has no node '" + longName.substr(0, 120) + "...'"});
  EXPECT_EQ(mistakesAmong(R"({"op": "\u0000\u001b[1m"},
)" + bucket),
            Errors{R"(2:1: the graph has no node '\u0000\u001b[1m')"});
}

TEST(PlanFile, ContradictionsAreReportedTogether) {
  // Equal ranks are not one group here: plan files have names.
  EXPECT_EQ(mistakesIn(R"([
{"op": "r.wait"},
{"op": "make"},
{"op": "make"},
{"pack": "B"},
{"wait": "B"},
{"start": "B", "kind": "AG", "members": ["a", "b", "e"]},
{"unpack": "B"},
{"op": "a"},
{"op": "r"},
{"op": "t"}
])"),
            (Errors{"2:1: r.wait: needs r, which has not run", "4:1: make: runs twice",
                    "6:1: bucket of a: waited for out of order or twice",
                    "7:1: e: differs in kind, group or reduction from a in its bucket",
                    "9:1: a: runs alone and in a bucket", "an output: needs use, which has not run",
                    "an output: needs t.wait, which has not run"}));
}

TEST(PlanFile, PlacesAreThoseOfTheText) {
  EXPECT_EQ(mistakesIn("\n [ {\"op\": \"}],{\\\"\\\\\"},\r\n\t{\"op\"\n:\n\"two\"} ]").size(), 9u);
  Errors errors = mistakesIn("\n [ {\"op\": \"}],{\\\"\\\\\"},\r\n\t{\"op\"\n:\n\"two\"} ]");
  EXPECT_EQ(errors[0], R"(2:4: the graph has no node '}],{\"\\')");
  EXPECT_EQ(errors[1], "3:2: the graph has no node 'two'");
}

/// Lines taken out, doubled, exchanged, and with bytes of other lines: whatever is then accepted is
/// a plan, and comes back as it was written.
TEST(PlanFile, NothingIsTakenForAPlanThatIsNone) {
  cost::SimV1 model;
  size_t accepted = 0, refused = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    Graph graph = RandomGraph(seed, {}).make();
    OptimizeOptions options;
    options.buckets.groupsByName = true;
    OptimizeResult result = optimize(graph, model, options);
    ASSERT_EQ(result.error, "");
    std::ostringstream out;
    writePlan(graph, result.plan, out);
    Errors errors;
    std::optional<Plan> read = parsePlan(out.str(), graph, errors);
    ASSERT_TRUE(read) << errors.front();
    EXPECT_EQ(evaluatePlan(graph, model, *read).after.stepUs, result.after.stepUs);
    for (int mutant = 0; mutant != 60; ++mutant) {
      std::vector<std::string> lines;
      std::istringstream in(out.str());
      for (std::string line; std::getline(in, line);)
        lines.push_back(line);
      for (uint32_t edits = 1 + random() % 3; edits != 0; --edits) {
        std::string &one = lines[random() % lines.size()], &other = lines[random() % lines.size()];
        switch (random() % 6) {
        case 0:
          one.clear();
          break;
        case 1:
          one += other;
          break;
        case 2:
        case 3:
          std::swap(one, other);
          break;
        case 4:
          one = other.substr(0, random() % (other.size() + 1)) + one;
          break;
        default:
          if (!one.empty())
            one[random() % one.size()] = other.empty() ? '\xff' : other[random() % other.size()];
        }
      }
      std::string text;
      for (const std::string &line : lines)
        text += line + "\n";
      errors.clear();
      std::optional<Plan> plan = parsePlan(text, graph, errors);
      ASSERT_EQ(plan.has_value(), errors.empty());
      ++(plan ? accepted : refused);
      if (!plan)
        continue;
      ASSERT_EQ(checkPlan(graph, *plan, {true, true}), "");
      std::ostringstream again;
      writePlan(graph, *plan, again);
      std::optional<Plan> same = parsePlan(again.str(), graph, errors);
      ASSERT_TRUE(same);
      double step = evaluatePlan(graph, model, *plan).after.stepUs;
      EXPECT_GE(step, result.bounds.criticalPathUs * (1 - 1e-9));
      EXPECT_EQ(step, evaluatePlan(graph, model, *same).after.stepUs);
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 1000u);
}

} // namespace
