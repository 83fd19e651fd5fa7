// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that take dims apart and put them together in another order, and gated units.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Emitter.h"
#include "dialects/aten/KnownLookups.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

FailureOr<Value> permuted(Call &call, FailureOr<Value> x, ArrayRef<int64_t> dims) {
  if (failed(x))
    return failure();
  return call.buildOne("aten.permute", {{"self", {*x}}}, {call.integersAttr("dims", dims)});
}

/// 0, 1, ... count - 1, then `more`.
SmallVector<int64_t> upTo(int64_t count, ArrayRef<int64_t> more) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, count));
  llvm::append_range(dims, more);
  return dims;
}

/// A view of `apart` of the tensor, permuted, and viewed as `sizes`.
FailureOr<Results> reordered(Call &call, Value self, ArrayRef<OpFoldResult> apart,
                             ArrayRef<int64_t> dims, ArrayRef<OpFoldResult> sizes) {
  FailureOr<Value> moved = permuted(call, buildView(call.builder, call.loc, self, apart), dims);
  if (failed(moved))
    return failure();
  return one(buildView(call.builder, call.loc, *moved, sizes));
}

/// Squares of pixels that become channels, or the other way round.
FailureOr<Results> buildPixels(Call &call, StringRef argument, bool toChannels) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<int64_t>> factor = call.integer(argument);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(factor) || failed(sizes))
    return failure();
  SmallVector<OpFoldResult> from = sizesOf(call.builder, call.loc, *self);
  auto n = static_cast<int64_t>(from.size()) - 3;
  OpFoldResult r = call.builder.getIndexAttr(**factor);
  SmallVector<OpFoldResult> apart(ArrayRef(toChannels ? from : *sizes).take_front(n + 1));
  if (toChannels) {
    apart.append({(*sizes)[n + 1], r, (*sizes)[n + 2], r});
    return reordered(call, *self, apart, upTo(n + 1, {n + 2, n + 4, n + 1, n + 3}), *sizes);
  }
  apart.append({r, r, from[n + 1], from[n + 2]});
  return reordered(call, *self, apart, upTo(n + 1, {n + 3, n + 1, n + 4, n + 2}), *sizes);
}

} // namespace

// [..., C r r, H, W] as [..., C, H r, W r].
FailureOr<Results> buildPixelShuffle(Call &call) {
  return buildPixels(call, "upscale_factor", /*toChannels=*/false);
}

// [..., C, H r, W r] as [..., C r r, H, W].
FailureOr<Results> buildPixelUnshuffle(Call &call) {
  return buildPixels(call, "downscale_factor", /*toChannels=*/true);
}

// Channels [groups, of a group] as [of a group, groups].
FailureOr<Results> buildChannelShuffle(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<int64_t>> groups = call.integer("groups");
  if (failed(self) || failed(groups))
    return failure();
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, *self), apart = sizes;
  std::optional<int64_t> channels = getConstantIntValue(sizes[1]);
  if (!channels || **groups <= 0 || *channels % **groups != 0)
    return call.error() << "needs a known number of channels, in " << **groups
                        << " groups of one size";
  apart[1] = call.builder.getIndexAttr(**groups);
  apart.insert(apart.begin() + 2, call.builder.getIndexAttr(*channels / **groups));
  SmallVector<int64_t> dims = upTo(static_cast<int64_t>(apart.size()), {});
  std::swap(dims[1], dims[2]);
  return reordered(call, *self, apart, dims, sizes);
}

//===----------------------------------------------------------------------===//
// Windows along one dim
//===----------------------------------------------------------------------===//

namespace {

struct Unfolding {
  Call &call;
  Emitter emit;
  int64_t dim, size, step;

  static FailureOr<Unfolding> of(Call &call, int64_t rank) {
    FailureOr<int64_t> dim =
        call.dimArgument(call.schema.find("dimension") ? "dimension" : "dim", rank);
    FailureOr<std::optional<int64_t>> size = call.integer("size"), step = call.integer("step");
    if (failed(dim) || failed(size) || failed(step))
      return failure();
    return Unfolding{call, Emitter(call.builder, call.loc), *dim, **size, **step};
  }

  Value index(int64_t count, OpFoldResult length, int64_t by) {
    auto value = [&](OpFoldResult number) {
      return getValueOrCreateConstantIndexOp(call.builder, call.loc, number);
    };
    Value range = emit.range(value(call.builder.getIndexAttr(0)), value(length));
    if (by != 1)
      range = emit.mul(range, emit.integer(by, call.builder.getI64Type()));
    SmallVector<OpFoldResult> sizes(count, call.builder.getIndexAttr(1));
    sizes.front() = length;
    return emit.view(range, sizes);
  }

  /// Positions along the dim: [windows, size].
  Value positions(OpFoldResult windows) {
    return emit.add(index(2, windows, step), index(1, call.builder.getIndexAttr(size), 1));
  }

  /// The elements of short windows, each from a lookup at known positions: of a sharded dim, ranks
  /// then need few rows of others. Null for other windows.
  Value stacked(Value self, OpFoldResult windows) {
    constexpr int64_t kLongest = 8, kMost = 1 << 16;
    std::optional<int64_t> count = getConstantIntValue(windows);
    if (!count || *count < 2 || *count > kMost || size < 1 || size > kLongest)
      return Value();
    SmallVector<Value> elements;
    for (int64_t k = 0; k < size; ++k) {
      SmallVector<int64_t> positions;
      for (int64_t i = 0; i < *count; ++i)
        positions.push_back(i * step + k);
      elements.push_back(aten::IndexSelectOp::create(call.builder, call.loc, self, dim,
                                                     aten::vectorOf(emit, positions)));
    }
    return aten::StackOp::create(call.builder, call.loc, elements, aten::typeOf(self).getRank());
  }

  /// The dim of what a window covers is the last one of the result, and follows that of the windows
  /// where it is read.
  SmallVector<int64_t> order(int64_t rank, bool back) const {
    SmallVector<int64_t> dims = upTo(rank, {});
    if (back) {
      dims.insert(dims.begin() + dim + 1, rank);
      return dims;
    }
    dims.push_back(rank);
    dims.erase(dims.begin() + dim + 1);
    dims.push_back(dim + 1);
    return dims;
  }
};

} // namespace

FailureOr<Results> buildUnfold(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(sizes))
    return failure();
  int64_t rank = aten::typeOf(*self).getRank();
  FailureOr<Unfolding> unfolding = Unfolding::of(call, rank);
  if (failed(unfolding))
    return failure();
  if (rank == 0) // one element, or none of it
    return one(buildSlice(call.builder, call.loc, unfolding->emit.unsqueeze(*self, 0), 0,
                          call.builder.getIndexAttr(0), sizes->front()));
  int64_t dim = unfolding->dim;
  OpFoldResult windows = (*sizes)[dim];
  FailureOr<Value> read;
  if (unfolding->step == unfolding->size && unfolding->size > 0) {
    // Windows beside each other are a view.
    aten::BuiltSizes built(call.builder, call.loc);
    OpFoldResult covered = built.get(built.mul(built.of(windows), Dim(unfolding->size)));
    FailureOr<Value> part =
        buildSlice(call.builder, call.loc, *self, dim, call.builder.getIndexAttr(0), covered);
    if (failed(part))
      return failure();
    SmallVector<OpFoldResult> apart = sizesOf(call.builder, call.loc, *self);
    apart[dim] = windows;
    apart.insert(apart.begin() + dim + 1, call.builder.getIndexAttr(unfolding->size));
    read = buildView(call.builder, call.loc, *part, apart);
  } else if (Value stacked = unfolding->stacked(*self, windows)) {
    return Results{stacked};
  } else {
    read = call.buildOne("aten.index",
                         {{"self", {*self}}, {"indices", {unfolding->positions(windows)}}},
                         {call.integersAttr("indices_at", dim)});
  }
  return one(permuted(call, read, unfolding->order(rank, /*back=*/false)));
}

FailureOr<Results> buildUnfoldBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_in");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(grad) || failed(sizes))
    return failure();
  auto rank = static_cast<int64_t>(sizes->size());
  if (rank == 0)
    return one(call.buildOne("aten.sum", {{"self", {*grad}}}, {call.integersAttr("dim", 0)}));
  FailureOr<Unfolding> unfolding = Unfolding::of(call, rank);
  if (failed(unfolding))
    return failure();
  OpFoldResult windows = sizesOf(call.builder, call.loc, *grad)[unfolding->dim];
  FailureOr<Value> values = permuted(call, *grad, unfolding->order(rank, /*back=*/true));
  if (failed(values))
    return failure();
  Value zeros = unfolding->emit.zeros(*sizes, aten::elementTypeOf(*grad));
  return one(call.buildOne(
      "aten.index_put",
      {{"self", {zeros}}, {"indices", {unfolding->positions(windows)}}, {"values", {*values}}},
      {call.integersAttr("indices_at", unfolding->dim),
       call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())}));
}

//===----------------------------------------------------------------------===//
// Gated units
//===----------------------------------------------------------------------===//

namespace {

/// The two halves of a dim.
struct Halves {
  Emitter emit;
  int64_t dim;
  Value value, gate;

  static FailureOr<Halves> of(Call &call) {
    FailureOr<Value> self = call.tensor("self");
    if (failed(self))
      return failure();
    FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
    if (failed(dim))
      return failure();
    OpFoldResult size = sizesOf(call.builder, call.loc, *self)[*dim];
    std::optional<int64_t> whole = getConstantIntValue(size);
    if (!whole || *whole % 2 != 0)
      return call.error() << "needs a dim of known, even size";
    OpFoldResult half = call.builder.getIndexAttr(*whole / 2);
    Emitter emit(call.builder, call.loc);
    return Halves{emit, *dim, emit.slice(*self, *dim, call.builder.getIndexAttr(0), half),
                  emit.unary<aten::SigmoidOp>(emit.slice(*self, *dim, half, size))};
  }
};

} // namespace

FailureOr<Results> buildGatedUnit(Call &call) {
  FailureOr<Halves> halves = Halves::of(call);
  if (failed(halves))
    return failure();
  return Results{halves->emit.mul(halves->value, halves->gate)};
}

FailureOr<Results> buildGatedUnitBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<Halves> halves = Halves::of(call);
  if (failed(grad) || failed(halves))
    return failure();
  Emitter &emit = halves->emit;
  Value ofValue = emit.mul(*grad, halves->gate);
  Value one = emit.scalar(1, aten::elementTypeOf(*grad));
  Value ofGate = emit.mul(emit.mul(ofValue, halves->value), emit.sub(one, halves->gate));
  return Results{emit.cat({ofValue, ofGate}, halves->dim)};
}

} // namespace shardc::torch_export
