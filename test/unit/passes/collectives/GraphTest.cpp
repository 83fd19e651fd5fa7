// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/Problem.h"
#include "test/unit/passes/collectives/Builder.h"

using namespace shardc::collectives;
using shardc::CollectiveKind;
using shardc::collectives::test::Builder;
using shardc::collectives::test::nodeNamed;

namespace {

constexpr auto AG = CollectiveKind::AllGather;
constexpr auto RS = CollectiveKind::ReduceScatter;

std::vector<std::string> errorsOf(Graph graph) {
  std::vector<std::string> errors;
  EXPECT_FALSE(graph.finalize(errors));
  return errors;
}

TEST(CollectiveGraph, ViewsWaitsAndOverwritesShareStorage) {
  Builder b;
  GroupId g = b.group("g", 4);
  ValueId x = b.input(64);
  ValueId v = b.view("v", x);
  ValueId started = b.start("ag", AG, g, v, 256);
  ValueId seen = b.view("seen", started);
  ValueId done = b.wait("w", seen);
  ValueId again = b.wait("w2", done);
  ValueId over = b.inPlace("add_", {again}, 1);
  b.output(over);
  Graph graph = b.finish();
  EXPECT_EQ(graph.rootOf(v), x);
  EXPECT_EQ(graph.rootOf(seen), started);
  EXPECT_EQ(graph.rootOf(over), started);
  // A view of a pending value is pending too; a waited one is not.
  EXPECT_EQ(graph.pendingOf(seen), nodeNamed(graph, "ag"));
  EXPECT_EQ(graph.pendingOf(done), none);
  EXPECT_EQ(graph.fullBytes(nodeNamed(graph, "ag")), 256u);
}

TEST(CollectiveGraph, OutBuffersHoldResultsAndDoNotCount) {
  Builder b;
  GroupId g = b.group("g", 4);
  ValueId x = b.input(256), buffer = b.input(64);
  ValueId result = b.graph.addTensor(64);
  b.graph.addCollective({RS, g, "sum", 1}, "rs", std::vector{x, buffer}, std::vector{result});
  ValueId done = b.wait("w", result);
  b.output(done);
  Graph graph = b.finish();
  EXPECT_EQ(graph.rootOf(done), buffer);
  EXPECT_EQ(graph.fullBytes(nodeNamed(graph, "rs")), 256u);
}

TEST(CollectiveGraph, ResultsInPlaceLiveInTheirOperands) {
  Builder b;
  GroupId g = b.group("g", 4);
  ValueId x = b.input(8), y = b.kernel("y", {x}, 1, 32);
  ValueId v = b.view("v", b.kernel("k", {x}, 1, 64));
  std::vector<ValueId> results = {b.graph.addTensor(64), b.graph.addTensor(32)};
  b.graph.addCollective({CollectiveKind::AllReduce, g, "sum", 0, {true, false}}, "ar",
                        std::vector{v, y}, results);
  ValueId first = b.wait("w0", results[0]), second = b.wait("w1", results[1]);
  b.output(first);
  b.output(second);
  Graph graph = b.finish();
  EXPECT_EQ(graph.rootOf(first), graph.rootOf(v));
  EXPECT_EQ(graph.rootOf(second), results[1]);
  EXPECT_TRUE(graph.isInPlace(results[0]));
  EXPECT_FALSE(graph.isInPlace(results[1]));
  // No buffers are written that others could touch: such a collective may be in a bucket.
  EXPECT_EQ(graph.outBuffers(nodeNamed(graph, "ar")), 0u);
}

TEST(CollectiveGraph, OnlyWhatNothingElseUsesIsOverwritten) {
  auto errorOf = [](auto makeOperand, bool isRead) {
    Builder b;
    GroupId g = b.group("g", 4);
    ValueId operand = makeOperand(b);
    ValueId result = b.graph.addTensor(64);
    b.graph.addCollective({CollectiveKind::AllReduce, g, "sum", 0, {true}}, "ar",
                          std::vector{operand}, std::vector{result});
    b.output(b.wait("w", result));
    if (isRead)
      b.output(b.kernel("again", {operand}, 1, 8));
    std::vector<std::string> errors;
    b.graph.finalize(errors);
    return errors.empty() ? "" : errors.front();
  };
  auto made = [](Builder &b) { return b.kernel("k", {b.input(8)}, 1, 64); };
  const std::string refused = "ar: works in place of what others use";
  EXPECT_EQ(errorOf(made, false), "");
  EXPECT_EQ(errorOf(made, true), refused);
  EXPECT_EQ(errorOf([](Builder &b) { return b.input(64); }, false), refused);
  EXPECT_EQ(errorOf([](Builder &b) { return b.view("v", b.input(64)); }, false), refused);
  EXPECT_EQ(errorOf([&](Builder &b) { return b.view("v", made(b)); }, false), "");
  // Under another name, too.
  EXPECT_EQ(errorOf(
                [&](Builder &b) {
                  ValueId k = made(b);
                  b.output(k);
                  return b.view("v", k);
                },
                false),
            refused);
}

TEST(CollectiveGraph, MistakesAreReported) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(64);
  ValueId started = b.start("ag", AG, g, x, 128);
  b.kernel("early", {started}, 1, 8);
  std::vector<std::string> errors = errorsOf(std::move(b.graph));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], "early: reads the result of ag before a wait");

  Builder c;
  ValueId later = c.graph.addTensor(8);
  c.kernel("user", {later}, 1, 8);
  EXPECT_EQ(errorsOf(std::move(c.graph)).at(0), "user: operand 0 does not exist yet");

  Builder d;
  d.start("ag", AG, 7, d.input(8), 8);
  EXPECT_EQ(errorsOf(std::move(d.graph)).at(0), "ag: names a group that was never added");

  Builder e;
  GroupId bad = e.graph.addGroup({"g", 3, {0, 1}});
  e.start("ag", AG, bad, e.input(8), 8);
  EXPECT_EQ(errorsOf(std::move(e.graph)).at(0), "ag: group 'g' lists 2 ranks for a size of 3");

  Builder f;
  GroupId two = f.group("g", 2);
  ValueId p = f.start("p", AG, two, f.input(8), 16), q = f.start("q", AG, two, f.input(8), 16);
  ValueId r0 = f.graph.addTensor(16), r1 = f.graph.addTensor(16);
  f.graph.addNode(NodeClass::Wait, "both", std::vector{p, q}, std::vector{r0, r1});
  EXPECT_EQ(errorsOf(std::move(f.graph)).at(0), "both: waits for two collectives, p and q");
}

TEST(CollectiveGraph, InternedGroupsCompareRanks) {
  Graph graph;
  GroupId a = graph.internGroup({"a", 2, {0, 2}});
  GroupId b = graph.internGroup({"b", 2, {0, 2}});
  GroupId c = graph.internGroup({"a", 2, {1, 3}});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

/// The names of the tasks that a task comes after; "!" marks those that must be complete.
std::set<std::string> before(const Problem &problem, const Graph &graph, std::string_view name) {
  std::set<std::string> names;
  for (const Dependence &d : problem.before[problem.taskOf[nodeNamed(graph, name)]])
    names.insert(graph.nameOf(problem.nodeOf[d.task]) + (d.complete ? "!" : ""));
  return names;
}
using Names = std::set<std::string>;

TEST(CollectiveGraph, BytesStayWithin64Bits) {
  auto mistakes = [](uint64_t bytes) {
    Builder b;
    ValueId x = b.input(8);
    for (int i = 0; i != 40; ++i)
      b.output(
          b.view("v" + std::to_string(i), b.kernel("k" + std::to_string(i), {x}, 1, bytes + i)));
    std::vector<std::string> errors;
    b.graph.finalize(errors);
    return errors;
  };
  // 40 storages of 2.5e16 bytes, and a few: views take none.
  EXPECT_TRUE(mistakes(Graph::mostBytes / 40 - 20).empty());
  EXPECT_EQ(mistakes(Graph::mostBytes / 40),
            std::vector<std::string>{
                "the tensors take more than 1000000000000000000 bytes together; the largest, of "
                "25000000000000039 bytes or more, is made by 'k39'"});
  EXPECT_EQ(mistakes(UINT64_MAX - 39).size(), 1u); // their sum is a small number modulo 2^64
}

TEST(CollectiveProblem, FreeNodesVanish) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(64);
  ValueId k = b.kernel("k", {x}, 1, 64);
  ValueId w = b.run("ag", AG, g, b.view("v", k), 128);
  b.output(b.kernel("user", {b.view("v2", w), k}, 1, 8));
  Graph graph = b.finish();
  Problem problem(graph);
  EXPECT_EQ(problem.numTasks(), 3u);
  EXPECT_EQ(before(problem, graph, "ag"), Names{"k"});
  EXPECT_EQ(before(problem, graph, "user"), (Names{"ag!", "k"}));
}

TEST(CollectiveProblem, ScalarsOrderNodes) {
  Builder b;
  ValueId x = b.input(64);
  ValueId k = b.kernel("k", {x}, 1, 64), l = b.kernel("l", {x}, 1, 64);
  ValueId n = b.graph.addScalar(), m = b.graph.addScalar();
  b.graph.addNode(NodeClass::Scalar, "item", std::vector{k}, std::vector{n});
  b.graph.addNode(NodeClass::Scalar, "sum", std::vector{n, l}, std::vector{m});
  ValueId out = b.graph.addTensor(8);
  b.graph.addNode(NodeClass::Compute, "user", std::vector{x, m}, std::vector{out}, 1);
  b.output(out);
  Graph graph = b.finish();
  Problem problem(graph);
  // Two tasks lead to the sum, so it stays.
  EXPECT_EQ(before(problem, graph, "user"), Names{"sum"});
  EXPECT_EQ(before(problem, graph, "sum"), (Names{"k", "l"}));
}

TEST(CollectiveProblem, OverwritesKeepTheirPlace) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.kernel("make", {b.input(64)}, 1, 64);
  ValueId early = b.kernel("early", {x}, 1, 8);
  ValueId w = b.run("rs", RS, g, x, 32, "sum");
  ValueId late = b.start("rs2", RS, g, x, 32, "sum");
  b.inPlace("add_", {b.view("v", x)}, 1);
  ValueId after = b.kernel("after", {x}, 1, 8);
  ValueId w2 = b.wait("w2", late);
  for (ValueId value : {early, w, after, w2})
    b.output(value);
  Graph graph = b.finish();
  Problem problem(graph);
  // rs has been waited for when the program overwrites x, rs2 has not: the program's own race.
  EXPECT_EQ(before(problem, graph, "add_"), (Names{"make", "early", "rs!", "rs2"}));
  EXPECT_EQ(before(problem, graph, "after"), (Names{"make", "add_"}));
}

} // namespace
