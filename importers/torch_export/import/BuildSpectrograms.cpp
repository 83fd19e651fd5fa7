// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short-time Fourier transforms of signals in rows, and their inverse: a transform of each frame,
// which is `n_fft` elements of a row, `hop_length` behind the one before.
#include "importers/torch_export/import/FourierCall.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

struct Frames {
  Call &call;
  FourierCall &in;
  int64_t size = 0, hop = 0; ///< of a frame, and between two
  bool isOneSided = false, isScaled = false;
  Value window; ///< of `size` elements or pairs, or null
  bool isWindowOfPairs = false;

  explicit Frames(FourierCall &in) : call(in.call), in(in) {}

  static FailureOr<Frames> of(FourierCall &in, bool isComplex) {
    Call &call = in.call;
    Frames frames(in);
    FailureOr<std::optional<int64_t>> size = call.integer("n_fft"),
                                      hop = call.integer("hop_length"),
                                      length = call.integer("win_length");
    FailureOr<Value> window = call.tensor("window");
    FailureOr<bool> scaled = call.boolean("normalized");
    FailureOr<bool> oneSided = call.isNone("onesided") ? !isComplex : call.boolean("onesided");
    if (failed(size) || failed(hop) || failed(length) || failed(window) || failed(scaled) ||
        failed(oneSided))
      return failure();
    frames.isWindowOfPairs = isOfPairs(call, "window");
    frames.size = **size;
    frames.hop = hop->value_or(frames.size / 4);
    frames.isScaled = *scaled;
    frames.isOneSided = *oneSided;
    int64_t width = length->value_or(frames.size);
    if (frames.size < 1 || frames.hop < 1 || width < 1 || width > frames.size)
      return call.error() << "needs frames and hops of at least one element, and a window that is "
                             "no longer than a frame";
    frames.window = *window;
    if (frames.window && aten::elementTypeOf(frames.window) != call.resultElementType())
      frames.window = in.emit.cast(frames.window, call.resultElementType());
    if (!frames.window && width < frames.size)
      frames.window = in.emit.full({call.builder.getIndexAttr(width)},
                                   in.emit.scalar(1, call.resultElementType()));
    if (frames.window && width < frames.size) {
      int64_t before = (frames.size - width) / 2;
      SmallVector<int64_t> widths(frames.isWindowOfPairs ? 2 : 0, 0);
      widths.append({before, frames.size - width - before});
      frames.window = aten::ConstantPadNdOp::create(call.builder, call.loc, frames.window, widths,
                                                    APFloat(0.0));
    }
    return frames;
  }

  int64_t normalization(bool forward) const {
    return isScaled  ? normalization::ByRoot
           : forward ? normalization::None
                     : normalization::ByCount;
  }
  /// Frames, which are of pairs where the window is, times the window.
  Value weighted(Value frames, bool isPair) {
    if (!window)
      return frames;
    return isWindowOfPairs ? in.pairs.mul(frames, window)
                           : in.emit.mul(frames, isPair ? in.pairs.beside(window) : window);
  }
  /// Position in a row of each element of each frame: [count, size].
  Value positions(int64_t count) {
    auto range = [&](int64_t length) {
      return in.emit.range(arith::ConstantIndexOp::create(call.builder, call.loc, 0),
                           arith::ConstantIndexOp::create(call.builder, call.loc, length));
    };
    Value begins = in.emit.mul(range(count), in.emit.integer(hop, call.builder.getI64Type()));
    return in.emit.add(in.emit.unsqueeze(begins, 1), range(size));
  }
  Value swapped(Value x) { return aten::TransposeOp::create(call.builder, call.loc, x, 1, 2); }
  /// Without the dim of rows where the signal was given without it.
  FailureOr<Results> inShape(Value x) {
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
    if (failed(sizes))
      return failure();
    return Results{in.emit.view(x, *sizes)};
  }
  /// Frames [rows, frames, size] added up where they overlap.
  FailureOr<Value> addedUp(Value frames, int64_t count, int64_t length) {
    SmallVector<OpFoldResult> sizes = {sizesOf(call.builder, call.loc, frames).front(),
                                       call.builder.getIndexAttr(length)};
    bool isPair = aten::typeOf(frames).getRank() == 4;
    if (isPair)
      sizes.push_back(call.builder.getIndexAttr(2));
    Value zeros = in.emit.zeros(sizes, aten::elementTypeOf(frames));
    return call.buildOne("aten.index_put",
                         {{"self", {zeros}}, {"indices", {positions(count)}}, {"values", {frames}}},
                         {call.integersAttr("indices_at", 1),
                          call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
  }
};

InFlightDiagnostic needsLength(Call &call) {
  return call.error() << "needs a signal of known length";
}

} // namespace

FailureOr<Results> buildSpectrogram(Call &call) {
  bool isSignalOfPairs = isOfPairs(call, "self"),
       isPair = isSignalOfPairs || isOfPairs(call, "window");
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> aligned = call.boolean("align_to_window");
  FourierCall in(call);
  FailureOr<Frames> frames = Frames::of(in, isPair);
  if (failed(self) || failed(aligned) || failed(frames))
    return failure();
  if (*aligned)
    return call.error() << "'align_to_window' is not supported";
  Emitter &emit = in.emit;
  Value signal = emit.cast(*self, call.resultElementType());
  if (isPair && !isSignalOfPairs)
    signal = in.pairs.ofReal(signal);
  if (aten::typeOf(signal).getRank() == (isPair ? 2 : 1))
    signal = emit.unsqueeze(signal, 0);
  int64_t length = aten::shapeOf(signal)[1];
  if (ShapedType::isDynamic(length))
    return needsLength(call);
  if (length < frames->size)
    return call.error() << "a frame has " << frames->size << " elements, the signal " << length;
  FailureOr<Value> read =
      call.buildOne("aten.index",
                    {{"self", {signal}},
                     {"indices", {frames->positions((length - frames->size) / frames->hop + 1)}}},
                    {call.integersAttr("indices_at", 1)});
  if (failed(read))
    return failure();
  Value weighted = frames->weighted(*read, isPair);
  int64_t scale = frames->normalization(/*forward=*/true);
  FailureOr<Value> spectrum = isPair ? in.ofComplex(weighted, 2, scale, /*forward=*/true)
                                     : in.ofReal(weighted, 2, scale, frames->isOneSided);
  if (failed(spectrum))
    return failure();
  return frames->inShape(frames->swapped(*spectrum));
}

FailureOr<Results> buildInverseSpectrogram(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> isCentred = call.boolean("center"), isComplex = call.boolean("return_complex");
  FailureOr<std::optional<int64_t>> length = call.integer("length");
  if (failed(self) || failed(isCentred) || failed(isComplex) || failed(length))
    return failure();
  FourierCall in(call);
  FailureOr<Frames> frames = Frames::of(in, *isComplex);
  if (failed(frames))
    return failure();
  Emitter &emit = in.emit;
  Value spectrum = emit.cast(*self, call.resultElementType());
  if (aten::typeOf(spectrum).getRank() == 3)
    spectrum = emit.unsqueeze(spectrum, 0);
  int64_t bins = aten::shapeOf(spectrum)[1], count = aten::shapeOf(spectrum)[2];
  if (ShapedType::isDynamic(count) || ShapedType::isDynamic(bins))
    return needsLength(call);
  bool isHalf = call.isNone("onesided") ? bins != frames->size : frames->isOneSided;
  FailureOr<Value> turned = frames->swapped(spectrum);
  int64_t scale = frames->normalization(/*forward=*/false);
  if (*isComplex) {
    turned = in.ofComplex(*turned, 2, scale, /*forward=*/false);
  } else {
    // Of a whole spectrum of a real signal, half says all.
    int64_t half = frames->size / 2 + 1;
    if (!isHalf)
      turned =
          emit.slice(*turned, 2, call.builder.getIndexAttr(0), call.builder.getIndexAttr(half));
    turned = in.toReal(*turned, 2, scale, call.builder.getIndexAttr(frames->size));
  }
  if (failed(turned))
    return failure();
  Value weighted = frames->weighted(*turned, *isComplex), weights = frames->window;
  int64_t whole = frames->size + frames->hop * (count - 1);
  FailureOr<Value> sums = frames->addedUp(weighted, count, whole);
  // What each element was multiplied by, in the forward and here.
  if (!weights)
    weights = emit.full({call.builder.getIndexAttr(frames->size)},
                        emit.scalar(1, call.resultElementType()));
  bool hasPairs = frames->isWindowOfPairs;
  SmallVector<int64_t> ofSquares = {1, count, frames->size};
  if (hasPairs)
    ofSquares.push_back(2);
  FailureOr<Value> squares =
      buildExpand(call.builder, call.loc,
                  hasPairs ? in.pairs.mul(weights, weights) : emit.mul(weights, weights),
                  getAsIndexOpFoldResult(call.builder.getContext(), ofSquares));
  if (failed(sums) || failed(squares))
    return failure();
  FailureOr<Value> envelope = frames->addedUp(*squares, count, whole);
  if (failed(envelope))
    return failure();
  int64_t begin = *isCentred ? frames->size / 2 : 0;
  int64_t end = *length ? begin + **length : *isCentred ? whole - frames->size / 2 : whole;
  int64_t last = std::min(end, whole);
  if (last <= begin)
    return call.error() << "nothing is left of the signal";
  auto part = [&](Value x) {
    return emit.slice(x, 1, call.builder.getIndexAttr(begin), call.builder.getIndexAttr(last));
  };
  Value divisor = part(*envelope), signal = part(*sums);
  if (hasPairs)
    signal = in.pairs.div(signal, divisor);
  else
    signal = emit.div(signal, *isComplex ? in.pairs.beside(divisor) : divisor);
  if (end > last) {
    SmallVector<int64_t> widths(*isComplex ? 4 : 2, 0);
    widths.back() = end - last;
    signal = aten::ConstantPadNdOp::create(call.builder, call.loc, signal, widths, APFloat(0.0));
  }
  return frames->inShape(signal);
}

} // namespace shardc::torch_export
