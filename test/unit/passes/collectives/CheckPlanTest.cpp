// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every rule of the plan checker, broken once.
#include "passes/collectives/core/CheckPlan.h"
#include "test/unit/passes/collectives/Builder.h"

#include <sstream>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::nodeNamed;
using Kind = PlanItem::Kind;

namespace {

constexpr auto AG = CollectiveKind::AllGather;
constexpr auto RS = CollectiveKind::ReduceScatter;
constexpr auto A2A = CollectiveKind::AllToAll;

/// make -> a, b, d (gathers) and r, s (reduces); use needs a and b.
struct Fixture {
  Graph graph;
  Fixture() {
    Builder b;
    GroupId g = b.group("g", {0, 2}), same = b.group("same", {0, 2}), h = b.group("h", {1, 3});
    ValueId x = b.kernel("make", {b.input(8)}, 1, 8);
    ValueId y = b.kernel("makeF", {b.input(8, 1)}, 1, 8, 1);
    ValueId a = b.run("a", AG, g, x, 16), c = b.run("b", AG, g, x, 16);
    b.output(b.kernel("use", {a, c}, 1, 8));
    b.output(b.run("d", AG, h, x, 16));
    b.output(b.run("e", AG, same, x, 16));
    b.output(b.run("f", AG, g, y, 16));
    b.output(b.run("r", RS, g, x, 4, "sum"));
    b.output(b.run("s", RS, g, x, 4, "max"));
    b.output(b.run("t", A2A, g, x, 8));
    b.output(b.run("u", A2A, g, x, 8));
    graph = b.finish();
  }

  /// Words: a node, or "pack", "start", "wait", "unpack" for bucket 0. Nodes of the graph that are
  /// not named follow at the end if `rest`.
  Plan plan(const std::string &words, const std::string &members = "", bool rest = true) {
    Plan plan;
    std::set<NodeId> named;
    std::istringstream in(words), inMembers(members);
    if (!members.empty())
      plan.buckets.emplace_back();
    for (std::string word; inMembers >> word;) {
      plan.buckets[0].push_back(nodeNamed(graph, word));
      named.insert(plan.buckets[0].back());
    }
    for (std::string word; in >> word;) {
      if (word == "pack" || word == "start" || word == "wait" || word == "unpack") {
        plan.items.push_back({word == "pack"    ? Kind::Pack
                              : word == "start" ? Kind::Start
                              : word == "wait"  ? Kind::Wait
                                                : Kind::Unpack,
                              0});
        continue;
      }
      plan.items.push_back({Kind::Op, nodeNamed(graph, word)});
      named.insert(plan.items.back().id);
    }
    for (NodeId node = 0; rest && node != graph.numNodes(); ++node)
      if (!named.count(node))
        plan.items.push_back({Kind::Op, node});
    return plan;
  }
  std::string check(const std::string &words, const std::string &members = "", bool rest = true,
                    CheckOptions options = {}) {
    return checkPlan(graph, plan(words, members, rest), options);
  }
};

const char *const goodBucket = "make makeF pack start wait unpack";

TEST(CheckPlan, AcceptsOrdersAndBuckets) {
  Fixture f;
  EXPECT_EQ(checkPlan(f.graph, identityPlan(f.graph)), "");
  EXPECT_EQ(f.check(goodBucket, "a b"), "");
  // Equal ranks are one group, unless names are asked for.
  EXPECT_EQ(f.check(goodBucket, "a e"), "");
  EXPECT_EQ(f.check(goodBucket, "a e", true, {false, true}),
            "e: differs in kind, group or reduction from a in its bucket");
  EXPECT_EQ(f.check(goodBucket, "a f", true, {true, false}), "");
}

TEST(CheckPlan, RefusesBadBuckets) {
  Fixture f;
  EXPECT_EQ(f.check(goodBucket, "a"), "bucket of a: has fewer than two members");
  EXPECT_EQ(f.check(goodBucket, "a make"), "make: is no collective and cannot be in a bucket");
  EXPECT_EQ(f.check(goodBucket, "a a"), "a: is in two buckets, or twice in one");
  EXPECT_EQ(f.check(goodBucket, "a d"),
            "d: differs in kind, group or reduction from a in its bucket");
  EXPECT_EQ(f.check(goodBucket, "a r"),
            "r: differs in kind, group or reduction from a in its bucket");
  EXPECT_EQ(f.check(goodBucket, "r s"),
            "s: differs in kind, group or reduction from r in its bucket");
  EXPECT_EQ(f.check(goodBucket, "a f"), "bucket of a: members differ in element type");
  EXPECT_EQ(f.check(goodBucket, "t u"), "t: this kind of collective has no buckets");
}

TEST(CheckPlan, RefusesBadOrders) {
  Fixture f;
  EXPECT_EQ(f.check("a make"), "a: needs make, which has not run");
  EXPECT_EQ(f.check("make makeF a b use"), "use: needs a.wait, which has not run");
  EXPECT_EQ(f.check("make make"), "make: runs twice");
  EXPECT_EQ(f.check("make makeF", "", false), "an output: needs use, which has not run");
  EXPECT_EQ(f.check("make makeF start", "a b"), "bucket of a: started out of order or twice");
  EXPECT_EQ(f.check("make makeF pack start unpack", "a b"),
            "bucket of a: unpacked out of order or twice");
  EXPECT_EQ(f.check("make makeF pack start wait use unpack", "a b"),
            "use: needs a.wait, which has not run");
  EXPECT_EQ(f.check("make makeF pack start a.wait", "a b"),
            "a.wait: waits for a member of a bucket; use the bucket's wait");
  EXPECT_EQ(f.check("make makeF pack start a", "a b"), "a: runs alone and in a bucket");
  EXPECT_EQ(f.check("make makeF pack start wait", "r d"),
            "d: differs in kind, group or reduction from r in its bucket");
}

TEST(CheckPlan, RefusesDependentMembers) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId first = b.run("first", AG, g, b.input(8), 16);
  b.output(b.run("second", AG, g, first, 32));
  Graph graph = b.finish();
  Plan plan;
  plan.buckets = {{nodeNamed(graph, "first"), nodeNamed(graph, "second")}};
  plan.items = {{Kind::Pack, 0}, {Kind::Start, 0}, {Kind::Wait, 0}, {Kind::Unpack, 0}};
  EXPECT_EQ(checkPlan(graph, plan), "second: needs first, which has not run");
}

TEST(CheckPlan, EverythingIsWaitedForAndRuns) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(8);
  b.run("a", AG, g, x, 16);
  b.kernel("dead", {x}, 1, 8);
  Graph graph = b.finish();
  Plan plan;
  plan.items = {{Kind::Op, nodeNamed(graph, "a")}, {Kind::Op, nodeNamed(graph, "dead")}};
  EXPECT_EQ(checkPlan(graph, plan), "a.wait: its collective a is never waited for");
  plan.items = {{Kind::Op, nodeNamed(graph, "a")}, {Kind::Op, nodeNamed(graph, "a.wait")}};
  EXPECT_EQ(checkPlan(graph, plan), "dead: never runs");
}

TEST(CheckPlan, OverwritesKeepTheirOrder) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.kernel("make", {b.input(8)}, 1, 8);
  ValueId seen = b.kernel("before", {b.view("v", x)}, 1, 8);
  ValueId gathered = b.run("ag", AG, g, x, 16);
  b.inPlace("add_", {x}, 1);
  b.output(b.kernel("after", {x, seen, gathered}, 1, 8));
  Graph graph = b.finish();
  auto check = [&](std::vector<const char *> names) {
    Plan plan;
    for (const char *name : names)
      plan.items.push_back({Kind::Op, nodeNamed(graph, name)});
    return checkPlan(graph, plan);
  };
  EXPECT_EQ(check({"make", "ag", "ag.wait", "before", "add_", "after"}), "");
  EXPECT_EQ(check({"make", "ag", "ag.wait", "add_", "before", "after"}),
            "before and add_ changed their order on a storage that one of them overwrites");
  // The gather still reads what add_ overwrites.
  EXPECT_EQ(check({"make", "before", "ag", "add_", "ag.wait", "after"}),
            "ag and add_ changed their order on a storage that one of them overwrites");
  EXPECT_EQ(check({"make", "before", "add_", "ag", "ag.wait", "after"}),
            "ag and add_ changed their order on a storage that one of them overwrites");
}

TEST(WritePlan, NamesAreEscapedAndBucketsUnlikeNodes) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(8);
  b.output(b.run("a\"1", AG, g, x, 16));
  b.output(b.run("bucket0", AG, g, x, 16));
  Graph graph = b.finish();
  Plan plan;
  plan.buckets = {{nodeNamed(graph, "a\"1"), nodeNamed(graph, "bucket0")}};
  plan.items = {{Kind::Pack, 0}, {Kind::Start, 0}, {Kind::Wait, 0}, {Kind::Unpack, 0}};
  std::ostringstream out;
  writePlan(graph, plan, out);
  EXPECT_EQ(out.str(),
            "[\n{\"pack\": \"bucket_0\"},\n"
            "{\"start\": \"bucket_0\", \"kind\": \"AG\", \"members\": [\"a\\\"1\", "
            "\"bucket0\"]},\n{\"wait\": \"bucket_0\"},\n{\"unpack\": \"bucket_0\"}\n]\n");
}

} // namespace
