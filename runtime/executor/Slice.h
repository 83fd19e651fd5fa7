// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's part of a global tensor, and copies between the two.
#ifndef SHARDC_RUNTIME_EXECUTOR_SLICE_H
#define SHARDC_RUNTIME_EXECUTOR_SLICE_H

#include "dialects/sharding/Layout.h"

#include <functional>

namespace shardc::rt {

/// The global indices that a rank holds: on each dim the concatenation of some intervals.
struct Slice {
  std::vector<int64_t> global; ///< extents of the whole tensor
  std::vector<int64_t> local;  ///< extents of the part
  std::vector<std::vector<shardc::Run>> runs;

  /// For a rank outside the mesh (no coordinate) the part is empty (L5).
  static Slice make(const shardc::Layout &layout, std::vector<int64_t> global,
                    const std::optional<shardc::Coordinate> &coordinate);
  /// All of a tensor as a slice of itself.
  static Slice whole(const std::vector<int64_t> &extents) {
    return make(shardc::Layout(), extents, shardc::Coordinate());
  }

  int64_t elements() const;
  /// Whether the part is one box of the global tensor: it has no more than one interval on a dim.
  bool isBox() const;
  /// Element offset of the first element in a global view with these strides; only if isBox and not
  /// empty.
  int64_t offset(const int64_t *strides) const;

  /// The part cut in pieces of at most `most` elements (which is positive), such that the dense
  /// local part is the dense pieces one after the other. An empty part has none.
  std::vector<Slice> pieces(int64_t most) const;

  /// The same part as a slice of a box of the global tensor; nothing if some of it is outside.
  std::optional<Slice> within(const std::vector<int64_t> &begin,
                              const std::vector<int64_t> &extents) const;

  /// Between a global view with these strides (in elements) and the dense local part.
  void extract(void *local, const void *global, const int64_t *strides, int64_t bytes) const;
  void insert(void *global, const int64_t *strides, const void *local, int64_t bytes) const;

  /// Calls `visit` for each box of the global tensor that the part consists of.
  using Visit =
      std::function<void(std::span<const int64_t> globalBegin, std::span<const int64_t> localBegin,
                         std::span<const int64_t> extents)>;
  void forEachBox(const Visit &visit) const;
};

/// Whether the rank at `coordinate` is the one that writes its part of a tensor where several hold
/// the same: coordinate 0 on every axis that does not shard.
bool writesPart(const shardc::Layout &layout, const std::optional<shardc::Coordinate> &coordinate);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_EXECUTOR_SLICE_H
