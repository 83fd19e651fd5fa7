// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that add borders of a tensor's own elements, and their backward. One dim after the
// other, from the last: the border, which is a part of the tensor, stands beside it.
#include "importers/torch_export/import/Complex.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/KnownLookups.h"
#include "dialects/aten/LookupLine.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

enum class Border { Constant, Reflection, Replication, Circular };

struct Pad {
  Call &call;
  Emitter emit;
  Border border = Border::Constant;
  SmallVector<int64_t> widths; ///< pairs (before, after), for the last dim first

  explicit Pad(Call &call) : call(call), emit(call.builder, call.loc) {}

  static FailureOr<Pad> of(Call &call) {
    Pad pad(call);
    StringRef packet = StringRef(call.schema.overload).split('.').first, mode = packet;
    if (auto *word =
            call.schema.find("mode") ? std::get_if<std::string_view>(call.find("mode")) : nullptr)
      mode = *word;
    if (mode.contains("refl"))
      pad.border = Border::Reflection;
    else if (mode.contains("repli"))
      pad.border = Border::Replication;
    else if (mode.contains("circular"))
      pad.border = Border::Circular;
    else if (mode != "constant")
      return call.error() << "there is no padding '" << mode << "'";
    FailureOr<std::optional<SmallVector<int64_t>>> widths =
        call.integers(call.schema.find("pad") ? "pad" : "padding");
    if (failed(widths))
      return failure();
    pad.widths = **widths;
    return pad;
  }

  FailureOr<Value> constant(Value x, ArrayRef<int64_t> pad, double value = 0) {
    return call.buildOne("aten.constant_pad_nd", {{"self", {x}}},
                         {call.integersAttr("pad", pad),
                          call.builder.getNamedAttr("value", call.builder.getF64FloatAttr(value))});
  }
  /// Zeros before and after along one dim; negative widths cut off.
  FailureOr<Value> padded(Value x, int64_t dim, int64_t before, int64_t after) {
    if (before == 0 && after == 0)
      return x;
    SmallVector<int64_t> pad(2 * (aten::typeOf(x).getRank() - dim), 0);
    pad[pad.size() - 2] = before;
    pad.back() = after;
    return constant(x, pad);
  }

  OpFoldResult number(int64_t value) { return call.builder.getIndexAttr(value); }
  OpFoldResult sizeOf(Value x, int64_t dim) { return sizesOf(call.builder, call.loc, x)[dim]; }
  Value slice(Value x, int64_t dim, OpFoldResult start, OpFoldResult end) {
    return emit.slice(x, dim, start, end);
  }
  /// Counted from the end.
  OpFoldResult fromEnd(Value x, int64_t dim, int64_t count) {
    return addSizes(call.builder, call.loc, sizeOf(x, dim), number(-count));
  }
  Value flipped(Value x, int64_t dim) {
    return aten::FlipOp::create(call.builder, call.loc, x, ArrayRef(dim));
  }
  /// The one element of `dim`, `count` times.
  Value repeated(Value x, int64_t dim, int64_t count) {
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, x);
    // The type of a slice of a dim of unknown size does not say that it is one.
    if (ShapedType::isDynamic(aten::shapeOf(x)[dim])) {
      sizes[dim] = number(1);
      x = emit.view(x, sizes);
    }
    sizes[dim] = number(count);
    return emit.full(sizes, x);
  }

  Value borderBefore(Value x, int64_t dim, int64_t width) {
    switch (border) {
    case Border::Reflection:
      return flipped(slice(x, dim, number(1), number(1 + width)), dim);
    case Border::Replication:
      return repeated(slice(x, dim, number(0), number(1)), dim, width);
    default:
      return slice(x, dim, fromEnd(x, dim, width), sizeOf(x, dim));
    }
  }
  Value borderAfter(Value x, int64_t dim, int64_t width) {
    switch (border) {
    case Border::Reflection:
      return flipped(slice(x, dim, fromEnd(x, dim, 1 + width), fromEnd(x, dim, 1)), dim);
    case Border::Replication:
      return repeated(slice(x, dim, fromEnd(x, dim, 1), sizeOf(x, dim)), dim, width);
    default:
      return slice(x, dim, number(0), number(width));
    }
  }

  /// The elements at the ends several times, as one lookup along the dim: of a sharded dim, ranks
  /// then need few rows of others. Null where the borders are so wide that the derivative of a
  /// lookup is more work.
  Value replicated(Value x, int64_t dim, int64_t before, int64_t after) {
    constexpr int64_t kWidest = 7, kLongest = 1 << 16;
    int64_t size = aten::shapeOf(x)[dim];
    if (ShapedType::isDynamic(size) && (before > 0 || after > 0))
      return replicatedBySize(x, dim, std::max<int64_t>(before, 0), std::max<int64_t>(after, 0));
    if (ShapedType::isDynamic(size) || size == 0 || size > kLongest ||
        std::max(before, after) > kWidest || (before <= 0 && after <= 0))
      return Value();
    SmallVector<int64_t> positions;
    for (int64_t i = -std::max<int64_t>(before, 0); i < size + std::max<int64_t>(after, 0); ++i)
      positions.push_back(std::clamp<int64_t>(i, 0, size - 1));
    return aten::IndexSelectOp::create(call.builder, call.loc, x, dim,
                                       aten::vectorOf(emit, positions));
  }

  /// Likewise where the program computes the positions.
  Value replicatedBySize(Value x, int64_t dim, int64_t before, int64_t after) {
    Type i64 = call.builder.getI64Type();
    auto value = [&](OpFoldResult size) {
      return getValueOrCreateConstantIndexOp(call.builder, call.loc, size);
    };
    OpFoldResult size = sizeOf(x, dim);
    Value first = value(number(-before));
    Value length = value(addSizes(call.builder, call.loc, size, number(before + after)));
    Value last = emit.sub(emit.ofIndex(value(size), i64), emit.integer(1, i64));
    Value inside = emit.binary<aten::MinimumOp>(emit.range(first, length), last);
    Value position = emit.binary<aten::MaximumOp>(inside, emit.integer(0, i64));
    auto lookup = aten::IndexSelectOp::create(call.builder, call.loc, x, dim, position);
    aten::LookupLine line;
    line.numerator = line.denominator = 1;
    line.shift = 2 * before;
    if (std::abs(line.shift) <= aten::LookupLine::kMost)
      line.setOn(lookup);
    return lookup;
  }

  Value joined(Value x, int64_t dim, int64_t before, int64_t after) {
    SmallVector<Value> parts;
    if (before > 0)
      parts.push_back(borderBefore(x, dim, before));
    parts.push_back(x);
    if (after > 0)
      parts.push_back(borderAfter(x, dim, after));
    return parts.size() == 1 ? x : emit.cat(parts, dim);
  }

  int64_t dimOf(size_t pair, Value x) const {
    return aten::typeOf(x).getRank() - 1 - static_cast<int64_t>(pair);
  }

  FailureOr<Value> forward(Value x) {
    for (size_t pair = 0; pair < widths.size() / 2; ++pair) {
      int64_t dim = dimOf(pair, x), before = widths[2 * pair], after = widths[2 * pair + 1];
      // What is cut off is so first where borders wrap around, last where they are of the ends.
      FailureOr<Value> cut = x;
      int64_t cutBefore = std::min<int64_t>(before, 0), cutAfter = std::min<int64_t>(after, 0);
      if (border == Border::Circular)
        cut = padded(x, dim, cutBefore, cutAfter);
      if (failed(cut))
        return failure();
      FailureOr<Value> whole =
          border == Border::Replication ? replicated(*cut, dim, before, after) : Value();
      if (!*whole)
        whole = joined(*cut, dim, before, after);
      if (border != Border::Circular)
        whole = padded(*whole, dim, cutBefore, cutAfter);
      if (failed(whole))
        return failure();
      x = *whole;
    }
    return x;
  }

  /// Of a reflection or a replication of a tensor of these sizes.
  FailureOr<Value> backward(Value grad, ArrayRef<int64_t> shape) {
    for (size_t pair = widths.size() / 2; pair-- > 0;) {
      int64_t dim = dimOf(pair, grad), before = widths[2 * pair], after = widths[2 * pair + 1];
      int64_t size = shape[dim];
      if (before == 0 && after == 0)
        continue;
      if (ShapedType::isDynamic(size))
        return call.error() << "the backward of a pad needs an image of known size in dim " << dim;
      FailureOr<Value> whole =
          padded(grad, dim, std::max<int64_t>(-before, 0), std::max<int64_t>(-after, 0));
      if (failed(whole))
        return failure();
      before = std::max<int64_t>(before, 0);
      after = std::max<int64_t>(after, 0);
      Value sum = slice(*whole, dim, number(before), number(before + size));
      auto add = [&](int64_t from, int64_t width, bool isBefore) -> LogicalResult {
        if (width == 0)
          return success();
        Value part = slice(*whole, dim, number(from), number(from + width));
        bool reflects = border == Border::Reflection;
        part = reflects ? flipped(part, dim) : emit.sum(part, dim, /*keepdim=*/true);
        int64_t length = reflects ? width : 1, gap = reflects ? 1 : 0;
        int64_t rest = size - length - gap;
        FailureOr<Value> placed =
            isBefore ? padded(part, dim, gap, rest) : padded(part, dim, rest, gap);
        if (failed(placed))
          return failure();
        sum = emit.add(sum, *placed);
        return success();
      };
      if (failed(add(0, before, true)) || failed(add(before + size, after, false)))
        return failure();
      grad = sum;
    }
    return grad;
  }
};

} // namespace

FailureOr<Results> buildPad(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<Pad> pad = Pad::of(call);
  if (failed(self) || failed(pad))
    return failure();
  if (pad->border != Border::Constant) {
    if (isOfPairs(call, "self"))
      pad->widths.insert(pad->widths.begin(), 2, 0);
    return one(pad->forward(*self));
  }
  if (isOfPairs(call, "self"))
    return buildComplexPad(call);
  FailureOr<std::optional<double>> value = call.real("value");
  if (failed(value))
    return failure();
  return one(pad->constant(*self, pad->widths, value->value_or(0)));
}

FailureOr<Results> buildPadBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output"), self = call.tensor("self");
  FailureOr<Pad> pad = Pad::of(call);
  if (failed(grad) || failed(self) || failed(pad))
    return failure();
  return one(pad->backward(*grad, aten::shapeOf(*self)));
}

} // namespace shardc::torch_export
