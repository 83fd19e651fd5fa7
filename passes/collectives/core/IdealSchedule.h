// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fast list schedule of kernels on one compute stream and collectives on one stream per group,
// without memory limits and without buckets, forwards or backwards in time. The optimiser takes the
// latest start times of a backward schedule as priorities and as the times by which communication
// must be there.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_IDEALSCHEDULE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_IDEALSCHEDULE_H

#include "passes/collectives/core/Problem.h"

namespace shardc::collectives {

/// How long each task holds its stream, in microseconds, launches included.
struct TaskTimes {
  TaskTimes(const Problem &problem, const cost::CostModel &model);
  /// By task.
  std::vector<double> us;
  /// The part that merging saves; 0 for kernels.
  std::vector<double> latencyUs;
};

struct Schedule {
  /// By task, on one time axis from 0 to `makespanUs` in both directions.
  std::vector<double> startUs, endUs;
  double makespanUs = 0;
};

enum class Direction { Forward, Backward };

/// Schedules with the given stream times; of the tasks that are ready, each stream takes the one
/// with the smallest `priority`, then the one that is first in the graph (last, backwards).
Schedule idealSchedule(const Problem &problem, std::span<const double> us, Direction direction,
                       std::span<const double> priority);

/// The longest way from a task's start to the end of the program, its own time included.
std::vector<double> tailLengths(const Problem &problem, std::span<const double> us);

/// The schedule that the list scheduler steers by: everything as late as possible.
struct Reference {
  /// By task: how late it may start, and how early a result of it is used (the makespan if never).
  std::vector<double> latestStartUs, neededUs;
  double makespanUs = 0;
  /// All tasks that are no collectives, by latest start.
  std::vector<TaskId> kernels;
};

enum class ReferenceKind {
  /// Ties between tasks go by the program's own order: what can wait is put off only as far as
  /// communication has to be covered, so that little is live.
  Program,
  /// Ties go by the end times of a forward schedule that runs the longest path first.
  LongestPath,
};

/// Streams that latency overloads are taken to be without it: buckets can do away with it.
Reference makeReference(const Problem &problem, const TaskTimes &times, ReferenceKind kind);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_IDEALSCHEDULE_H
