// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One step of a redistribution, which one collective (or one local op) carries out (semantics.md,
// "Redistribution").
//
// A step changes the placement of the axes in `axes`, and of nothing else. It is described by its
// kind and the layouts before and after it, both for the same global shape, so that whatever a
// local program needs (extents for each position in the group, blocks) follows from them.
#ifndef SHARDC_DIALECTS_SHARDING_REDISTRIBUTESTEP_H
#define SHARDC_DIALECTS_SHARDING_REDISTRIBUTESTEP_H

#include "dialects/sharding/Layout.h"
#include "support/CollectiveKind.h"

#include <optional>

namespace shardc {

enum class StepKind : uint8_t {
  AllReduce,     ///< P(op) -> R on every axis of `axes`
  ReduceScatter, ///< P(op) -> S(dim), innermost of its dim
  AllGather,     ///< S(dim) -> R, from innermost of its dim
  AllToAll,      ///< S(fromDim) -> S(dim), innermost of its dim before and after
  Exchange,      ///< any R and S -> any R and S: every rank sends each other one the intersection
                 ///< of what it has with what that one needs and lacks
  Slice,         ///< R -> S(dim), innermost of its dim: local
  ToPartial,     ///< R -> P(op), local: for sum and prod the value on position 0 and the neutral
                 ///< element elsewhere; for avg, min and max the value everywhere
  ZeroFill,      ///< S(dim) -> P(sum), local: the shard at its place in a block of zeros
};
inline constexpr size_t numStepKinds = 8;

/// "all_gather", "slice": what IR and messages call it.
std::string_view stepKindName(StepKind kind);
std::optional<StepKind> parseStepKind(std::string_view name);
/// The collective that carries a step out; nothing for a local one. An exchange in which every rank
/// sends its whole shard to one other is a permute, which is a faster way to do the same.
std::optional<CollectiveKind> collectiveOf(StepKind kind);

struct RedistributeStep {
  StepKind kind = StepKind::Slice;
  /// Mesh axes, outer to inner where they shard one dim, else ascending. Local steps, and
  /// all-to-alls, have one; an exchange between meshes has none.
  std::vector<unsigned> axes;
  int64_t fromDim = -1; ///< dim that is sharded before, or -1 (for an exchange always -1)
  int64_t dim = -1;     ///< dim that is sharded after, or -1 (for an exchange always -1)
  Reduction reduction = Reduction::Sum;
  Layout before, after; ///< canonical for the shape; of one mesh, unless it is an exchange

  unsigned axis() const { return axes.front(); }
  bool operator==(const RedistributeStep &) const = default;
  /// e.g. `all_gather dim 0 over tp: [S(0)] -> [R]`.
  std::string str() const;
};

/// The step of a kind from one layout to another, both valid for `shape`; nothing
/// where a step of this kind does not lead there, and `why` in words that follow "all_gather ".
/// This is the only definition of which steps there are: planners make their steps by it, and the
/// verifier of planned redistributions checks by it.
std::optional<RedistributeStep> makeStep(StepKind kind, const Layout &before, const Layout &after,
                                         std::span<const int64_t> shape, std::string &why);

/// The dims that an exchange changes: the rest of a tensor goes along as it is. Between meshes all
/// dims that either layout splits; these need a known size there. On one mesh a dim of unknown size
/// may be among them where it is the only one of the tensor and no exchanged dim is split in
/// blocks.
std::vector<int64_t> exchangedDims(const RedistributeStep &step, size_t rank);

/// The local range of one dim that a step's axis splits, seen from one coordinate: `n` elements, of
/// which position r of the group holds the intervals `pieces[r]`, one for each block. The whole
/// range is, block by block, the pieces in order.
struct SplitRange {
  int64_t n = 0;
  std::vector<std::vector<Run>> pieces;
  int64_t extent(size_t position) const {
    int64_t total = 0;
    for (const Run &piece : pieces[position])
      total += piece.size();
    return total;
  }
};
/// The range that the step's axis splits in `layout` (step.before or step.after) along `dim`. The
/// dim's size must be known.
SplitRange splitRange(const Layout &layout, unsigned axis, std::span<const int64_t> shape,
                      int64_t dim, std::span<const int64_t> coordinate);
/// The same for a step over several axes, the innermost ones of `dim`, outer to inner: positions
/// are row-major in them, and there are no blocks.
SplitRange splitRange(const Layout &layout, std::span<const unsigned> axes,
                      std::span<const int64_t> shape, int64_t dim,
                      std::span<const int64_t> coordinate);

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_REDISTRIBUTESTEP_H
