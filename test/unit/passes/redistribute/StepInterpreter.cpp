// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/unit/passes/redistribute/StepInterpreter.h"

#include <algorithm>
#include <numeric>

namespace shardc {

static int64_t numElements(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

static LocalTensor zeros(std::vector<int64_t> shape) {
  LocalTensor tensor{std::move(shape), {}};
  tensor.data.assign(numElements(tensor.shape), 0.0);
  return tensor;
}

/// Copies `length` indices of `dim`, from `fromBegin` in one tensor to `toBegin` in another; all
/// other dims have equal sizes.
static void copyRange(const LocalTensor &from, int64_t fromBegin, LocalTensor &to, int64_t toBegin,
                      int64_t length, int64_t dim) {
  int64_t outer = numElements(std::span(from.shape).first(dim));
  int64_t inner = numElements(std::span(from.shape).subspan(dim + 1));
  for (int64_t o = 0; o < outer; ++o) {
    auto source = from.data.begin() + (o * from.shape[dim] + fromBegin) * inner;
    std::copy(source, source + length * inner,
              to.data.begin() + (o * to.shape[dim] + toBegin) * inner);
  }
}

/// The shard of one position, cut out of the range that its axis splits.
static LocalTensor cut(const LocalTensor &whole, const SplitRange &range, size_t position,
                       int64_t dim) {
  std::vector<int64_t> shape = whole.shape;
  shape[dim] = range.extent(position);
  LocalTensor shard = zeros(std::move(shape));
  int64_t at = 0;
  for (const Run &piece : range.pieces[position]) {
    copyRange(whole, piece.begin, shard, at, piece.size(), dim);
    at += piece.size();
  }
  return shard;
}

/// Puts the shard of one position in its place in the whole range.
static void paste(const LocalTensor &shard, const SplitRange &range, size_t position, int64_t dim,
                  LocalTensor &whole) {
  int64_t at = 0;
  for (const Run &piece : range.pieces[position]) {
    copyRange(shard, at, whole, piece.begin, piece.size(), dim);
    at += piece.size();
  }
}

Shards shardTensor(const Layout &layout, const LocalTensor &whole) {
  Shards shards;
  for (int64_t position = 0; position < layout.mesh.numDevices(); ++position) {
    Coordinate coordinate = layout.mesh.coordinateOfPosition(position);
    LocalTensor shard = whole;
    for (unsigned axis : layout.order)
      if (const Placement &p = layout.placements[axis]; p.isShard())
        shard = cut(shard, splitRange(layout, axis, whole.shape, p.dim, coordinate),
                    coordinate[axis], p.dim);
    shards.push_back(std::move(shard));
  }
  return shards;
}

double combine(Reduction reduction, double a, double b) {
  switch (reduction) {
  case Reduction::Sum:
  case Reduction::Avg:
    return a + b;
  case Reduction::Min:
    return std::min(a, b);
  case Reduction::Max:
    return std::max(a, b);
  case Reduction::Prod:
    return a * b;
  }
  return a;
}

namespace {
/// One step for one group of devices.
class GroupStep {
public:
  GroupStep(const RedistributeStep &step, std::span<const int64_t> shape,
            std::vector<int64_t> positions, Shards &shards)
      : step(step), shape(shape), positions(std::move(positions)), shards(shards),
        coordinate(step.before.mesh.coordinateOfPosition(this->positions[0])) {}

  void run() {
    std::vector<LocalTensor> out(positions.size());
    for (size_t i = 0; i < positions.size(); ++i)
      out[i] = result(i);
    for (size_t i = 0; i < positions.size(); ++i)
      shards[positions[i]] = std::move(out[i]);
  }

private:
  const LocalTensor &in(size_t i) const { return shards[positions[i]]; }
  SplitRange rangeBefore() const {
    return splitRange(step.before, step.axes, shape, step.fromDim, coordinate);
  }
  SplitRange rangeAfter() const {
    return splitRange(step.after, step.axes, shape, step.dim, coordinate);
  }
  LocalTensor reduced() const {
    LocalTensor total = in(0);
    for (size_t i = 1; i < positions.size(); ++i)
      for (size_t k = 0; k < total.data.size(); ++k)
        total.data[k] = combine(step.reduction, total.data[k], in(i).data[k]);
    if (step.reduction == Reduction::Avg)
      for (double &value : total.data)
        value /= static_cast<double>(positions.size());
    return total;
  }
  LocalTensor emptyRange(const SplitRange &range, const LocalTensor &like) const {
    std::vector<int64_t> wide = like.shape;
    wide[step.fromDim] = range.n;
    return zeros(std::move(wide));
  }
  /// Position i's output.
  LocalTensor result(size_t i) const {
    switch (step.kind) {
    case StepKind::AllReduce:
      return reduced();
    case StepKind::ReduceScatter:
      return cut(reduced(), rangeAfter(), i, step.dim);
    case StepKind::Slice:
      return cut(in(i), rangeAfter(), i, step.dim);
    case StepKind::AllGather: {
      SplitRange range = rangeBefore();
      LocalTensor whole = emptyRange(range, in(i));
      for (size_t r = 0; r < positions.size(); ++r)
        paste(in(r), range, r, step.fromDim, whole);
      return whole;
    }
    case StepKind::AllToAll: {
      // Every position sends to position i that piece of its shard which i will hold.
      SplitRange from = rangeBefore(), to = rangeAfter();
      LocalTensor whole = emptyRange(from, cut(in(0), to, i, step.dim));
      for (size_t r = 0; r < positions.size(); ++r)
        paste(cut(in(r), to, i, step.dim), from, r, step.fromDim, whole);
      return whole;
    }
    case StepKind::Exchange:
      break; // carried out on all of its groups at once
    case StepKind::ToPartial: {
      LocalTensor value = in(i);
      bool onOne = step.reduction == Reduction::Sum || step.reduction == Reduction::Prod;
      if (onOne && i != 0)
        std::fill(value.data.begin(), value.data.end(), step.reduction == Reduction::Sum ? 0 : 1);
      return value;
    }
    case StepKind::ZeroFill: {
      SplitRange range = rangeBefore();
      LocalTensor whole = emptyRange(range, in(i));
      paste(in(i), range, i, step.fromDim, whole);
      return whole;
    }
    }
    return {};
  }

  const RedistributeStep &step;
  std::span<const int64_t> shape;
  std::vector<int64_t> positions;
  Shards &shards;
  Coordinate coordinate;
};
} // namespace

/// The elements of the product of intervals, in row-major order: local indices into `shape`.
static std::vector<int64_t> elementsOf(const std::vector<std::vector<Run>> &box,
                                       std::span<const int64_t> shape) {
  std::vector<int64_t> elements{0};
  for (size_t d = 0; d < box.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t element : elements)
      for (const Run &run : box[d])
        for (int64_t i = run.begin; i < run.end; ++i)
          next.push_back(element * shape[d] + i);
    elements = std::move(next);
  }
  return elements;
}

/// Intervals for every dim of a tensor: given ones for `dims`, all of the rest.
static std::vector<std::vector<Run>> boxOf(const std::vector<std::vector<Run>> &given,
                                           std::span<const int64_t> dims,
                                           std::span<const int64_t> shape) {
  std::vector<std::vector<Run>> box;
  for (int64_t size : shape)
    box.push_back({{0, size}});
  for (size_t i = 0; i < dims.size(); ++i)
    box[dims[i]] = given[i];
  return box;
}

Shards runExchange(const BlockExchange &exchange, std::span<const int64_t> dims,
                   const Shards &shards) {
  Shards out;
  std::vector<int64_t> whole; // sizes of the dims that stay
  for (const LocalTensor &shard : shards)
    whole.resize(shard.shape.size(), 0);
  for (size_t p = 0; p < shards.size(); ++p)
    for (size_t d = 0; d < whole.size(); ++d)
      whole[d] = std::max(whole[d], exchange.blockBefore(p) ? shards[p].shape[d] : 0);
  for (size_t to = 0; to < exchange.size(); ++to) {
    const HeldBlock &after = exchange.blockAfter(to);
    std::vector<int64_t> shape(whole.size(), 0);
    if (after)
      shape = whole;
    for (size_t i = 0; after && i < dims.size(); ++i)
      shape[dims[i]] = sizeOf((*after)[i]);
    LocalTensor tensor = zeros(std::move(shape));
    std::vector<int> written(tensor.data.size(), 0);
    for (size_t from = 0; from < exchange.size(); ++from) {
      std::optional<std::vector<std::vector<Run>>> sent = exchange.message(from, to);
      if (!sent)
        continue;
      // Where it goes is found from the other side.
      std::vector<std::vector<Run>> place;
      for (size_t i = 0; i < sent->size(); ++i)
        place.push_back(localIntersection((*after)[i], (*exchange.blockBefore(from))[i]));
      const LocalTensor &source = shards[from];
      std::vector<int64_t> read = elementsOf(boxOf(*sent, dims, source.shape), source.shape),
                           write = elementsOf(boxOf(place, dims, tensor.shape), tensor.shape);
      for (size_t k = 0; k < read.size(); ++k) {
        tensor.data[write[k]] = source.data[read[k]];
        ++written[write[k]];
      }
    }
    for (size_t k = 0; k < written.size(); ++k)
      if (written[k] != 1)
        tensor.data[k] = -1e9;
    out.push_back(std::move(tensor));
  }
  return out;
}

void runStep(const RedistributeStep &step, std::span<const int64_t> shape, Shards &shards) {
  if (step.kind == StepKind::Exchange) {
    StepExchange exchange = makeExchange(step, shape);
    for (const GroupExchange &group : exchange.groups) {
      Shards mine;
      for (int64_t position : group.positions)
        mine.push_back(shards[position]);
      mine = runExchange(group.exchange, exchange.dims, mine);
      for (size_t i = 0; i < mine.size(); ++i)
        shards[group.positions[i]] = std::move(mine[i]);
    }
    return;
  }
  Mesh byPosition(step.before.mesh.axes); // without device ids, ranks are positions
  for (std::vector<int64_t> &group : byPosition.groups(step.axes))
    GroupStep(step, shape, std::move(group), shards).run();
}

} // namespace shardc
