// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who sends what to whom in an exchange along dims of unknown size. Along every exchanged dim a
// rank holds one interval before and after, whose bounds follow from the size when the program
// runs; who sends a shard to whom is decided here, for all sizes. Messages may be empty for some.
#ifndef SHARDC_PASSES_REDISTRIBUTE_CORE_SYMBOLICEXCHANGE_H
#define SHARDC_PASSES_REDISTRIBUTE_CORE_SYMBOLICEXCHANGE_H

#include "dialects/sharding/RedistributeStep.h"

namespace shardc {

/// An exchange on one mesh. Groups are alike: members are named by their index in a group.
class SymbolicExchange {
public:
  /// Sizes of static dims are looked at; a dim of unknown size is taken to be so long that no shard
  /// is empty. That decides how the ranks that hold the same share out what they send, not what is
  /// right.
  SymbolicExchange(const RedistributeStep &step, std::span<const int64_t> shape);

  const std::vector<int64_t> &dims() const { return dims_; }
  size_t size() const { return groups.front().size(); }
  /// The mesh position of a member of the group that the device at `position` is in.
  int64_t positionOf(int64_t position, size_t member) const {
    return groups[groupOf[position].first][member];
  }
  size_t memberAt(int64_t position) const { return groupOf[position].second; }

  /// Before the exchange, dim `dims()[i]` of what a group holds is in so many parts, in order.
  size_t numParts(size_t i) const { return numParts_[i]; }
  size_t partOf(size_t i, size_t member) const { return parts[member][i]; }
  /// A member that holds these parts, one for each exchanged dim, and is the one to send them to
  /// `to`: `to` itself where it holds them.
  size_t source(size_t to, std::span<const size_t> cell) const;
  /// Whether `from` sends to `to` what that needs of its shard.
  bool sends(size_t from, size_t to) const { return source(to, parts[from]) == from; }

private:
  size_t cellIndex(std::span<const size_t> cell) const;

  std::vector<int64_t> dims_;
  std::vector<std::vector<int64_t>> groups;       ///< positions of members
  std::vector<std::pair<size_t, size_t>> groupOf; ///< by position: group, member
  std::vector<size_t> numParts_;                  ///< by exchanged dim
  std::vector<std::vector<size_t>> parts;         ///< by member, exchanged dim
  std::vector<std::vector<size_t>> sources;       ///< by member that receives, cell
};

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_CORE_SYMBOLICEXCHANGE_H
