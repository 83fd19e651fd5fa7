// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/SampleSort.h"
#include "passes/localize/RowExchange.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

class SampleSorter {
public:
  SampleSorter(Localizer &localizer, OpBuilder &builder, aten::SortOp op)
      : localizer(localizer), builder(builder), op(op), emit(localizer.emitter(builder)),
        indices(localizer.indices(builder)), dim(static_cast<int64_t>(op.getDim())),
        size(localizer.operandDim(0, dim).size), i64(builder.getI64Type()),
        before(localizer.operandLayout(0)->splitOfDim(dim)), held(extentsOf(before)),
        wanted(extentsOf(localizer.resultLayout(0)->splitOfDim(dim))),
        ranks(static_cast<int64_t>(held.size())) {
    for (const AxisSplit &axis : before.axes)
      axes.push_back(axis.axis);
  }

  SmallVector<Value> run(Value local) {
    Value extent = indices.extent(localizer.operandSize(builder, 0, dim), before);
    aten::SortOp own = sort(emit.view(local, {getAsOpFoldResult(extent)}));
    own.getValues().setType(listType(aten::elementTypeOf(local), held));
    RowExchange exchange(localizer, builder, axes, ranks);
    RowExchange::Counts counts =
        exchange.read(countPieces(exchange, makeKeys(own.getValues()), extent), size);
    // All that this rank is to have arrives.
    Value due = indices.extent(localizer.resultSize(builder, 0, dim),
                               localizer.resultLayout(0)->splitOfDim(dim));
    auto send = [&](Value x) {
      Value arrived = exchange.send(x, counts.sent, counts.arriving, *llvm::max_element(wanted));
      if (llvm::all_equal(wanted))
        return arrived;
      return emit.slice(arrived, 0, builder.getIndexAttr(0), getAsOpFoldResult(due));
    };

    aten::SortOp merged = sort(send(own.getValues()));
    Type narrow = builder.getIntegerType(8 * aten::sortPositionBytes(size));
    Value offset = indices.offset(localizer.operandSize(builder, 0, dim), before);
    Value places = emit.cast(emit.add(own.getIndices(), emit.ofIndex(offset, i64)), narrow);
    places.setType(listType(narrow, held));
    Value moved = send(places);
    Value positions =
        emit.cast(aten::GatherOp::create(builder, op.getLoc(), moved, 0, merged.getIndices()), i64);
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    return {emit.view(merged.getValues(), sizes), emit.view(positions, sizes)};
  }

private:
  using Extents = SmallVector<int64_t>;

  /// How much of the dim each member of a group has, in the order of the shards.
  Extents extentsOf(const DimSplit &split) const {
    const Mesh &mesh = localizer.getMesh().getValue();
    int64_t count = 1;
    for (const AxisSplit &axis : split.axes)
      count *= axis.count;
    Extents extents(count, 0);
    for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p) {
      Coordinate coordinate = mesh.coordinateOfPosition(p);
      int64_t member = 0; // the outermost axis first
      for (const AxisSplit &axis : split.axes)
        member = member * axis.count + coordinate[axis.axis];
      extents[member] = split.extent(size, coordinate);
    }
    return extents;
  }

  static RankedTensorType listType(Type element, const Extents &extents) {
    int64_t length = llvm::all_equal(extents) ? extents.front() : ShapedType::kDynamic;
    return RankedTensorType::get({length}, element);
  }

  aten::SortOp sort(Value x) {
    return aten::SortOp::create(builder, op.getLoc(), x, 0, op.getDescending(), IntegerAttr());
  }

  Value number(int64_t value) { return emit.integer(value, i64); }
  Value least(Value x, Value y) { return emit.binary<aten::MinimumOp>(x, y); }
  Value range(int64_t first, int64_t count, int64_t step = 1) {
    return emit.range(indices.constant(first), indices.constant(count), step);
  }
  /// A constant list.
  Value list(ArrayRef<int64_t> numbers) {
    auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, i64);
    return aten::ConstantOp::create(builder, op.getLoc(), type,
                                    DenseElementsAttr::get(type, numbers));
  }

  /// One i64 for each element, ordered as the elements are in the result; the least possible one is
  /// `lowest`. Equal elements have equal keys, and NaN has the largest of an ascending order.
  Value makeKeys(Value x) {
    Type type = aten::elementTypeOf(x);
    unsigned bits = aten::sortKeyBits(type);
    bool isSigned = true;
    Value keys;
    if (isa<FloatType>(type)) {
      Type wide = bits == 64 ? Type(builder.getF64Type()) : Type(builder.getF32Type());
      x = emit.cast(x, wide);
      Value zero = emit.scalar(0, wide); // of both signs
      Value same = emit.where(emit.binary<aten::EqOp>(x, zero), zero, x);
      Value word = aten::BitcastOp::create(builder, op.getLoc(), same,
                                           TypeAttr::get(builder.getIntegerType(bits)));
      keys = emit.cast(word, i64);
      int64_t largest = llvm::maxIntN(bits);
      Value reversed = emit.binary<aten::BitwiseXorOp>(keys, number(largest));
      keys = emit.where(emit.binary<aten::LtOp>(keys, number(0)), reversed, keys);
      keys = emit.where(emit.unary<aten::IsnanOp>(x), number(largest), keys);
    } else if (bits == 64 && type.isUnsignedInteger()) {
      Value word = aten::BitcastOp::create(builder, op.getLoc(), x, TypeAttr::get(i64));
      keys = emit.binary<aten::BitwiseXorOp>(word, number(llvm::minIntN(64)));
    } else {
      isSigned = !type.isInteger(1) && !type.isUnsignedInteger();
      keys = emit.cast(x, i64);
    }
    digits = bits / aten::kSortDigitBits;
    lowest = isSigned ? llvm::minIntN(bits) : 0;
    if (!op.getDescending())
      return keys;
    if (!isSigned)
      lowest = -(int64_t(1) << bits);
    return emit.unary<aten::BitwiseNotOp>(keys);
  }

  /// How many of the sorted `keys` are below each of `values`, and with `orEqual` not above: a
  /// binary search for all of them at once.
  Value countBelow(Value values, bool orEqual) {
    int64_t most = *llvm::max_element(held);
    SmallVector<OpFoldResult> shape = {builder.getIndexAttr(aten::shapeOf(values).front())};
    Value low = emit.zeros(shape, i64), high = emit.full(shape, emit.ofIndex(numKeys, i64));
    for (unsigned step = 0, steps = llvm::Log2_64_Ceil(uint64_t(most) + 1); step < steps; ++step) {
      Value middle = aten::DivOp::create(builder, op.getLoc(), emit.add(low, high), number(2),
                                         builder.getStringAttr("trunc"));
      Value key = aten::GatherOp::create(builder, op.getLoc(), keys, 0, middle);
      Value isBelow =
          orEqual ? emit.binary<aten::LeOp>(key, values) : emit.binary<aten::LtOp>(key, values);
      Value goesOn = emit.binary<aten::LogicalAndOp>(isBelow, emit.binary<aten::LtOp>(low, high));
      low = emit.where(goesOn, emit.add(middle, number(1)), low);
      high = emit.where(goesOn, high, middle);
    }
    return low;
  }

  /// The key at the first place of each shard of the result but the first.
  Value findBorders(Value places) {
    const int64_t values = int64_t(1) << aten::kSortDigitBits, borders = ranks - 1;
    Value found = emit.full({builder.getIndexAttr(borders)}, number(lowest));
    for (unsigned digit = digits; digit-- > 0;) {
      auto unit = static_cast<int64_t>(uint64_t(1) << (digit * aten::kSortDigitBits));
      Value above = emit.mul(range(1, values - 1), number(unit));
      Value edges = emit.add(emit.unsqueeze(found, 1), emit.unsqueeze(above, 0));
      Value flat = emit.view(edges, {builder.getIndexAttr(borders * (values - 1))});
      Value below = localizer.allReduce(builder, countBelow(flat, false), axes, Reduction::Sum);
      below = emit.view(below, {builder.getIndexAttr(borders), builder.getIndexAttr(values - 1)});
      // The largest value of the digit with no more keys in front of it than the place has.
      Value fits = emit.binary<aten::LeOp>(below, emit.unsqueeze(places, 1));
      Value value = emit.sum(emit.cast(fits, i64), {1}, /*keepdim=*/false);
      found = emit.add(found, emit.mul(value, number(unit)));
    }
    return found;
  }

  /// For each member of the group, how many of its elements go to each: [from, to].
  Value countPieces(RowExchange &exchange, Value ofElements, Value extent) {
    // A search may look behind the last one.
    Value behind = emit.full({builder.getIndexAttr(1)}, number(0));
    keys = emit.cat({ofElements, behind}, 0);
    numKeys = extent;
    SmallVector<int64_t> firsts;
    int64_t next = 0;
    for (int64_t extent : ArrayRef(wanted).drop_back())
      firsts.push_back(next += extent);
    Value places = list(firsts), borders = findBorders(places);
    Value below = countBelow(borders, false);
    Value equal = emit.sub(countBelow(borders, true), below);

    Value all = exchange.gather(emit.cat({below, equal}, 0));
    auto half = [&](int64_t begin) {
      return emit.slice(all, 1, builder.getIndexAttr(begin),
                        builder.getIndexAttr(begin + ranks - 1));
    };
    Value belows = half(0), equals = half(ranks - 1);
    // Of the elements that are equal to the one at the border, earlier ranks' come first.
    Value missing = emit.sub(emit.unsqueeze(places, 0), emit.sum(belows, {0}, /*keepdim=*/true));
    Value earlier = emit.sub(
        aten::CumsumOp::create(builder, op.getLoc(), equals, 0, TypeAttr::get(i64)), equals);
    Value open = emit.binary<aten::MaximumOp>(emit.sub(missing, earlier), number(0));
    Value cuts = emit.add(belows, least(open, equals));
    Value starts = emit.zeros({builder.getIndexAttr(ranks), builder.getIndexAttr(1)}, i64);
    Value ends = emit.unsqueeze(list(held), 1);
    return emit.sub(emit.cat({cuts, ends}, 1), emit.cat({starts, cuts}, 1));
  }

  Localizer &localizer;
  OpBuilder &builder;
  aten::SortOp op;
  Emitter emit;
  LocalIndices indices;
  int64_t dim, size;
  Type i64;
  DimSplit before;
  Extents held, wanted; ///< by each member, before and after
  int64_t ranks;
  SmallVector<unsigned> axes; ///< outermost first
  unsigned digits = 0;
  int64_t lowest = 0;
  Value keys;    ///< of this rank, in order, and one more
  Value numKeys; ///< without that one
};

} // namespace

LocalValues shardc::sampleSort(Localizer &localizer, OpBuilder &builder, aten::SortOp op,
                               Value local) {
  return SampleSorter(localizer, builder, op).run(local);
}
