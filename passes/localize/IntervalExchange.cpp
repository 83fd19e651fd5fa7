// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/IntervalExchange.h"

#include "passes/localize/FlatExchange.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

IntervalExchange::IntervalExchange(LocalIndices indices, int64_t dim, const DimSplit &split,
                                   ArrayRef<OpFoldResult> sizes, std::optional<int64_t> farthest)
    : indices(indices), emit(this->indices.getBuilder(), this->indices.getLoc()), dim(dim),
      split(split), sizes(sizes) {
  if (farthest && 2 * *farthest + 1 < numMembers())
    this->farthest = farthest;
}

int64_t IntervalExchange::numMembers() const {
  int64_t product = 1;
  for (const AxisSplit &axis : split.axes)
    product *= axis.count;
  return product;
}
size_t IntervalExchange::numPeers() const {
  return static_cast<size_t>(farthest ? 2 * *farthest + 1 : numMembers());
}

Coordinate IntervalExchange::memberAt(int64_t position, int64_t member) const {
  Coordinate coordinate = indices.getMesh().getValue().coordinateOfPosition(position);
  for (const AxisSplit &axis : llvm::reverse(split.axes)) {
    coordinate[axis.axis] = member % axis.count;
    member /= axis.count;
  }
  return coordinate;
}

int64_t IntervalExchange::indexAt(int64_t position) const {
  Coordinate coordinate = indices.getMesh().getValue().coordinateOfPosition(position);
  int64_t index = 0;
  for (const AxisSplit &axis : split.axes)
    index = index * axis.count + coordinate[axis.axis];
  return index;
}

int64_t IntervalExchange::memberOf(int64_t position, size_t peer) const {
  auto number = static_cast<int64_t>(peer);
  return farthest ? indexAt(position) + number - *farthest : number;
}

template <typename F> Value IntervalExchange::table(F &&numberAt) {
  SmallVector<int64_t> numbers;
  for (int64_t p = 0, n = indices.getMesh().getValue().numDevices(); p < n; ++p)
    numbers.push_back(numberAt(p));
  return indices.table(numbers);
}

IndexInterval IntervalExchange::own(IntervalOf interval) {
  const Mesh &mesh = indices.getMesh().getValue();
  return interval([&](int64_t position) { return mesh.coordinateOfPosition(position); });
}
IndexInterval IntervalExchange::of(IntervalOf interval, size_t peer) {
  return interval([&](int64_t position) {
    return memberAt(position, std::clamp<int64_t>(memberOf(position, peer), 0, numMembers() - 1));
  });
}

Value IntervalExchange::isOther(size_t peer) {
  return table([&](int64_t position) {
    int64_t member = memberOf(position, peer);
    return int64_t(member >= 0 && member < numMembers() && member != indexAt(position));
  });
}

SmallVector<Value> IntervalExchange::byMember(ArrayRef<Value> ofPeers) {
  if (!farthest)
    return SmallVector<Value>(ofPeers);
  SmallVector<Value> all;
  for (int64_t member = 0; member < numMembers(); ++member) {
    Value sum = indices.constant(0);
    for (auto [peer, value] : llvm::enumerate(ofPeers)) {
      Value isIt =
          table([&](int64_t position) { return int64_t(memberOf(position, peer) == member); });
      sum = indices.add(sum, indices.mul(isIt, value));
    }
    all.push_back(sum);
  }
  return all;
}

/// So that what comes from one member after another is in one piece.
Value IntervalExchange::dimFirst(Value value) {
  SmallVector<int64_t> order{dim};
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
    if (d != dim)
      order.push_back(d);
  if (dim == 0)
    return value;
  return aten::PermuteOp::create(indices.getBuilder(), indices.getLoc(), value, order);
}
Value IntervalExchange::dimBack(Value value) {
  if (dim == 0)
    return value;
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d)
    order.push_back(d == dim ? 0 : d < dim ? d + 1 : d);
  return aten::PermuteOp::create(indices.getBuilder(), indices.getLoc(), value, order);
}

IntervalExchange::Arrived IntervalExchange::run(Value local, IntervalOf has, IntervalOf wants) {
  Value unit = unitOf(indices, sizes, dim);
  IndexInterval held = own(has), wanted = own(wants);
  Arrived arrived;
  SmallVector<Value> messages, leaving, arriving;
  for (size_t peer = 0; peer < numPeers(); ++peer) {
    Value other = isOther(peer);
    IndexInterval part = indices.within(held, of(wants, peer));
    Value count = indices.mul(indices.lengthOf(part), other);
    Value message = emit.slice(local, dim, getAsOpFoldResult(part.begin),
                               getAsOpFoldResult(indices.add(part.begin, count)));
    leaving.push_back(indices.mul(count, unit));
    messages.push_back(dimFirst(message));
    arrived.counts.push_back(
        indices.mul(indices.lengthOf(indices.within(wanted, of(has, peer))), other));
    arriving.push_back(indices.mul(arrived.counts.back(), unit));
  }
  // Each is computed in its place among the others.
  Value sent = emit.view(emit.cat(messages, 0), {getAsOpFoldResult(indices.sum(leaving))});
  SmallVector<unsigned> axes;
  for (const AxisSplit &axis : split.axes)
    axes.push_back(axis.axis);
  Value flat = emitFlatExchange(indices, axes, sent, byMember(leaving), byMember(arriving));
  SmallVector<OpFoldResult> shape{getAsOpFoldResult(indices.sum(arrived.counts))};
  for (auto [d, size] : llvm::enumerate(sizes))
    if (static_cast<int64_t>(d) != dim)
      shape.push_back(size);
  arrived.value = dimBack(emit.view(flat, shape));
  return arrived;
}
