// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/SchedulePolicies.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// Windows of SchedulePolicy, in typical collectives.
constexpr double defer = 2, urgent = 2, prefetch = 16, early = 64;

/// The same for kernels of a program that stalls most of the time. Whatever does not depend on what
/// it stalls for is ready from the beginning (in a backward: all that is computed from saved
/// activations), so that a wide window fills the memory that prefetching needs.
constexpr double earlyWhereStalled = 1, earlierWhereStalled = 4;

/// A program stalls most of the time if its kernels take less than this part of it.
constexpr double stalledShare = 0.5;

struct MergeChoice {
  bool wide; // without windows, or with a wider one where the program stalls
  double packShare, patience;
};
constexpr MergeChoice mergeChoices[] = {{false, 0.1, 1},   {false, 1, 4},     {false, 0.03, 0.5},
                                        {false, 0.3, 0.5}, {true, 0.01, 0.5}, {true, 0.1, 0.5},
                                        {true, 1, 4},      {true, 0.03, 0.5}};

/// Patience of merges whose packing is limited by a sum.
constexpr double patienceWithBudget = 1;

/// How many orders and merge choices are tried for programs of up to so many tasks: the larger the
/// program, the less there is to gain from one more.
struct PolicyEffort {
  size_t tasks, orders, merges;
};
constexpr PolicyEffort policyEfforts[] = {{6000, 6, 8}, {50000, 3, 5}, {SIZE_MAX, 1, 3}};

/// The mean over collectives, weighted by time: what there is to hide at once.
double typicalCollectiveUs(const PolicyInput &input) {
  double sum = 0, squares = 0;
  for (TaskId task = 0; task != input.problem.numTasks(); ++task)
    if (input.problem.isCollective(task)) {
      sum += input.times.us[task];
      squares += input.times.us[task] * input.times.us[task];
    }
  return sum == 0 ? 0 : squares / sum;
}

double kernelUs(const PolicyInput &input) {
  double sum = 0;
  for (TaskId task : input.program.kernels)
    sum += input.times.us[task];
  return sum;
}

/// The packShare with which all collectives that are cheap enough take at most so long to pack and
/// unpack, together: whatever is merged of them, it is what saves most latency for the time.
std::vector<double> packSharesFor(const PolicyInput &input) {
  std::vector<std::pair<double, double>> members; // packShare, microseconds
  for (TaskId task = 0; task != input.problem.numTasks(); ++task)
    if (input.keys.keyOf(task) != none && input.times.latencyUs[task] > 0) {
      double us =
          packUs(input.problem, task, input.model) + unpackUs(input.problem, task, input.model);
      members.push_back({us / input.times.latencyUs[task], us});
    }
  std::sort(members.begin(), members.end());
  std::vector<double> shares;
  for (double budget : input.packingUs) {
    double share = 0, sum = 0;
    for (auto [next, us] : members) {
      if ((sum += us) > budget)
        break;
      share = next;
    }
    shares.push_back(share);
  }
  std::sort(shares.begin(), shares.end());
  shares.erase(std::unique(shares.begin(), shares.end()), shares.end());
  return shares;
}

} // namespace

std::vector<SchedulePolicy> shardc::collectives::schedulePolicies(const PolicyInput &input) {
  // Windows count the time of kernels. Where the program stalls most of the time, so many
  // microseconds of kernels go by in `1 / share` as many.
  double share = kernelUs(input) / input.program.makespanUs;
  bool stalled = share < stalledShare;
  double windowUs = typicalCollectiveUs(input) * (stalled ? share : 1);

  SchedulePolicy narrow;
  narrow.reference = &input.program;
  narrow.deferUs = defer * windowUs;
  narrow.urgentUs = urgent * windowUs;
  narrow.prefetchUs = prefetch * windowUs;
  narrow.earlyUs = (stalled ? earlyWhereStalled : prefetch) * windowUs;
  SchedulePolicy wide = narrow, far = narrow;
  far.earlyUs = (stalled ? prefetch : early) * windowUs;
  if (stalled)
    wide.earlyUs = earlierWhereStalled * windowUs;
  else
    wide.earlyUs = wide.prefetchUs = infinity;
  SchedulePolicy inOrder = wide, latest = wide, longest = wide;
  inOrder.deferUs = 0;
  latest.deferUs = infinity;
  if (stalled) // where there is memory for anything
    latest.earlyUs = latest.prefetchUs = latest.urgentUs = infinity;
  longest.reference = &input.longestPath;

  const PolicyEffort *effort = policyEfforts;
  while (effort->tasks < input.problem.numTasks())
    ++effort;
  std::vector<SchedulePolicy> policies = {narrow, wide, far, inOrder, latest, longest};
  policies.resize(effort->orders);
  // Of schedules that take equally long, the one in the order of the program is kept: what is
  // produced first is sent first, whatever the link turns out to be.
  std::stable_partition(policies.begin(), policies.end(),
                        [](const SchedulePolicy &policy) { return policy.deferUs == 0; });
  if (!input.merge)
    return policies;
  for (const MergeChoice &choice : std::span(mergeChoices).first(effort->merges)) {
    SchedulePolicy &policy = policies.emplace_back(choice.wide ? wide : narrow);
    policy.merge = true;
    policy.packShare = choice.packShare;
    policy.patience = choice.patience;
  }
  for (double share : packSharesFor(input))
    for (bool isWide : {false, true}) {
      SchedulePolicy &policy = policies.emplace_back(isWide ? wide : narrow);
      policy.merge = true;
      policy.packShare = share;
      policy.patience = patienceWithBudget;
    }
  return policies;
}
