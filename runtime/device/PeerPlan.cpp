// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/PeerPlan.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <numeric>

namespace shardc::rt {

namespace {

int64_t sumBefore(const std::vector<int64_t> &extents, size_t member) {
  return std::accumulate(extents.begin(), extents.begin() + ptrdiff_t(member), int64_t(0));
}

/// A box in a dense tensor, which begins at `index` on `dim`.
struct PeerSide {
  char *data;
  Extents shape;
  int32_t dim;
  int64_t index;
};

/// One operand of the call, and its part of the plan.
class PeerPart {
public:
  PeerPart(PeerPlan &plan, std::span<const CollectiveCall *const> calls, uint32_t position,
           size_t index)
      : plan(plan), calls(calls), position(position), index(index), mine(of(position)),
        rank(size_t(mine.facts->rank)) {}

  void add() {
    switch (collective().kind) {
    case SHARDRT_ALL_GATHER:
      return gather();
    case SHARDRT_ALL_TO_ALL:
      return mine.isExchange() ? exchange() : gather();
    case SHARDRT_ALL_REDUCE:
      return allReduce();
    case SHARDRT_REDUCE_SCATTER:
      return reduceScatter();
    case SHARDRT_BROADCAST:
      return copyWhole(collective().root);
    case SHARDRT_PERMUTE:
      return copyWhole(permuteSource(collective(), position));
    default:
      throw Failure(SHARDRT_INTERNAL, "a collective of an unknown kind");
    }
  }

private:
  const shardrt_collective &collective() const { return *calls[position]->collective; }
  const CallOperand &of(size_t member) const { return calls[member]->operands[index]; }
  static char *inOf(const CallOperand &operand) {
    return static_cast<char *>(const_cast<void *>(operand.in));
  }

  /// Dims that lie behind each other on both sides are one: what is left has rows and slabs.
  void copyBox(const PeerSide &to, const PeerSide &from, const Extents &box) {
    if (std::any_of(box.begin(), box.begin() + ptrdiff_t(rank), [](int64_t n) { return n == 0; }))
      return;
    shardrt_peer_copy copy{to.data, from.data, uint64_t(mine.elementBytes), 1, 1, 0, 0, 0, 0};
    uint64_t toStride = copy.bytes, fromStride = copy.bytes;
    char *destination = to.data;
    const char *source = from.data;
    for (size_t d = rank; d-- > 0;) {
      if (int32_t(d) == to.dim)
        destination += to.index * int64_t(toStride);
      if (int32_t(d) == from.dim)
        source += from.index * int64_t(fromStride);
      addDim(copy, uint64_t(box[d]), toStride, fromStride);
      toStride *= uint64_t(to.shape[d]);
      fromStride *= uint64_t(from.shape[d]);
    }
    if (destination == source)
      return; // an all-gather whose shard is already at its place
    copy.to = destination;
    copy.from = source;
    plan.copies.push_back(copy);
  }

  /// The next dim outwards.
  static void addDim(shardrt_peer_copy &copy, uint64_t extent, uint64_t toStride,
                     uint64_t fromStride) {
    if (extent == 1)
      return;
    if (copy.slabs > 1) {
      if (toStride != copy.slabs * copy.to_slab || fromStride != copy.slabs * copy.from_slab)
        throw Failure(SHARDRT_INTERNAL, "a piece of a tensor has more than three distances");
      copy.slabs *= extent;
    } else if (copy.rows > 1) {
      if (toStride == copy.rows * copy.to_pitch && fromStride == copy.rows * copy.from_pitch) {
        copy.rows *= extent;
      } else {
        copy.slabs = extent;
        copy.to_slab = toStride;
        copy.from_slab = fromStride;
      }
    } else if (toStride == copy.bytes && fromStride == copy.bytes) {
      copy.bytes *= extent;
    } else {
      copy.rows = extent;
      copy.to_pitch = toStride;
      copy.from_pitch = fromStride;
    }
  }

  /// All-gather and all-to-all: from each member its piece of my output.
  void gather() {
    const int32_t gatherDim = mine.facts->gather_dim, scatterDim = mine.facts->scatter_dim;
    const Extents outShape = mine.outShape(position, collective());
    // Starting with the own piece and going round spreads the readers over the members' memory.
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t member = (position + i) % calls.size();
      const Extents inShape = mine.inShape(uint32_t(member));
      Extents box = inShape;
      int64_t begin = 0;
      if (scatterDim >= 0) {
        box[size_t(scatterDim)] = mine.scatter[position];
        begin = sumBefore(mine.scatter, position);
      }
      copyBox({static_cast<char *>(mine.out), outShape, gatherDim, sumBefore(mine.gather, member)},
              {inOf(of(member)), inShape, scatterDim, begin}, box);
    }
  }

  /// An all-to-all within one dim: from each member what it gives to me.
  void exchange() {
    const int32_t dim = mine.facts->gather_dim;
    const Extents outShape = mine.outShape(position, collective());
    for (size_t i = 0; i < calls.size(); ++i) {
      const size_t member = (position + i) % calls.size();
      const CallOperand &theirs = of(member);
      Extents box = outShape;
      box[size_t(dim)] = mine.gather[member];
      copyBox({static_cast<char *>(mine.out), outShape, dim, sumBefore(mine.gather, member)},
              {inOf(theirs), theirs.extents, dim, sumBefore(theirs.scatter, position)}, box);
    }
  }

  shardrt_peer_reduction reduction() const {
    shardrt_peer_reduction made{};
    made.type = mine.facts->type;
    made.reduction = collective().reduction;
    made.n_sources = uint32_t(calls.size());
    made.rows = 1;
    return made;
  }

  /// Every member reduces its range of the elements for all.
  void allReduce() {
    const auto count = size_t(mine.inElements(position)), bytes = size_t(mine.elementBytes);
    // Ranges end where sectors of a device's memory do, so that no two members write the same one.
    const size_t line = std::max<size_t>(1, 128 / bytes);
    const size_t lines = (count + line - 1) / line, n = calls.size();
    const size_t begin = std::min(count, lines * position / n * line);
    const size_t end = std::min(count, lines * (position + 1) / n * line);
    if (begin >= end)
      return;
    shardrt_peer_reduction made = reduction();
    made.n_results = made.n_sources;
    made.count = end - begin;
    for (size_t m = 0; m < n; ++m) {
      made.sources[m] = inOf(of(m)) + begin * bytes;
      made.results[m] = static_cast<char *>(of(m).out) + begin * bytes;
    }
    plan.reductions.push_back(made);
  }

  void reduceScatter() {
    const auto dim = size_t(mine.facts->scatter_dim);
    const auto bytes = mine.elementBytes;
    int64_t inner = 1, outer = 1;
    for (size_t d = 0; d < rank; ++d)
      if (d != dim)
        (d < dim ? outer : inner) *= mine.extents[d];
    const int64_t row = mine.scatter[position] * inner;
    if (row == 0 || outer == 0)
      return;
    shardrt_peer_reduction made = reduction();
    made.n_results = 1;
    made.count = uint64_t(row);
    made.rows = uint64_t(outer);
    made.source_pitch = uint64_t(mine.extents[dim] * inner * bytes);
    made.result_pitch = uint64_t(row * bytes);
    const int64_t begin = sumBefore(mine.scatter, position) * inner * bytes;
    for (size_t m = 0; m < calls.size(); ++m)
      made.sources[m] = inOf(of(m)) + begin;
    made.results[0] = mine.out;
    plan.reductions.push_back(made);
  }

  void copyWhole(int64_t source) {
    const auto bytes = uint64_t(mine.outElements(position, collective()) * mine.elementBytes);
    if (bytes == 0)
      return;
    if (source < 0)
      plan.zeros.push_back({mine.out, size_t(bytes)});
    else if (const void *from = of(size_t(source)).in; from != mine.out)
      plan.copies.push_back({mine.out, from, bytes, 1, 1, 0, 0, 0, 0});
  }

  PeerPlan &plan;
  const std::span<const CollectiveCall *const> calls;
  const uint32_t position;
  const size_t index;
  const CallOperand &mine;
  const size_t rank;
};

} // namespace

PeerPlan planPeerShare(std::span<const CollectiveCall *const> calls, uint32_t position) {
  PeerPlan plan;
  for (size_t i = 0; i < calls[position]->operands.size(); ++i)
    PeerPart(plan, calls, position, i).add();
  return plan;
}

} // namespace shardc::rt
