// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bucketing on its own: the rules B1 to B9, one small program each.
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RoundModel.h"

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::RoundModel;

namespace {

constexpr auto AG = CollectiveKind::AllGather;
constexpr auto RS = CollectiveKind::ReduceScatter;
constexpr auto AR = CollectiveKind::AllReduce;
constexpr auto A2A = CollectiveKind::AllToAll;
constexpr uint64_t MiB = 1 << 20;

/// Buckets as "a b|c d (reason)", in order of their starts.
std::string bucketsOf(const Graph &graph, const char *caps = "1000", OptimizeOptions options = {}) {
  std::string error;
  options.schedule = false;
  options.buckets.caps = BucketCaps::parse(caps, error).value();
  if (!options.memoryLimit)
    options.memoryLimit = UINT64_MAX;
  OptimizeResult result = optimize(graph, RoundModel(), options);
  EXPECT_EQ(result.error, "");
  std::string text;
  for (const BucketRecord &bucket : result.buckets) {
    text += text.empty() ? "" : "|";
    for (NodeId member : bucket.members)
      text += graph.nameOf(member) + " ";
    text += "(" + std::string(textOf(bucket.closed)) + ")";
  }
  return text;
}

std::string reasonOf(const Graph &graph, const char *name, const char *caps = "1000") {
  std::string error;
  OptimizeOptions options;
  options.schedule = false;
  options.buckets.caps = BucketCaps::parse(caps, error).value();
  options.memoryLimit = UINT64_MAX;
  for (const AloneRecord &alone : optimize(graph, RoundModel(), options).alone)
    if (graph.nameOf(alone.node) == name)
      return std::string(textOf(alone.reason));
  return "in a bucket";
}

TEST(FormBuckets, KeysAreKindGroupTypeAndReduction) { // B1
  Builder b;
  // Irregular and interleaved groups; "even" twice under different names.
  GroupId even = b.group("even", {0, 2, 4, 6}), odd = b.group("odd", {1, 3, 5, 7}),
          again = b.group("again", {0, 2, 4, 6}), other = b.group("other", {0, 4, 2, 6});
  ValueId x = b.input(64, 1), y = b.input(64, 2);
  b.output(b.run("e1", AG, even, x, 256));
  b.output(b.run("o1", AG, odd, x, 256));
  b.output(b.run("e2", AG, again, x, 256));
  b.output(b.run("o2", AG, odd, x, 256));
  b.output(b.run("p", AG, other, x, 256));
  b.output(b.run("t", AG, even, y, 256));
  b.output(b.run("s", RS, even, x, 16, "sum"));
  b.output(b.run("m", RS, even, x, 16, "max"));
  b.output(b.run("s2", RS, even, x, 16, "sum"));
  Graph graph = b.finish();
  EXPECT_EQ(bucketsOf(graph), "e1 e2 (complete)|o1 o2 (complete)|s s2 (complete)");
  OptimizeOptions byName;
  byName.buckets.groupsByName = true;
  EXPECT_EQ(bucketsOf(graph, "1000", byName), "o1 o2 (complete)|s s2 (complete)");
  EXPECT_EQ(reasonOf(graph, "m"),
            "no other collective has its kind, group, element type and reduction");
}

Graph gathers(std::vector<uint64_t> mib) {
  Builder b;
  GroupId g = b.group("g", 2);
  for (size_t i = 0; i != mib.size(); ++i)
    b.output(b.run("a" + std::to_string(i), AG, g, b.input(mib[i] * MiB / 2), mib[i] * MiB));
  return b.finish();
}

TEST(FormBuckets, Caps) { // B2
  Graph graph = gathers({1, 1, 2, 3, 9, 1, 1});
  EXPECT_EQ(bucketsOf(graph, "4"), "a0 a1 a2 (cap)|a3 a5 (cap)");
  EXPECT_EQ(bucketsOf(graph, "2,100"), "a0 a1 (cap)|a2 a3 a4 a5 a6 (complete)");
  // The last cap of a list goes on.
  EXPECT_EQ(bucketsOf(graph, "2,3"), "a0 a1 (cap)|a5 a6 (complete)");
  EXPECT_EQ(reasonOf(graph, "a4", "4"), "it is larger than the bucket cap");
  EXPECT_EQ(reasonOf(graph, "a6", "4"), "no collective that could join it was ready in time");
  EXPECT_EQ(reasonOf(graph, "a2", "2,3"), "the next collective does not fit under the bucket cap "
                                          "with it");
  // 10 us of latency at 1 byte/us: five latencies are 40 bytes; nothing here is as small.
  EXPECT_EQ(bucketsOf(graph, "auto"), "");
  EXPECT_EQ(reasonOf(graph, "a0", "auto"), "it is larger than the bucket cap");
}

TEST(FormBuckets, CapsAreParsed) {
  std::string error;
  EXPECT_TRUE(BucketCaps::parse("auto", error)->isAuto());
  EXPECT_EQ(BucketCaps::parse("1,25", error)->bytesAt(0), MiB);
  EXPECT_EQ(BucketCaps::parse("1,25", error)->bytesAt(7), 25 * MiB);
  EXPECT_EQ(BucketCaps::parse("0.5", error)->bytesAt(0), MiB / 2);
  for (const char *text : {"", "1,", "x", "-1", "0", "1e12", "1;2", "nan", "auto,1"}) {
    EXPECT_FALSE(BucketCaps::parse(text, error)) << text;
    EXPECT_NE(error.find("is not 'auto', a number of MiB"), std::string::npos);
  }
}

TEST(FormBuckets, ChainsNeverShare) { // B3, B4
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(8), y = b.input(8);
  ValueId a1 = b.run("a1", AR, g, x, 8, "sum");
  ValueId a2 = b.run("a2", AR, g, b.kernel("k", {a1}, 1, 8), 8, "sum");
  ValueId a3 = b.run("a3", AR, g, b.kernel("l", {a2}, 1, 8), 8, "sum");
  ValueId b1 = b.run("b1", AR, g, y, 8, "sum");
  b.output(a3);
  b.output(b1);
  EXPECT_EQ(bucketsOf(b.finish()), "a3 b1 (complete)");
}

/// A1 -> B1 and B2 -> A2, of different kinds: both pairs in buckets would be a cycle.
TEST(FormBuckets, NoCycleOfTwoAcrossKinds) { // B3
  Builder b;
  GroupId g = b.group("g", 2), h = b.group("h", 4);
  ValueId a1 = b.run("A1", AR, g, b.input(8), 8, "sum");
  ValueId b1 = b.run("B1", RS, h, b.kernel("k", {a1}, 1, 8), 2, "sum");
  ValueId b2 = b.run("B2", RS, h, b.input(8), 2, "sum");
  ValueId a2 = b.run("A2", AR, g, b.kernel("l", {b2}, 1, 8), 8, "sum");
  b.output(b1);
  b.output(a2);
  EXPECT_EQ(bucketsOf(b.finish()), "B1 B2 (complete)");
}

TEST(FormBuckets, CyclesAreNamed) {
  Builder b;
  GroupId g = b.group("g", 2), h = b.group("h", 4);
  ValueId a0 = b.run("A0", AR, g, b.input(8), 8, "sum");
  ValueId a1 = b.run("A1", AR, g, b.input(8), 8, "sum");
  ValueId b1 = b.run("B1", RS, h, b.kernel("k", {a0, a1}, 1, 8), 2, "sum");
  ValueId b2 = b.run("B2", RS, h, b.input(8), 2, "sum");
  ValueId a2 = b.run("A2", AR, g, b.kernel("l", {b2}, 1, 8), 8, "sum");
  b.output(b1);
  b.output(a2);
  // A2 depends on A1 only through the bucket of B1 and B2.
  EXPECT_EQ(bucketsOf(b.finish()), "A0 A1 (cycle)|B1 B2 (complete)");
}

/// A1 -> B1, B2 -> C1, C2 -> A2.
TEST(FormBuckets, NoCycleOfThree) {
  Builder b;
  GroupId g = b.group("g", 2), h = b.group("h", 4), i = b.group("i", 8);
  ValueId a1 = b.run("A1", AG, g, b.kernel("k1", {b.input(8)}, 1, 8), 16);
  ValueId b2 = b.run("B2", AG, h, b.kernel("k2", {b.input(8)}, 1, 8), 32);
  ValueId c2 = b.run("C2", RS, i, b.kernel("k3", {b.input(8)}, 1, 8), 1, "sum");
  ValueId b1 = b.run("B1", AG, h, b.kernel("k4", {a1}, 1, 8), 32);
  ValueId c1 = b.run("C1", RS, i, b.kernel("k5", {b2}, 1, 8), 1, "sum");
  ValueId a2 = b.run("A2", AG, g, b.kernel("k6", {c2}, 1, 8), 16);
  for (ValueId value : {b1, c1, a2})
    b.output(value);
  // Two of the three pairs can be had; checkPlan has accepted the order.
  EXPECT_EQ(bucketsOf(b.finish()), "B2 B1 (complete)|C2 C1 (complete)");
}

TEST(FormBuckets, MixedTypesShareGathersOnly) { // B5
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(8, 1), y = b.input(8, 2);
  b.output(b.run("a", AG, g, x, 16));
  b.output(b.run("b", AG, g, y, 16));
  b.output(b.run("r", RS, g, x, 4, "sum"));
  b.output(b.run("s", RS, g, y, 4, "sum"));
  Graph graph = b.finish();
  EXPECT_EQ(bucketsOf(graph), "");
  OptimizeOptions mixed;
  mixed.buckets.mixedDtype = true;
  EXPECT_EQ(bucketsOf(graph, "1000", mixed), "a b (complete)");
}

TEST(FormBuckets, UnevenAndEmptyOperands) { // B7
  Builder b;
  GroupId g = b.group("g", 3);
  b.output(b.run("a", AG, g, b.input(5), 13));
  b.output(b.run("none", AG, g, b.input(0), 3));
  ValueId result = b.graph.addTensor(0);
  b.graph.addCollective({AG, g, ""}, "bare", {}, std::vector{result});
  b.output(b.wait("bare.wait", result));
  b.output(b.run("c", AG, g, b.input(1), 3));
  EXPECT_EQ(bucketsOf(b.finish()), "a none c (complete)");
}

TEST(FormBuckets, OrderOfFirstUseAndOfProduction) { // B8
  Builder b;
  GroupId g = b.group("g", 2);
  std::vector<ValueId> gathered;
  for (int i = 0; i != 4; ++i) {
    ValueId cast = b.kernel("cast" + std::to_string(i), {b.input(2 * MiB)}, 1, MiB);
    gathered.push_back(b.run("w" + std::to_string(i), AG, g, cast, 2 * MiB));
  }
  // Used in the order 3, 2, 1, 0.
  ValueId y = b.input(8);
  for (int i = 4; i-- != 0;)
    y = b.kernel("use" + std::to_string(i), {y, gathered[i]}, 1, 8);
  b.output(y);
  Graph graph = b.finish();
  EXPECT_EQ(bucketsOf(graph, "4"), "w0 w1 (cap)|w2 w3 (complete)");
  // Only w0 and w1 are there when w0 is used; the others are moved up with their casts.
  Builder c;
  GroupId h = c.group("h", 2);
  ValueId z = c.input(8);
  for (int i = 0; i != 3; ++i) {
    ValueId cast = c.kernel("cast" + std::to_string(i), {c.input(8)}, 1, 8);
    z = c.kernel("use" + std::to_string(i), {z, c.run("w" + std::to_string(i), AG, h, cast, 16)}, 1,
                 8);
  }
  c.output(z);
  Graph chain = c.finish();
  EXPECT_EQ(bucketsOf(chain), "w0 w1 w2 (complete)");
  OptimizeOptions production;
  production.gathers = BucketOrder::Production;
  EXPECT_EQ(bucketsOf(chain, "1000", production), "");
}

TEST(FormBuckets, GradientsInOrderOfProduction) { // B8
  Builder b;
  GroupId g = b.group("dp", 4);
  ValueId y = b.input(8);
  for (int i = 0; i != 5; ++i) {
    y = b.kernel("dx" + std::to_string(i), {y}, 1, 8);
    ValueId gradient = b.kernel("dw" + std::to_string(i), {y}, 1, MiB);
    b.output(b.run("g" + std::to_string(i), AR, g, gradient, MiB, "sum"));
  }
  EXPECT_EQ(bucketsOf(b.finish(), "1,2"), "g1 g2 (cap)|g3 g4 (complete)");
}

TEST(FormBuckets, MemoryClosesBuckets) { // B9
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId y = b.input(8);
  for (int i = 0; i != 6; ++i) {
    y = b.kernel("dx" + std::to_string(i), {y}, 1, 8);
    ValueId gradient = b.kernel("dw" + std::to_string(i), {y}, 1, 1000);
    b.output(b.run("g" + std::to_string(i), RS, g, gradient, 10, "sum"));
  }
  Graph graph = b.finish();
  OptimizeOptions options;
  options.memoryLimit = 4200; // two gradients, and as much to pack them
  EXPECT_EQ(bucketsOf(graph, "1000", options), "g0 g1 (memory)|g2 g3 (memory)|g4 g5 (complete)");
}

TEST(FormBuckets, OthersStandAlone) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(8), buffer = b.input(16);
  b.output(b.run("t", A2A, g, x, 8));
  b.output(b.start("flying", AG, g, x, 16));
  ValueId result = b.graph.addTensor(16);
  b.graph.addCollective({AG, g, "", 1}, "out", std::vector{x, buffer}, std::vector{result});
  b.output(b.wait("out.wait", result));
  // Operands that are inputs, results that are outputs: ordinary.
  b.output(b.run("a", AG, g, x, 16));
  b.output(b.run("b", AG, g, x, 16));
  Graph graph = b.finish();
  EXPECT_EQ(bucketsOf(graph), "a b (complete)");
  EXPECT_EQ(reasonOf(graph, "t"), "its kind has no buckets");
  EXPECT_EQ(reasonOf(graph, "flying"), "the program returns it without a wait");
  EXPECT_EQ(reasonOf(graph, "out"), "it writes into a buffer of its own");
}

} // namespace
