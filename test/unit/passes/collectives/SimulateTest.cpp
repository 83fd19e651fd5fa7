// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Timelines worked out by hand with a model of round numbers.
#include "passes/collectives/core/Simulate.h"
#include "passes/collectives/core/FiguresReport.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RoundModel.h"

#include <limits>
#include <sstream>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::nodeNamed;
using shardc::collectives::test::RoundModel;

namespace {

constexpr auto AG = CollectiveKind::AllGather;
constexpr auto RS = CollectiveKind::ReduceScatter;
constexpr auto AR = CollectiveKind::AllReduce;

/// Two gathers behind each other on one group, a kernel that needs the first and one that needs
/// both.
Graph twoGathers() {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId p = b.input(10), q = b.input(20);
  ValueId a = b.start("a", AG, g, p, 20), c = b.start("c", AG, g, q, 40);
  ValueId k = b.kernel("k", {b.wait("a.wait", a)}, 5, 7);
  b.output(b.kernel("l", {k, b.wait("c.wait", c)}, 5, 9));
  return b.finish();
}

TEST(CollectiveSimulate, StreamsAndStalls) {
  Figures f = simulate(twoGathers(), RoundModel());
  // a: launched at 1, ends 31. c: launched at 2, starts at 31, ends 81. k: 31 to 37. l: 81 to 87.
  EXPECT_DOUBLE_EQ(f.stepUs, 87);
  EXPECT_DOUBLE_EQ(f.totalExposedUs(), (31 - 2) + (81 - 37));
  EXPECT_DOUBLE_EQ(f.computeUs, 10);
  EXPECT_EQ(f.launches, 4u);
  EXPECT_EQ(f.waits, 2u);
  EXPECT_DOUBLE_EQ(f.commUs[0], 80);
  // Inputs 30; both results 60 until k has run; then c's 40, k's 7 and l's 9.
  EXPECT_EQ(f.peakBytes, 30u + 60 + 7);
  EXPECT_EQ(f.peakHoldBytes, 97u);
}

TEST(CollectiveSimulate, Bounds) {
  Graph graph = twoGathers();
  Bounds bounds = computeBounds(graph, RoundModel());
  EXPECT_DOUBLE_EQ(bounds.lowerBoundUs, 80);          // the group
  EXPECT_DOUBLE_EQ(bounds.lowerBoundNoLatencyUs, 60); // the same
  EXPECT_DOUBLE_EQ(bounds.criticalPathUs, 1 + 50 + 6);
}

TEST(CollectiveSimulate, BucketsPayForPacking) {
  Graph graph = twoGathers();
  Plan plan;
  plan.buckets = {{nodeNamed(graph, "a"), nodeNamed(graph, "c")}};
  using Kind = PlanItem::Kind;
  plan.items = {{Kind::Pack, 0},
                {Kind::Start, 0},
                {Kind::Wait, 0},
                {Kind::Unpack, 0},
                {Kind::Op, nodeNamed(graph, "k")},
                {Kind::Op, nodeNamed(graph, "l")}};
  std::vector<double> exposed;
  std::vector<Span> spans;
  Figures f = simulate(graph, plan, RoundModel(), {false, &spans, &exposed});
  // Pack 2 * 30 bytes: 31 us with its launch. Start at 32, 70 us. Unpack 2 * 60 bytes: 61 us.
  EXPECT_DOUBLE_EQ(f.stepUs, 32 + 70 + 61 + 12);
  EXPECT_DOUBLE_EQ(f.totalExposedUs(), 70);
  EXPECT_DOUBLE_EQ(exposed[nodeNamed(graph, "a")], 70);
  EXPECT_EQ(f.launches, 5u);
  // The packed operands live until the wait, all results beside the members' own at the unpacking.
  EXPECT_EQ(f.peakHoldBytes, 30u + 60 + 60);
  EXPECT_EQ(spans.size(), 6u); // pack, collective, stall, unpack, two kernels

  f = simulate(graph, plan, RoundModel(), {true});
  EXPECT_DOUBLE_EQ(f.stepUs, 1 + 70 + 12);
  EXPECT_EQ(f.launches, 3u);
}

TEST(CollectiveSimulate, ReduceScatterBucketsAreUsedInPlace) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId p = b.kernel("p", {b.input(4)}, 1, 100), q = b.kernel("q", {b.input(4)}, 1, 60);
  ValueId x = b.run("rs1", RS, g, p, 50, "sum"), y = b.run("rs2", RS, g, q, 30, "sum");
  b.output(x);
  b.output(b.kernel("k", {y}, 1, 2));
  Graph graph = b.finish();
  using Kind = PlanItem::Kind;
  Plan plan;
  plan.buckets = {{nodeNamed(graph, "rs1"), nodeNamed(graph, "rs2")}};
  plan.items = {{Kind::Op, nodeNamed(graph, "p")},
                {Kind::Op, nodeNamed(graph, "q")},
                {Kind::Pack, 0},
                {Kind::Start, 0},
                {Kind::Wait, 0},
                {Kind::Op, nodeNamed(graph, "k")}};
  Figures f = simulate(graph, plan, RoundModel());
  EXPECT_DOUBLE_EQ(f.stepUs, 4 + 161 + 1 + 170 + 2);
  // 8 of inputs; packing: 160 of operands and 160 packed. y's part stays: x shares its storage.
  EXPECT_EQ(f.peakHoldBytes, 8u + 160 + 160);
}

TEST(CollectiveSimulate, CollectivesReturnedInFlightCountAtTheEnd) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId k = b.kernel("k", {b.input(4)}, 1, 100);
  b.output(b.start("ar", AR, g, k, 100, "sum"));
  Figures f = simulate(b.finish(), RoundModel());
  EXPECT_DOUBLE_EQ(f.stepUs, 2 + 1 + 110);
  EXPECT_EQ(f.waits, 0u);
  EXPECT_DOUBLE_EQ(f.totalExposedUs(), 0);
}

TEST(CollectiveSimulate, OperandsAreHeldUntilTheWait) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId k = b.kernel("k", {b.input(1)}, 1, 100);
  ValueId s = b.start("rs", RS, g, k, 50, "sum");
  ValueId l = b.kernel("l", {b.input(1)}, 1, 30);
  b.output(b.wait("w", s));
  b.output(l);
  Figures f = simulate(b.finish(), RoundModel());
  EXPECT_EQ(f.peakBytes, 2u + 150);
  EXPECT_EQ(f.peakHoldBytes, 2u + 180);
}

TEST(CollectiveReport, FiguresAndTraceAreJson) {
  Graph graph = twoGathers();
  std::vector<Span> spans;
  Figures f = simulate(graph, RoundModel(), {false, &spans});
  std::ostringstream figures, trace;
  writeFigures({f, computeBounds(graph, RoundModel()), 80.5, graph.numNodes(), {{"bucket", 0.25}}},
               figures);
  EXPECT_NE(figures.str().find("\"step_us\": 87,"), std::string::npos) << figures.str();
  EXPECT_NE(figures.str().find("\"exposed_us\": {\"AG\": 73, \"RS\": 0, \"AR\": 0, \"A2A\": 0, "
                               "\"total\": 73}"),
            std::string::npos);
  EXPECT_NE(figures.str().find("\"pass_seconds\": {\"bucket\": 0.25, \"total\": 0.25}"),
            std::string::npos);
  NamedTimeline timeline{"before", &spans, nullptr};
  writeTrace(graph, {&timeline, 1}, trace);
  EXPECT_NE(trace.str().find("{\"name\": \"wait for c\", \"cat\": \"stall\", \"ph\": \"X\", "
                             "\"ts\": 37, \"dur\": 44, \"pid\": 0, \"tid\": 0}"),
            std::string::npos)
      << trace.str();
}

} // namespace
