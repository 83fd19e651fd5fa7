// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Share.h"

#include "runtime/comm/Reduce.h"
#include "runtime/support/Copy.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shardc::rt {

namespace {

/// What every kind needs to know about one operand.
struct Part {
  std::span<const CollectiveCall *const> calls;
  uint32_t position;
  size_t index;

  const shardrt_collective &collective() const { return *calls[position]->collective; }
  const CallOperand &of(size_t member) const { return calls[member]->operands[index]; }
  const CallOperand &mine() const { return of(position); }
  size_t rank() const { return size_t(mine().facts->rank); }
  size_t members() const { return calls.size(); }
};

int64_t sumBefore(const std::vector<int64_t> &extents, size_t member) {
  return std::accumulate(extents.begin(), extents.begin() + ptrdiff_t(member), int64_t(0));
}

/// Copies `box` elements from index `fromIndex` on `fromDim` of a dense source to index `toIndex`
/// on `toDim` of a dense destination.
struct Side {
  char *data;
  Extents shape;
  int32_t dim; ///< -1: the box starts at the origin
  int64_t index;
};
void copyPart(const Side &to, const Side &from, const Extents &box, size_t rank, int64_t bytes) {
  Extents toStrides, fromStrides;
  denseStrides({to.shape.data(), rank}, toStrides.data());
  denseStrides({from.shape.data(), rank}, fromStrides.data());
  if (std::any_of(box.begin(), box.begin() + ptrdiff_t(rank), [](int64_t n) { return n == 0; }))
    return;
  char *destination = to.data;
  const char *source = from.data;
  if (to.dim >= 0)
    destination += to.index * toStrides[size_t(to.dim)] * bytes;
  if (from.dim >= 0)
    source += from.index * fromStrides[size_t(from.dim)] * bytes;
  if (destination == source)
    return; // an all-gather whose shard is already at its place
  copyBox(destination, toStrides.data(), source, fromStrides.data(), {box.data(), rank}, bytes);
}

/// All-gather and all-to-all: from each member its piece of my output.
void gather(const Part &part) {
  const CallOperand &mine = part.mine();
  int32_t gatherDim = mine.facts->gather_dim, scatterDim = mine.facts->scatter_dim;
  Extents outShape = mine.outShape(part.position, part.collective());
  // Starting with the own piece and going round spreads the readers over the members' memory.
  for (size_t i = 0; i < part.members(); ++i) {
    size_t member = (part.position + i) % part.members();
    Extents inShape = mine.inShape(uint32_t(member));
    Extents box = inShape;
    int64_t scatterBegin = 0;
    if (scatterDim >= 0) {
      box[size_t(scatterDim)] = mine.scatter[part.position];
      scatterBegin = sumBefore(mine.scatter, part.position);
    }
    Side to{static_cast<char *>(mine.out), outShape, gatherDim, sumBefore(mine.gather, member)};
    Side from{static_cast<char *>(const_cast<void *>(part.of(member).in)), inShape, scatterDim,
              scatterBegin};
    copyPart(to, from, box, part.rank(), mine.elementBytes);
  }
}

/// An all-to-all within one dim: from each member what it gives to me.
void exchange(const Part &part) {
  const CallOperand &mine = part.mine();
  int32_t dim = mine.facts->gather_dim;
  Extents outShape = mine.outShape(part.position, part.collective());
  for (size_t i = 0; i < part.members(); ++i) {
    size_t member = (part.position + i) % part.members();
    const CallOperand &theirs = part.of(member);
    Extents box = outShape;
    box[size_t(dim)] = mine.gather[member];
    Side to{static_cast<char *>(mine.out), outShape, dim, sumBefore(mine.gather, member)};
    Side from{static_cast<char *>(const_cast<void *>(theirs.in)), theirs.extents, dim,
              sumBefore(theirs.scatter, part.position)};
    copyPart(to, from, box, part.rank(), mine.elementBytes);
  }
}

void allReduce(const Part &part) {
  const CallOperand &mine = part.mine();
  size_t count = size_t(mine.inElements(part.position));
  // Ranges end on cache lines, so that no two members write the same one.
  size_t line = std::max<size_t>(1, 64 / size_t(mine.elementBytes));
  size_t lines = (count + line - 1) / line;
  size_t begin = std::min(count, lines * part.position / part.members() * line);
  size_t end = std::min(count, lines * (part.position + 1) / part.members() * line);
  if (begin >= end)
    return;
  std::vector<const void *> sources;
  std::vector<void *> destinations;
  size_t offset = begin * size_t(mine.elementBytes);
  for (size_t m = 0; m < part.members(); ++m) {
    sources.push_back(static_cast<const char *>(part.of(m).in) + offset);
    destinations.push_back(static_cast<char *>(part.of(m).out) + offset);
  }
  ReduceFn reduce = reduceFunction(mine.facts->type, part.collective().reduction);
  reduce(sources, destinations, end - begin);
}

void reduceScatter(const Part &part) {
  const CallOperand &mine = part.mine();
  size_t dim = size_t(mine.facts->scatter_dim);
  int64_t inner = countElements(mine.extents.data() + dim + 1, part.rank() - dim - 1);
  int64_t outer = countElements(mine.extents.data(), dim);
  int64_t row = mine.scatter[part.position] * inner;
  if (row == 0)
    return;
  int64_t begin = sumBefore(mine.scatter, part.position) * inner, pitch = mine.extents[dim] * inner;
  ReduceFn reduce = reduceFunction(mine.facts->type, part.collective().reduction);
  std::vector<const void *> sources(part.members());
  for (int64_t i = 0; i < outer; ++i) {
    for (size_t m = 0; m < part.members(); ++m)
      sources[m] =
          static_cast<const char *>(part.of(m).in) + (i * pitch + begin) * mine.elementBytes;
    void *destination = static_cast<char *>(mine.out) + i * row * mine.elementBytes;
    reduce(sources, {&destination, 1}, size_t(row));
  }
}

void copyWhole(const Part &part, int64_t source) {
  const CallOperand &mine = part.mine();
  size_t bytes = size_t(mine.outElements(part.position, part.collective()) * mine.elementBytes);
  if (bytes == 0)
    return;
  if (source < 0)
    std::memset(mine.out, 0, bytes);
  else if (const void *from = part.of(size_t(source)).in; from != mine.out)
    std::memcpy(mine.out, from, bytes);
}

} // namespace

void performShare(std::span<const CollectiveCall *const> calls, uint32_t position) {
  const shardrt_collective &collective = *calls[position]->collective;
  for (size_t i = 0; i < calls[position]->operands.size(); ++i) {
    Part part{calls, position, i};
    switch (collective.kind) {
    case SHARDRT_ALL_GATHER:
      gather(part);
      break;
    case SHARDRT_ALL_TO_ALL:
      part.mine().isExchange() ? exchange(part) : gather(part);
      break;
    case SHARDRT_ALL_REDUCE:
      allReduce(part);
      break;
    case SHARDRT_REDUCE_SCATTER:
      reduceScatter(part);
      break;
    case SHARDRT_BROADCAST:
      copyWhole(part, collective.root);
      break;
    case SHARDRT_PERMUTE:
      copyWhole(part, permuteSource(collective, position));
      break;
    }
  }
}

} // namespace shardc::rt
