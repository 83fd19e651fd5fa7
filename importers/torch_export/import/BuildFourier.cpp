// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fourier transforms: one op for each dim.
#include "importers/torch_export/import/FourierCall.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

FailureOr<int64_t> normalizationArgument(Call &call) {
  FailureOr<std::optional<int64_t>> value = call.integer("normalization");
  if (failed(value))
    return failure();
  return value->value_or(normalization::None);
}

} // namespace

FailureOr<Results> buildFourierOfComplex(Call &call) {
  FourierCall in(call);
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> forward = call.boolean("forward");
  FailureOr<int64_t> normalization = normalizationArgument(call);
  if (failed(self) || failed(forward) || failed(normalization))
    return failure();
  FailureOr<SmallVector<int64_t>> dims = in.dims(*self);
  if (failed(dims))
    return failure();
  if (dims->empty())
    return Results{in.emit.unary<aten::CloneOp>(*self)};
  return one(in.ofComplex(*self, *dims, *normalization, *forward));
}

FailureOr<Results> buildFourierOfReal(Call &call) {
  FourierCall in(call);
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> onesided = call.boolean("onesided");
  FailureOr<int64_t> normalization = normalizationArgument(call);
  if (failed(self) || failed(onesided) || failed(normalization))
    return failure();
  FailureOr<SmallVector<int64_t>> dims = in.dims(*self);
  if (failed(dims))
    return failure();
  FailureOr<Value> half = in.ofReal(*self, dims->back(), *normalization, *onesided);
  if (failed(half))
    return failure();
  return one(in.ofComplex(*half, ArrayRef(*dims).drop_back(), *normalization, /*forward=*/true));
}

FailureOr<Results> buildFourierToReal(Call &call) {
  FourierCall in(call);
  FailureOr<Value> self = call.tensor("self");
  FailureOr<OpFoldResult> size = call.size("last_dim_size");
  FailureOr<int64_t> normalization = normalizationArgument(call);
  if (failed(self) || failed(size) || failed(normalization))
    return failure();
  FailureOr<SmallVector<int64_t>> dims = in.dims(*self);
  if (failed(dims))
    return failure();
  FailureOr<Value> rest = in.ofComplex(*self, ArrayRef(*dims).drop_back(), *normalization,
                                       /*forward=*/false);
  if (failed(rest))
    return failure();
  return one(in.toReal(*rest, dims->back(), *normalization, *size));
}

//===----------------------------------------------------------------------===//
// torch.fft
//===----------------------------------------------------------------------===//

namespace {

/// fft_irfft2 and its kin: what is read, what is made, and in which direction.
struct TransformKind {
  bool readsReal, makesReal, forward;
  /// Of hfft and ihfft: the half of a transform belongs to the other side.
  bool isHermitian;

  static TransformKind of(StringRef packet) {
    packet.consume_front("fft_");
    packet = packet.rtrim("2n");
    TransformKind kind = {};
    kind.isHermitian = packet.contains("hfft");
    kind.readsReal = packet == "rfft" || packet == "ihfft";
    kind.makesReal = packet == "irfft" || packet == "hfft";
    kind.forward = !packet.starts_with("i");
    return kind;
  }
};

FailureOr<int64_t> normalizationByName(Call &call, bool forward) {
  if (call.isNone("norm"))
    return forward ? normalization::None : normalization::ByCount;
  auto *name = std::get_if<std::string_view>(call.find("norm"));
  if (name && *name == "ortho")
    return int64_t(normalization::ByRoot);
  if (name && (*name == "backward" || *name == "forward"))
    return (*name == "backward") == forward ? normalization::None : normalization::ByCount;
  return call.error() << "the argument 'norm' is none of forward, backward and ortho";
}

/// The dims and the lengths in them, kDynamic where none is given.
struct Lengths {
  SmallVector<int64_t> dims, given;
};

FailureOr<Lengths> lengthsOf(FourierCall &in, Value self, int64_t rank) {
  Call &call = in.call;
  FailureOr<std::optional<SmallVector<int64_t>>> given =
      call.integers(call.schema.find("n") ? "n" : "s");
  FailureOr<SmallVector<int64_t>> dims = in.dims(self);
  if (failed(given) || failed(dims))
    return failure();
  Lengths lengths{*dims, given->value_or(SmallVector<int64_t>())};
  if (lengths.dims.empty()) {
    int64_t count = *given ? static_cast<int64_t>((*given)->size()) : rank;
    llvm::append_range(lengths.dims, llvm::seq<int64_t>(rank - count, rank));
  }
  if (!*given)
    lengths.given.assign(lengths.dims.size(), ShapedType::kDynamic);
  for (int64_t &size : lengths.given)
    if (size == -1)
      size = ShapedType::kDynamic;
  if (lengths.given.size() != lengths.dims.size() || lengths.dims.empty())
    return call.error() << "needs a length for each dim";
  return lengths;
}

} // namespace

FailureOr<Results> buildFourier(Call &call) {
  FourierCall in(call);
  TransformKind kind = TransformKind::of(StringRef(call.schema.overload).split('.').first);
  FailureOr<Value> self = call.tensor("self");
  FailureOr<int64_t> normalization = normalizationByName(call, kind.forward);
  if (failed(self) || failed(normalization))
    return failure();
  bool isPair = call.countsPairs;
  // No dims at all are not the same as all of them.
  if (call.schema.find("s") && !call.isNone("dim")) {
    FailureOr<SmallVector<int64_t>> dims = in.dims(*self);
    if (failed(dims))
      return failure();
    if (dims->empty() && !kind.readsReal && !kind.makesReal) {
      Value z = in.emit.cast(*self, call.resultElementType());
      return Results{isPair ? in.emit.unary<aten::CloneOp>(z) : in.pairs.ofReal(z)};
    }
  }
  FailureOr<Lengths> lengths =
      lengthsOf(in, *self, aten::typeOf(*self).getRank() - (isPair ? 1 : 0));
  if (failed(lengths))
    return failure();
  ArrayRef<int64_t> others = ArrayRef(lengths->dims).drop_back();
  int64_t last = lengths->dims.back(), length = lengths->given.back();
  Value x = in.emit.cast(*self, call.resultElementType());
  OpFoldResult whole; // of what is real in the end
  if (kind.makesReal) {
    whole = call.builder.getIndexAttr(length);
    if (ShapedType::isDynamic(length)) {
      Dim half = in.sizes.of(x, last);
      whole = in.sizes.get(in.sizes.mul(in.sizes.sub(half, Dim(1)), Dim(2)));
    } else {
      lengths->given.back() = length / 2 + 1;
    }
  }
  FailureOr<Value> value = x;
  for (auto [dim, size] : llvm::zip_equal(lengths->dims, lengths->given)) {
    if (!ShapedType::isDynamic(size))
      value = in.resized(*value, dim, size);
    if (failed(value))
      return failure();
  }
  if (kind.readsReal) {
    value = in.ofReal(*value, last, *normalization, /*onesided=*/true);
    if (succeeded(value) && kind.isHermitian)
      value = in.pairs.conj(*value);
    if (succeeded(value))
      value = in.ofComplex(*value, others, *normalization, kind.forward);
    return one(value);
  }
  if (kind.makesReal) {
    Value z = isPair ? *value : in.pairs.ofReal(*value);
    value = in.ofComplex(z, others, *normalization, kind.forward);
    if (succeeded(value) && kind.isHermitian)
      value = in.pairs.conj(*value);
    if (failed(value))
      return failure();
    return one(in.toReal(*value, last, *normalization, whole));
  }
  if (isPair || !kind.forward)
    return one(in.ofComplex(isPair ? *value : in.pairs.ofReal(*value), lengths->dims,
                            *normalization, kind.forward));
  value = in.ofReal(*value, last, *normalization, /*onesided=*/false);
  if (failed(value))
    return failure();
  return one(in.ofComplex(*value, others, *normalization, /*forward=*/true));
}

// The two halves of each dim change places.
FailureOr<Results> buildFourierShift(Call &call) {
  FourierCall in(call);
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  FailureOr<SmallVector<int64_t>> dims = in.dims(*self);
  if (failed(dims))
    return failure();
  if (call.isNone("dim"))
    llvm::append_range(
        *dims, llvm::seq<int64_t>(0, aten::typeOf(*self).getRank() - (call.countsPairs ? 1 : 0)));
  bool isInverse = StringRef(call.schema.overload).contains("ifftshift");
  Value x = *self;
  for (int64_t dim : *dims) {
    Dim size = in.sizes.of(x, dim), middle = in.sizes.ceilDiv(size, 2);
    if (isInverse)
      middle = in.sizes.sub(size, middle);
    OpFoldResult start = call.builder.getIndexAttr(0), cut = in.sizes.get(middle),
                 end = in.sizes.get(size);
    x = in.emit.cat({in.emit.slice(x, dim, cut, end), in.emit.slice(x, dim, start, cut)}, dim);
  }
  return Results{x == *self ? in.emit.unary<aten::CloneOp>(x) : x};
}

// 0, 1, ... and then, unless only half is wanted, the negative ones; divided by n * d.
FailureOr<Results> buildFrequencies(Call &call) {
  Emitter emit(call.builder, call.loc);
  FailureOr<std::optional<int64_t>> n = call.integer("n");
  FailureOr<std::optional<double>> spacing = call.real("d");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType(), i64 = call.builder.getI64Type();
  if (failed(n) || failed(spacing) || failed(sizes) || !type)
    return failure();
  auto index = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(call.builder, call.loc, value);
  };
  Value k = emit.range(index(call.builder.getIndexAttr(0)), index(sizes->front()), /*step=*/1, i64);
  if (!StringRef(call.schema.overload).contains("rfftfreq")) {
    Value isPositive = emit.binary<aten::LtOp>(k, emit.integer((**n + 1) / 2, i64));
    k = emit.where(isPositive, k, emit.sub(k, emit.integer(**n, i64)));
  }
  double step = 1.0 / (static_cast<double>(**n) * **spacing);
  return Results{emit.mul(emit.cast(k, type), emit.scalar(step, type))};
}

} // namespace shardc::torch_export
