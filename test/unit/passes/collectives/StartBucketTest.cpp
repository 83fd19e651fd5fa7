// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MemoryTracker::tryStartBucket against the simulated peak of the whole plan: a bucket is refused
// if and only if the steps so far, the bucket, and all that is left in the order of the program do
// not fit together.
#include "passes/collectives/core/Buckets.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/Simulate.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"
#include "test/unit/passes/collectives/UnseenGraphs.h"

#include <random>

using namespace shardc::collectives;
using shardc::collectives::test::RoundModel;

namespace {

/// A schedule that is made at random, with the items of its plan beside what the tracker knows.
class Scheduling {
public:
  Scheduling(const Graph &graph, uint64_t limit, uint32_t seed)
      : graph(graph), problem(graph), keys(problem, {}), tracker(problem, limit, false),
        limit(limit), random(seed), missing(problem.numTasks()), bucketOf(problem.numTasks(), none),
        started(problem.numTasks()) {
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      missing[task] = problem.before[task].size();
  }

  /// How many buckets were taken and refused.
  unsigned taken = 0, refused = 0;

  void run(unsigned tries) {
    for (unsigned i = 0; i != tries && !testing::Test::HasFailure(); ++i)
      switch (random() % 4) {
      case 0:
        startBucket();
        break;
      case 1:
        wait();
        break;
      default:
        runTask();
      }
  }

private:
  bool isReady(TaskId task) const { return !started[task] && missing[task] == 0; }

  /// Whether its results are in use behind the wait. Where they are not, the tracker counts them up
  /// to that wait, even if they are in a bucket that is waited for earlier.
  bool isRead(TaskId task) const {
    for (ValueId value : problem.graph.results(problem.nodeOf[task]))
      if (StorageId storage = problem.storageOf[value];
          storage != none && !problem.storagePinned[storage] &&
          problem.stepsOfStorage[storage].back() <= problem.stepOfWait[task])
        return false;
    return true;
  }

  void release(TaskId of, bool complete) {
    for (const Dependence &d : problem.after[of])
      if (d.complete == complete)
        --missing[d.task];
  }

  void runTask() {
    TaskId task = random() % problem.numTasks();
    if (!isReady(task) || !tracker.tryStep(problem.stepOfTask[task]))
      return;
    started[task] = true;
    plan.items.push_back({PlanItem::Kind::Op, problem.nodeOf[task]});
    release(task, false);
    if (!problem.isCollective(task))
      release(task, true);
  }

  void wait() {
    TaskId task = random() % problem.numTasks();
    StepId step = problem.stepOfWait[task];
    if (step == none || !started[task] || tracker.hasRun(step))
      return;
    if (BucketId bucket = bucketOf[task]; bucket != none) {
      if (!tracker.tryFinishBucket(bucket, members[bucket]))
        return;
      finish(plan, bucket);
      for (TaskId member : members[bucket])
        release(member, true);
    } else if (tracker.tryStep(step)) {
      plan.items.push_back({PlanItem::Kind::Op, problem.waitOf[task]});
      release(task, true);
    }
  }

  void finish(Plan &of, BucketId bucket) const {
    of.items.push_back({PlanItem::Kind::Wait, bucket});
    if (needsUnpack(graph.kindOf(of.buckets[bucket].front())))
      of.items.push_back({PlanItem::Kind::Unpack, bucket});
  }

  void startBucket() {
    std::vector<TaskId> some;
    uint32_t key = none;
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      if (problem.isCollective(task) && isReady(task) && keys.keyOf(task) != none && isRead(task) &&
          (key == none || keys.keyOf(task) == key) && random() % 4 != 0) {
        key = keys.keyOf(task);
        some.push_back(task);
      }
    if (some.size() < 2)
      return;
    Plan with = plan;
    BucketId id = with.buckets.size();
    with.buckets.emplace_back();
    for (TaskId task : some)
      with.buckets.back().push_back(problem.nodeOf[task]);
    with.items.push_back({PlanItem::Kind::Pack, id});
    with.items.push_back({PlanItem::Kind::Start, id});
    uint64_t peak = peakOf(with, some);
    ASSERT_EQ(tracker.tryStartBucket(some), peak <= limit) << peak << " bytes of " << limit;
    if (peak > limit) {
      ++refused;
      return;
    }
    ++taken;
    plan = std::move(with);
    members.push_back(some);
    for (TaskId task : some) {
      bucketOf[task] = id;
      started[task] = true;
      release(task, false);
    }
  }

  /// Of a plan that goes on in the order of the program, with each bucket waited for where the
  /// first of its members is.
  uint64_t peakOf(const Plan &begun, std::span<const TaskId> last) const {
    Plan whole = begun;
    std::vector<uint32_t> stepTask(problem.numSteps, none);
    std::vector<bool> isWait(problem.numSteps);
    for (TaskId task = 0; task != problem.numTasks(); ++task) {
      stepTask[problem.stepOfTask[task]] = task;
      if (StepId step = problem.stepOfWait[task]; step != none) {
        stepTask[step] = task;
        isWait[step] = true;
      }
    }
    std::vector<bool> finished(begun.buckets.size());
    for (StepId step = 0; step != problem.numSteps; ++step) {
      TaskId task = stepTask[step];
      bool isLast = std::ranges::find(last, task) != last.end();
      if (tracker.hasRun(step) || (!isWait[step] && isLast))
        continue;
      BucketId bucket = isLast ? begun.buckets.size() - 1 : bucketOf[task];
      if (!isWait[step]) {
        whole.items.push_back({PlanItem::Kind::Op, problem.nodeOf[task]});
      } else if (bucket == none) {
        whole.items.push_back({PlanItem::Kind::Op, problem.waitOf[task]});
      } else if (!finished[bucket]) {
        finished[bucket] = true;
        finish(whole, bucket);
      }
    }
    EXPECT_EQ(checkPlan(graph, whole), "");
    return simulate(graph, whole, RoundModel()).peakHoldBytes;
  }

  const Graph &graph;
  Problem problem;
  BucketKeys keys;
  MemoryTracker tracker;
  uint64_t limit;
  std::mt19937 random;
  std::vector<uint32_t> missing;
  Plan plan;
  std::vector<std::vector<TaskId>> members;
  std::vector<BucketId> bucketOf;
  std::vector<bool> started;
};

TEST(StartBucket, IsRefusedIfAndOnlyIfItDoesNotFit) {
  unsigned taken = 0, refused = 0;
  for (uint32_t seed = 0; seed != 400; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = seed % 2 == 0
                      ? test::randomGraph(seed, {30 + seed % 60, 1 + seed % 2, seed % 3 != 0})
                      : test::unseenGraph(test::unseenFamilies[seed / 2 % 10], seed, 80);
    uint64_t peak = MemoryTracker(Problem(graph), UINT64_MAX, false).basePeakBytes();
    for (uint64_t percent : {100, 105, 120, 150}) {
      Scheduling scheduling(graph, peak / 100 * percent + peak % 100, seed + percent);
      scheduling.run(400);
      taken += scheduling.taken;
      refused += scheduling.refused;
    }
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(refused, 1000u);
}

} // namespace
