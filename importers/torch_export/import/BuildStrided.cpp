// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// as_strided, where it is a view that has another name, where it looks at all elements of a tensor,
// each once, at windows of the last dim, or at any places of a tensor that lies row by row in
// memory. Exports of models in channels-last layouts have the first behind pools, those of
// spectrograms (stft) the third.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// Dims with more than one element, from the one of the largest stride.
struct Layout {
  SmallVector<int64_t> dims, sizes;

  /// Nothing unless these are all the elements of a piece of memory, each once. Dims of one element
  /// have no place in it.
  static std::optional<Layout> of(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
    Layout layout;
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (size != 1)
        layout.dims.push_back(static_cast<int64_t>(dim));
    llvm::sort(layout.dims, [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
    int64_t expected = 1;
    for (int64_t dim : llvm::reverse(layout.dims)) {
      if (strides[dim] != expected)
        return std::nullopt;
      expected *= sizes[dim];
    }
    for (int64_t dim : layout.dims)
      layout.sizes.push_back(sizes[dim]);
    return layout;
  }
};

std::optional<SmallVector<int64_t>> numbers(ArrayRef<SymInt> list) {
  SmallVector<int64_t> found;
  for (const SymInt &entry : list) {
    if (!entry.constant())
      return std::nullopt;
    found.push_back(entry.value);
  }
  return found;
}

int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

InFlightDiagnostic refuse(Call &call) {
  return call.error()
         << "as_strided is supported where it looks at all elements of a tensor of known "
            "sizes, each once, at windows of its last dim, or at a tensor that lies row by row in "
            "memory: use view, permute, slice or unfold instead";
}

FailureOr<Value> permuted(Call &call, Value x, ArrayRef<int64_t> dims) {
  return call.buildOne("aten.permute", {{"self", {x}}}, {call.integersAttr("dims", dims)});
}

FailureOr<Value> shaped(Call &call, Value x, ArrayRef<int64_t> sizes) {
  return buildView(call.builder, call.loc, x,
                   getAsIndexOpFoldResult(call.builder.getContext(), sizes));
}

/// begin + sum_d i_d * strides_d, as a tensor of these sizes.
Value positions(Call &call, int64_t begin, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  Emitter emit(call.builder, call.loc);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(call.builder, call.loc, value);
  };
  Type i64 = call.builder.getI64Type();
  Value at = emit.integer(begin, i64);
  for (auto [count, step] : llvm::zip_equal(sizes, strides))
    at = emit.add(emit.unsqueeze(at, aten::typeOf(at).getRank()),
                  emit.mul(emit.range(index(0), index(count)), emit.integer(step, i64)));
  return at;
}

/// [..., windows, size] of [..., n]: window i begins at element i * step. Null where it is not
/// that.
FailureOr<Value> windowsOfLast(Call &call, Value self, const TensorMeta &from,
                               const TensorMeta &to) {
  size_t rank = from.sizes.size();
  if (rank == 0 || to.sizes.size() != rank + 1)
    return Value();
  for (size_t dim = 0; dim + 1 < rank; ++dim)
    if (!(from.sizes[dim] == to.sizes[dim]) || !(from.strides[dim] == to.strides[dim]))
      return Value();
  std::optional<SmallVector<int64_t>> known =
      numbers({from.sizes.back(), from.strides.back(), to.sizes[rank - 1], to.sizes.back(),
               to.strides[rank - 1], to.strides.back()});
  if (!known)
    return Value();
  int64_t n = (*known)[0], stride = (*known)[1], windows = (*known)[2], size = (*known)[3],
          step = (*known)[4], inner = (*known)[5];
  if (stride != 1 || inner != 1 || windows < 1 || (windows - 1) * step + size > n)
    return Value();
  // Windows of all elements, each once, are a view.
  if (windows * size == n && (windows == 1 || step == size)) {
    FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes();
    if (failed(shape))
      return failure();
    return buildView(call.builder, call.loc, self, *shape);
  }
  return call.buildOne(
      "aten.index",
      {{"self", {self}}, {"indices", {positions(call, 0, {windows, size}, {step, 1})}}},
      {call.integersAttr("indices_at", static_cast<int64_t>(rank) - 1)});
}

/// Places in the memory of `self`, which has known sizes and lies there row by row.
struct Places {
  SmallVector<int64_t> from, size, stride;
  int64_t begin = 0; ///< in elements behind the first one of `self`

  /// Nothing where they are not known, or not all in `self`.
  static std::optional<Places> of(Call &call) {
    const TensorMeta *meta = call.recorded("self");
    FailureOr<std::optional<SmallVector<int64_t>>> size = call.integers("size"),
                                                   stride = call.integers("stride");
    FailureOr<std::optional<int64_t>> begin = call.integer("storage_offset");
    if (failed(size) || failed(stride) || failed(begin) || !meta || !*size || !*stride ||
        (*size)->size() != (*stride)->size())
      return std::nullopt;
    std::optional<SmallVector<int64_t>> from = numbers(meta->sizes),
                                        strides = numbers(meta->strides);
    if (!from || !strides || !meta->offset.constant())
      return std::nullopt;
    int64_t next = 1;
    for (auto [count, step] : llvm::reverse(llvm::zip_equal(*from, *strides))) {
      if (count != 1 && step != next)
        return std::nullopt;
      next *= count;
    }
    Places places{*from, **size, **stride,
                  begin->value_or(meta->offset.value) - meta->offset.value};
    int64_t last = places.begin;
    for (auto [count, step] : llvm::zip_equal(places.size, places.stride)) {
      if (step < 0)
        return std::nullopt;
      last += (count - 1) * step;
    }
    bool isInside = places.begin >= 0 && last < next;
    return isInside || productOf(places.size) == 0 ? std::optional(places) : std::nullopt;
  }

  /// Those places, of the shape `size`.
  Value indices(Call &call) const { return positions(call, begin, size, stride); }
};

} // namespace

FailureOr<Results> buildStrided(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  const TensorMeta *meta = call.recorded("self");
  if (failed(self))
    return failure();
  const TensorMeta *result = call.results.empty() ? nullptr : call.results.front();
  if (!meta || !result)
    return refuse(call);
  // The same look at the same memory, whatever its sizes; dims of one element aside.
  auto sameStrides = [&] {
    for (auto [size, before, after] : llvm::zip_equal(meta->sizes, meta->strides, result->strides))
      if (!(size.constant() && size.value == 1) && !(before == after))
        return false;
    return true;
  };
  bool sameOffset = meta->offset == result->offset;
  if (sameOffset && meta->sizes == result->sizes && sameStrides())
    return one(call.buildOne("aten.alias", {{"self", {*self}}}));
  if (sameOffset) {
    FailureOr<Value> windows = windowsOfLast(call, *self, *meta, *result);
    if (failed(windows) || *windows)
      return one(windows);
  }
  std::optional<SmallVector<int64_t>> from = numbers(meta->sizes),
                                      fromStrides = numbers(meta->strides),
                                      to = numbers(result->sizes),
                                      toStrides = numbers(result->strides);
  // Any other places are looked up.
  auto lookUp = [&]() -> FailureOr<Results> {
    std::optional<Places> places = Places::of(call);
    if (!places)
      return refuse(call);
    FailureOr<Value> flat = shaped(call, *self, productOf(places->from));
    if (failed(flat))
      return failure();
    return one(call.buildOne("aten.index",
                             {{"self", {*flat}}, {"indices", {places->indices(call)}}},
                             {call.integersAttr("indices_at", {0})}));
  };
  if (!sameOffset || !from || !fromStrides || !to || !toStrides ||
      productOf(*from) != productOf(*to))
    return lookUp();
  if (productOf(*to) == 0)
    return one(shaped(call, *self, *to));
  std::optional<Layout> before = Layout::of(*from, *fromStrides),
                        after = Layout::of(*to, *toStrides);
  if (!before || !after)
    return lookUp();
  // In the order of memory, as the result's dims in the order of memory, and back.
  SmallVector<int64_t> order = before->dims;
  for (auto [dim, size] : llvm::enumerate(*from))
    if (size == 1)
      order.push_back(static_cast<int64_t>(dim));
  FailureOr<Value> memory = permuted(call, *self, order);
  if (failed(memory))
    return failure();
  FailureOr<Value> apart = shaped(call, *memory, after->sizes);
  if (failed(apart))
    return failure();
  SmallVector<int64_t> back;
  for (auto [dim, size] : llvm::enumerate(*to))
    if (size != 1)
      back.push_back(llvm::find(after->dims, static_cast<int64_t>(dim)) - after->dims.begin());
  FailureOr<Value> logical = permuted(call, *apart, back);
  if (failed(logical))
    return failure();
  return one(shaped(call, *logical, *to));
}

// `src` at places of the memory of `self`.
FailureOr<Results> buildStridedScatter(Call &call) {
  FailureOr<Value> self = call.tensor("self"), src = call.tensor("src");
  std::optional<Places> places = Places::of(call);
  if (failed(self) || failed(src))
    return failure();
  if (!places)
    return call.error() << "as_strided_scatter is supported where the tensor that is written has "
                           "known sizes and lies row by row in memory";
  if (productOf(places->size) == 0)
    return one(call.buildOne("aten.clone", {{"self", {*self}}}));
  FailureOr<Value> flat = shaped(call, *self, productOf(places->from));
  if (failed(flat))
    return failure();
  FailureOr<Value> written =
      call.buildOne("aten.index_write",
                    {{"self", {*flat}}, {"indices", {places->indices(call)}}, {"values", {*src}}},
                    {call.integersAttr("indices_at", {0})});
  if (failed(written))
    return failure();
  return one(shaped(call, *written, places->from));
}

} // namespace shardc::torch_export
