// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionPlan.h"

#include <algorithm>

namespace shardc::cuda {
namespace {

int64_t roundUp(int64_t a, int64_t to) { return (a + to - 1) / to * to; }

int64_t strideFor(int64_t columns, int64_t elementBytes) {
  int64_t units = roundUp(columns * elementBytes, 16) / 16;
  return (units | 1) * 16 / elementBytes;
}

/// Columns that the threads of a row sum up in vectors: the vector that pads least.
AttentionColumns columnsOfThreads(int64_t columns, int64_t threadColumns, int64_t elementBytes) {
  AttentionColumns best;
  for (int64_t vector = 16 / elementBytes; vector > 0; vector /= 2) {
    int64_t padded = roundUp(std::max<int64_t>(columns, 1), threadColumns * vector);
    if (best.padded == 0 || padded < best.padded)
      best = {padded, 0, vector, padded / threadColumns};
  }
  best.padded = roundUp(best.padded, 16 / elementBytes);
  best.stride = strideFor(best.padded, elementBytes);
  return best;
}

int64_t sharedBytesOf(const AttentionPlan &plan, const AttentionProblem &problem) {
  int64_t both = plan.depth.stride + plan.width.stride;
  int64_t exchange = plan.rows * plan.exchangeStride;
  // The result of the forward leaves through the tile of the queries.
  int64_t stays = problem.kind == AttentionKernelKind::Forward
                      ? std::max(plan.depth.stride, plan.width.stride)
                      : both;
  return (plan.rows * stays + plan.stages * plan.columns * both + exchange) * problem.elementBytes;
}

std::optional<AttentionPlan> planFma(const AttentionProblem &problem) {
  struct Candidate {
    int64_t threads, rows, columns;
  };
  // 16 x 16 or 8 x 8 threads, by falling reuse of what is in shared memory.
  static constexpr Candidate kCandidates[] = {{16, 64, 64}, {16, 64, 32}, {16, 32, 32},
                                              {16, 32, 16}, {16, 16, 16}, {8, 16, 16},
                                              {8, 16, 8},   {8, 8, 8}};
  static constexpr Candidate kFewRows = {16, 16, 64};
  // Of 16 x 16 threads, of which two blocks are to be on a multiprocessor.
  constexpr int64_t kMostSums = 64;
  bool backward = problem.kind != AttentionKernelKind::Forward;
  auto tryCandidate = [&](const Candidate &candidate) {
    AttentionPlan plan;
    plan.threadRows = plan.threadColumns = candidate.threads;
    plan.threads = candidate.threads * candidate.threads;
    plan.rows = candidate.rows;
    plan.columns = candidate.columns;
    plan.width = columnsOfThreads(problem.width, plan.threadColumns, problem.elementBytes);
    plan.depth = columnsOfThreads(problem.depth, plan.threadColumns, problem.elementBytes);
    plan.exchangeStride = strideFor(plan.columns, problem.elementBytes);
    plan.sharedBytes = sharedBytesOf(plan, problem);
    return plan;
  };
  auto fits = [&](const AttentionPlan &plan, int64_t mostSums) {
    int64_t columns = plan.width.perThread;
    if (problem.kind == AttentionKernelKind::QueryGradient)
      columns = plan.depth.perThread;
    else if (problem.kind == AttentionKernelKind::KeyGradient)
      columns += plan.depth.perThread;
    int64_t sums = plan.rowsPerThread() * columns * problem.elementBytes / 4;
    int64_t scores = plan.rowsPerThread() * plan.columnsPerThread() * problem.elementBytes / 4;
    return plan.sharedBytes <= kAttentionSharedBytes && sums <= mostSums &&
           scores * (backward ? 2 : 1) <= kMostSums;
  };
  if (problem.rows >= 0 && problem.rows <= kFewRows.rows)
    if (AttentionPlan plan = tryCandidate(kFewRows); fits(plan, kMostSums))
      return plan;
  for (int64_t mostSums : {kMostSums, kAttentionMostSums})
    for (const Candidate &candidate : kCandidates)
      if (AttentionPlan plan = tryCandidate(candidate); fits(plan, mostSums))
        return plan;
  return std::nullopt;
}

std::optional<AttentionPlan> planMatrixUnits(const AttentionProblem &problem) {
  AttentionPlan plan;
  plan.matrixUnits = true;
  int64_t depth = roundUp(std::max<int64_t>(problem.depth, 1), 16);
  int64_t width = roundUp(std::max<int64_t>(problem.width, 1), 16);
  int64_t larger = std::max(depth, width);
  // A warp has 16 rows, or 32 where its sums leave registers for them: each fragment of the tile
  // that passes by is then used twice.
  int64_t warps = 4, rowsOfWarp = 16, columns = 64;
  switch (problem.kind) {
  case AttentionKernelKind::Forward:
    rowsOfWarp = larger <= 128 ? 32 : 16;
    columns = larger <= 64 || larger > 128 ? 64 : 32;
    break;
  case AttentionKernelKind::QueryGradient:
    rowsOfWarp = larger <= 64 ? 32 : 16;
    columns = 32;
    break;
  case AttentionKernelKind::KeyGradient:
    columns = larger <= 64 ? 64 : 32;
    // Two sums of a warp are 2 x 64 registers at most.
    plan.parts = larger <= 128 ? 1 : 2;
    depth = roundUp(depth, 16 * plan.parts);
    width = roundUp(width, 16 * plan.parts);
    break;
  }
  if (problem.rows >= 0 && problem.rows <= 16 * warps) {
    rowsOfWarp = 16;
    warps = std::clamp<int64_t>(roundUp(problem.rows, 16) / 16, 1, warps);
    if (problem.kind == AttentionKernelKind::Forward)
      columns = 64;
  }
  if (problem.columns >= 0)
    columns = std::clamp<int64_t>(roundUp(problem.columns, 16), 16, columns);
  plan.threads = 32 * warps;
  plan.rows = rowsOfWarp * warps;
  plan.depth = {depth, strideFor(depth, problem.elementBytes)};
  plan.width = {width, strideFor(width, problem.elementBytes)};
  plan.stages = problem.kind == AttentionKernelKind::Forward ? 1 : 2;
  int64_t sums = problem.kind == AttentionKernelKind::Forward         ? width
                 : problem.kind == AttentionKernelKind::QueryGradient ? depth
                                                                      : depth + width;
  if (plan.rowsPerThread() * sums / plan.parts / 4 > kAttentionMostSums)
    return std::nullopt;
  for (;; columns = roundUp(columns / 2, 16)) {
    plan.columns = columns;
    plan.sharedBytes = sharedBytesOf(plan, problem);
    if (plan.sharedBytes <= kAttentionSharedBytes)
      return plan;
    if (columns == 16)
      return std::nullopt;
  }
}

} // namespace

int64_t AttentionPlan::rowsPerThread() const {
  // A warp has tiles of 16 rows, of which a thread has two rows each.
  return matrixUnits ? rows / (threads / 32) / 8 : rows / threadRows;
}

int64_t AttentionPlan::columnsPerThread() const {
  // A thread has two of 8 columns.
  return matrixUnits ? columns / 4 : columns / threadColumns;
}

int64_t AttentionPlan::residentBlocks() const {
  constexpr int64_t kWarps = 8;
  return std::clamp<int64_t>(kWarps * 32 / threads, 2, 4);
}

std::optional<AttentionPlan> planAttention(const AttentionProblem &problem) {
  return problem.elementBytes == 2 ? planMatrixUnits(problem) : planFma(problem);
}

} // namespace shardc::cuda
