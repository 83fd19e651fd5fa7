// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redistribution as a sequence of steps, each of which one collective (or one local op) carries out
// (semantics.md, "Redistribution").
//
// A step changes the placement of the axes in `axes`, and of nothing else. It is described by the
// layouts before and after it, both for the same global shape, so that whatever a local program
// needs (extents for each position in the group, blocks) follows from them by the functions below.
#ifndef SHARDC_PASSES_REDISTRIBUTE_CORE_REDISTRIBUTESTEP_H
#define SHARDC_PASSES_REDISTRIBUTE_CORE_REDISTRIBUTESTEP_H

#include "dialects/sharding/Layout.h"
#include "support/CollectiveKind.h"

#include <optional>

namespace shardc {

enum class StepKind : uint8_t {
  AllReduce,     ///< P(op) -> R on every axis of `axes`
  ReduceScatter, ///< P(op) -> S(dim), innermost of its dim
  AllGather,     ///< S(dim) -> R, from innermost of its dim
  AllToAll,      ///< S(fromDim) -> S(dim), innermost of its dim before and after
  Slice,         ///< R -> S(dim), innermost of its dim: local
  ToPartial,     ///< R -> P(op), local: for sum and prod the value on position 0 and the neutral
                 ///< element elsewhere; for avg, min and max the value everywhere
  ZeroFill,      ///< S(dim) -> P(sum), local: the shard at its place in a block of zeros
};
/// "all-gather", "slice".
std::string stepKindName(StepKind kind);
/// The collective that carries a step out; nothing for a local one.
std::optional<CollectiveKind> collectiveOf(StepKind kind);

struct RedistributeStep {
  StepKind kind = StepKind::Slice;
  std::vector<unsigned> axes; ///< mesh axes, outer to inner; more than one only for AllReduce
  int64_t fromDim = -1;       ///< dim that is sharded before, or -1
  int64_t dim = -1;           ///< dim that is sharded after, or -1
  Reduction reduction = Reduction::Sum;
  Layout before, after;

  unsigned axis() const { return axes.front(); }
  bool operator==(const RedistributeStep &) const = default;
  /// e.g. `all-gather dim 0 over tp: [S(0)] -> [R]`.
  std::string str() const;
};

/// The local range of one dim that a step's axis splits, seen from one coordinate: `n` elements in
/// `split.blocks` blocks, of which position r of the group holds `pieces[r]` of every block
/// (intervals relative to the block's begin). The whole range is, block by block, the pieces in
/// order.
struct SplitRange {
  int64_t n = 0;
  int64_t blocks = 1;
  std::vector<Run> pieces;
  int64_t extent(size_t position) const { return blocks * pieces[position].size(); }
};
/// The range that the step's axis splits in `layout` (step.before or step.after) along `dim`. The
/// dim's size must be known.
SplitRange splitRange(const Layout &layout, unsigned axis, std::span<const int64_t> shape,
                      int64_t dim, std::span<const int64_t> coordinate);

/// Sizes that costs are computed with.
struct CostOptions {
  /// Stands in for a dim whose size is not known.
  int64_t assumedDynamicSize = 128;
};

/// Bytes that a rank holds in `layout`, the largest of all ranks.
double localBytes(const Layout &layout, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options = {});
/// Bytes that a rank sends in one step, by the table in semantics.md; 0 for a local step.
double bytesMoved(const RedistributeStep &step, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options = {});

struct RedistributePlan {
  std::vector<RedistributeStep> steps;
  std::vector<std::string> errors; ///< not empty: the plan is not usable, and why
};

/// Steps from one layout to another of the same mesh, which keep the logical value. Takes dims
/// apart inner to outer and puts them together outer to inner (R1), the step that leaves the least
/// data first: slices, then reduce-scatters, all-to-alls, all-reduces, all-gathers.
RedistributePlan planRedistribution(const Layout &from, const Layout &to,
                                    std::span<const int64_t> shape);

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_CORE_REDISTRIBUTESTEP_H
