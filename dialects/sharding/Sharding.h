// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is asked of a tensor before it has a layout: the form in which propagation hands its result
// to placement.
//
// In a layout several axes that split one dim are nested in one order, and a placement describes
// the piece that the axes outside leave. Here every axis stands by itself: `blocks`, `granule` and
// `sizes` are about the whole dim, as if no other axis split it, and how axes nest is decided when
// the tensor is placed. Text form, one entry per mesh axis in mesh order:
//
//   ?                               nothing is asked
//   R, P(sum)                       asked for, and binding
//   S(1, blocks = 3)                found by propagation: a wish
//   S(1) given pinned fixed         see AxisSharding
//   S(0) given weak storage level 1
#ifndef SHARDC_DIALECTS_SHARDING_SHARDING_H
#define SHARDC_DIALECTS_SHARDING_SHARDING_H

#include "dialects/sharding/Layout.h"

namespace shardc {

/// How far an annotation is followed where others disagree about the same mesh axis.
enum class Strength : uint8_t {
  /// Ops compute with the tensor as it is: it is never gathered (Megatron styles).
  Pinned,
  /// Followed before weak ones; a disagreement among equals is settled by bytes moved.
  Normal,
  /// How the tensor is stored. Ops compute so where nothing else is asked of the axis, and gather
  /// it otherwise (fully sharded parameters).
  Weak,
};

/// What is asked of one axis. Fields that the kind of placement does not use keep their defaults.
struct AxisSharding {
  Placement placement; ///< extents: of the whole dim
  Strength strength = Strength::Normal;
  /// It binds: the tensor gets exactly this. Always so for R and P, never for open ones.
  bool given = false;
  /// Shard: the axis chunks what all other axes leave, innermost, whatever that is.
  bool storage = false;
  /// Shard: the extents may not become coarser (L3c).
  bool fixed = false;
  /// Shard: among axes that split one factor of a dim, lower levels are outside.
  unsigned level = 0;

  bool operator==(const AxisSharding &) const = default;
};

struct Sharding {
  Mesh mesh;
  std::vector<AxisSharding> axes; ///< one per mesh axis

  bool operator==(const Sharding &) const = default;
  size_t hash() const;

  /// All that is wrong with it whatever the tensor; empty when it is usable.
  std::vector<std::string> validate() const;
  /// All that is wrong with a valid one for tensors of `shape` (kDynamic dims allowed).
  std::vector<std::string> validateShape(std::span<const int64_t> shape) const;
};

/// The words of the text form, e.g. `given weak storage level 1`; empty where there are none.
/// `axis` is the number of the mesh axis: its level is left out where it is that.
std::string wordsOf(const AxisSharding &sharding, unsigned axis);

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_SHARDING_H
