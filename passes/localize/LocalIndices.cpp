// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/LocalIndices.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

Value LocalIndices::constant(int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value LocalIndices::add(Value lhs, Value rhs) {
  return builder.createOrFold<arith::AddIOp>(loc, lhs, rhs);
}
Value LocalIndices::sub(Value lhs, Value rhs) {
  return builder.createOrFold<arith::SubIOp>(loc, lhs, rhs);
}
Value LocalIndices::mul(Value lhs, Value rhs) {
  return builder.createOrFold<arith::MulIOp>(loc, lhs, rhs);
}
Value LocalIndices::ceilDiv(Value lhs, Value rhs) {
  return builder.createOrFold<arith::CeilDivSIOp>(loc, lhs, rhs);
}
Value LocalIndices::floorDiv(Value lhs, Value rhs) {
  return builder.createOrFold<arith::FloorDivSIOp>(loc, lhs, rhs);
}
Value LocalIndices::min(Value lhs, Value rhs) {
  return builder.createOrFold<arith::MinSIOp>(loc, lhs, rhs);
}
Value LocalIndices::max(Value lhs, Value rhs) {
  return builder.createOrFold<arith::MaxSIOp>(loc, lhs, rhs);
}

Value LocalIndices::sum(ArrayRef<Value> values) {
  Value total = constant(0);
  for (Value value : values)
    total = add(total, value);
  return total;
}

Value LocalIndices::extentOp(ExtentsAttr extents) {
  if (std::optional<int64_t> value = extents.getConstant())
    return constant(*value);
  return ExtentOp::create(builder, loc, extents);
}

Value LocalIndices::table(ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return constant(values.front());
  // A table holds extents, which are not negative: shift what is.
  int64_t least = std::min<int64_t>(0, *llvm::min_element(values));
  SmallVector<int64_t> shifted;
  for (int64_t value : values)
    shifted.push_back(value - least);
  Value result =
      extentOp(ExtentsAttr::get(builder.getContext(), mesh, SizeAttr(), DimSplit(), shifted));
  return least == 0 ? result : add(result, constant(least));
}

Value LocalIndices::axisIndex(unsigned axis) { return groupIndex({axis}); }

Value LocalIndices::groupIndex(ArrayRef<unsigned> axes) {
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(builder.getStringAttr(mesh.getValue().axes[axis].name));
  return AxisIndexOp::create(builder, loc, AxesAttr::get(builder.getContext(), mesh, names));
}

Value LocalIndices::global(const GlobalSize &size) {
  return size.size ? extentOp(ExtentsAttr::get(size.size)) : size.value;
}

Value LocalIndices::extent(const GlobalSize &size, const DimSplit &split) {
  if (split.empty())
    return global(size);
  if (size.size)
    return extentOp(ExtentsAttr::get(builder.getContext(), mesh, size.size, split, {}));
  AxisShare share{size, split, split.axes.back()};
  share.outer.axes.pop_back();
  return mul(length(share), constant(share.split.equalBlocks()));
}

Value LocalIndices::offset(const GlobalSize &size, const DimSplit &split) {
  if (llvm::any_of(split.axes, [](const AxisSplit &axis) { return !axis.isOnePiece(); }))
    return nullptr;
  if (int64_t fixed = size.fixed(); fixed != kDynamic) {
    SmallVector<int64_t> offsets;
    for (int64_t p = 0, n = mesh.getValue().numDevices(); p < n; ++p) {
      std::vector<Run> runs = split.runs(fixed, mesh.getValue().coordinateOfPosition(p));
      offsets.push_back(runs.empty() ? fixed : runs.front().begin);
    }
    return table(offsets);
  }
  // The sum of the offsets at every level. An empty shard may begin before the end of the dim: no
  // element looks there.
  Value total = constant(0);
  AxisShare share{size, {}, {}};
  for (const AxisSplit &axis : split.axes) {
    share.split = axis;
    total = add(total, begin(share));
    share.outer.axes.push_back(axis);
  }
  return total;
}

Value LocalIndices::bound(const AxisShare &share, std::optional<int64_t> r, Bound which) {
  const AxisSplit &split = share.split;
  if (int64_t fixed = share.size.fixed(); fixed != kDynamic) {
    SmallVector<int64_t> values;
    for (int64_t p = 0, n = mesh.getValue().numDevices(); p < n; ++p) {
      Coordinate coordinate = mesh.getValue().coordinateOfPosition(p);
      int64_t block = share.outer.extent(fixed, coordinate) / split.equalBlocks();
      Run piece = split.pieceOfBlock(block, r.value_or(coordinate[split.axis]));
      values.push_back(which == Bound::Begin ? piece.begin
                       : which == Bound::End ? piece.end
                                             : piece.size());
    }
    return table(values);
  }
  // ceil(ceil(block / granule) / count) granules each; explicit sizes need a size known now.
  Value block = blockSize(share), granule = constant(split.granule);
  Value piece = mul(ceilDiv(ceilDiv(block, granule), constant(split.count)), granule);
  Value index = r ? constant(*r) : axisIndex(split.axis);
  Value first = min(block, mul(index, piece));
  if (which == Bound::Begin)
    return first;
  Value last = min(block, mul(add(index, constant(1)), piece));
  return which == Bound::End ? last : sub(last, first);
}

Value LocalIndices::begin(const AxisShare &share, std::optional<int64_t> r) {
  return bound(share, r, Bound::Begin);
}
Value LocalIndices::end(const AxisShare &share, std::optional<int64_t> r) {
  return bound(share, r, Bound::End);
}
Value LocalIndices::length(const AxisShare &share, std::optional<int64_t> r) {
  return bound(share, r, Bound::Length);
}

Value LocalIndices::blockSize(const AxisShare &share) {
  Value whole = extent(share.size, share.outer);
  if (share.split.equalBlocks() == 1)
    return whole;
  return builder.createOrFold<arith::DivSIOp>(loc, whole, constant(share.split.blocks));
}

IndexInterval LocalIndices::interval(const GlobalSize &size, const DimSplit &split,
                                     function_ref<Coordinate(int64_t)> coordinateOf) {
  auto forAll = [&](auto &&numberAt) {
    SmallVector<int64_t> numbers;
    for (int64_t p = 0, n = mesh.getValue().numDevices(); p < n; ++p)
      numbers.push_back(numberAt(coordinateOf(p)));
    return table(numbers);
  };
  if (int64_t fixed = size.fixed(); fixed != kDynamic) {
    auto begin = [&](const Coordinate &coordinate) {
      std::vector<Run> runs = split.runs(fixed, coordinate);
      return runs.empty() ? 0 : runs.front().begin;
    };
    auto end = [&](const Coordinate &coordinate) {
      std::vector<Run> runs = split.runs(fixed, coordinate);
      return runs.empty() ? 0 : runs.back().end;
    };
    return {forAll(begin), forAll(end)};
  }
  // Chunks of chunks (L3): each axis cuts what the one outside of it left.
  Value first = constant(0), length = global(size);
  for (const AxisSplit &axis : split.axes) {
    Value granule = constant(axis.granule);
    Value piece = mul(ceilDiv(ceilDiv(length, granule), constant(axis.count)), granule);
    Value coordinate = forAll([&](const Coordinate &c) { return c[axis.axis]; });
    Value from = min(length, mul(coordinate, piece));
    Value to = min(length, add(from, piece));
    first = add(first, from);
    length = sub(to, from);
  }
  return {first, add(first, length)};
}

IndexInterval LocalIndices::within(const IndexInterval &held, const IndexInterval &wanted) {
  Value length = lengthOf(held);
  auto local = [&](Value index) { return min(max(sub(index, held.begin), constant(0)), length); };
  return {local(wanted.begin), local(wanted.end)};
}
