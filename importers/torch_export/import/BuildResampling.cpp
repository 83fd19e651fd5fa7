// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that change the size of images (torch.nn.functional.interpolate), and their backward.
//
// All of them go one spatial dim after the other: an element of the result is a sum of one, two or
// four elements of the dim, each with a weight that depends on the position alone. So they become
// lookups at positions that are computed as PyTorch does it, in the same element type: here where
// the sizes are known, else by the program. A repetition by a whole number is a view.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/ResampledPositions.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/KnownLookups.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

struct Resampling : ResampledPositions {
  Call &call;

  explicit Resampling(Call &call) : ResampledPositions(call.builder, call.loc), call(call) {}

  static FailureOr<Resampling> of(Call &call, Type element) {
    Resampling found(call);
    StringRef packet = StringRef(call.schema.overload).split('.').first;
    found.mode = packet.contains("nearest_exact") ? Mode::NearestExact
                 : packet.contains("nearest")     ? Mode::Nearest
                 : packet.contains("cubic")       ? Mode::Cubic
                                                  : Mode::Linear;
    found.element = element;
    found.wide = Emitter::accumulator(element);
    bool isNearest = found.mode == Mode::Nearest || found.mode == Mode::NearestExact;
    if (!isNearest && !isa<FloatType>(element))
      return call.error()
             << "only floats are interpolated between: cast the image before, and round "
                "after";
    if (call.schema.find("align_corners")) {
      FailureOr<bool> align = call.boolean("align_corners");
      if (failed(align))
        return failure();
      found.alignCorners = *align;
    }
    if (call.schema.find("scale_factors")) {
      if (auto *list = std::get_if<std::vector<double>>(call.find("scale_factors")))
        found.factors.assign(list->begin(), list->end());
      found.followsFactors = !found.factors.empty();
      return found;
    }
    for (StringRef name : {"scales_d", "scales_h", "scales_w", "scales"}) {
      if (!call.schema.find(name))
        continue;
      FailureOr<std::optional<double>> factor = call.real(name);
      if (failed(factor))
        return failure();
      found.factors.push_back(factor->value_or(0));
    }
    return found;
  }

  void setLine(Value lookup, const Tap &tap, int64_t dim) const {
    std::optional<aten::LookupLine> line = lineOf(dim);
    if (line && !tap.position.getDefiningOp<aten::ConstantOp>())
      line->setOn(lookup.getDefiningOp());
  }

  /// A weight along `dim`.
  Value along(Value weight, int64_t dim) {
    SmallVector<OpFoldResult> sizes(rank() - dim, call.builder.getIndexAttr(1));
    sizes.front() = out[dim];
    return emit.view(weight, sizes);
  }

  Value forward(Value x) {
    bool isWide = false;
    // Outer dims first: they are the ones that ranks share out, and rows that are exchanged are
    // shorter before the inner dims grow.
    for (int64_t dim = 2; dim < rank(); ++dim) {
      if (isSame(dim))
        continue;
      SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, x);
      if (int64_t many = repetition(dim)) {
        SmallVector<OpFoldResult> apart = sizes;
        apart.insert(apart.begin() + dim + 1, call.builder.getIndexAttr(many));
        sizes[dim] = out[dim];
        x = emit.view(emit.full(apart, emit.unsqueeze(x, dim + 1)), sizes);
        continue;
      }
      Value sum;
      for (const Tap &tap : taps(dim)) {
        Value read = aten::IndexSelectOp::create(call.builder, call.loc, x, dim, tap.position);
        setLine(read, tap, dim);
        if (tap.weight) {
          read = emit.mul(emit.cast(read, wide), along(tap.weight, dim));
          isWide = true;
        }
        sum = sum ? emit.add(sum, read) : read;
      }
      x = sum;
    }
    return isWide ? emit.cast(x, element) : x;
  }

  /// What each element of the image gets of those that read it, where these are known and few.
  Value sumsOf(Value values, Value position, int64_t dim) {
    auto constant = position.getDefiningOp<aten::ConstantOp>();
    if (!constant || !llvm::all_of(in, [&](OpFoldResult size) { return fixed(size); }))
      return Value();
    auto numbers = cast<DenseIntElementsAttr>(constant.getValue()).getValues<int64_t>();
    return aten::sumsAt(emit, values, llvm::to_vector(numbers), dim, *fixed(in[dim]));
  }

  FailureOr<Value> backward(Value grad) {
    // PyTorch's own copies where all sizes are kept, whatever the factors are.
    if (mode == Mode::Cubic && in == out)
      return grad;
    Value x = emit.cast(grad, wide);
    for (int64_t dim = rank() - 1; dim >= 2; --dim) {
      if (isSame(dim))
        continue;
      SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, x);
      if (int64_t many = repetition(dim)) {
        sizes[dim] = in[dim];
        sizes.insert(sizes.begin() + dim + 1, call.builder.getIndexAttr(many));
        x = emit.sum(emit.view(x, sizes), dim + 1, /*keepdim=*/false);
        continue;
      }
      sizes[dim] = in[dim];
      Value sum = emit.zeros(sizes, wide);
      for (const Tap &tap : taps(dim)) {
        Value values = tap.weight ? emit.mul(x, along(tap.weight, dim)) : x;
        if (Value sums = sumsOf(values, tap.position, dim)) {
          sum = emit.add(sum, sums);
          continue;
        }
        FailureOr<Value> added = call.buildOne(
            "aten.index_put", {{"self", {sum}}, {"indices", {tap.position}}, {"values", {values}}},
            {call.integersAttr("indices_at", dim),
             call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
        if (failed(added))
          return failure();
        setLine(*added, tap, dim);
        sum = *added;
      }
      x = sum;
    }
    return emit.cast(x, element);
  }
};

} // namespace

/// Whether PyTorch has elements of all channels, of which there are more than three, side by side.
static bool hasManyChannelsLast(const TensorMeta &meta) {
  size_t rank = meta.sizes.size();
  if (rank < 4 || meta.strides.size() != rank || meta.sizes[1].value <= 3)
    return false;
  int64_t expected = 1;
  auto isNext = [&](size_t dim) {
    bool is = meta.sizes[dim].value == 1 || meta.strides[dim].value == expected;
    expected *= meta.sizes[dim].value;
    return is;
  };
  bool isSo = isNext(1);
  for (size_t dim = rank - 1; dim >= 2; --dim)
    isSo &= isNext(dim);
  return isSo && isNext(0);
}

FailureOr<Results> buildResampled(Call &call) {
  FailureOr<Value> image = call.tensor(call.schema.find("input") ? "input" : "self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(image) || failed(sizes))
    return failure();
  FailureOr<Resampling> resampling = Resampling::of(call, aten::elementTypeOf(*image));
  if (failed(resampling))
    return failure();
  resampling->in = sizesOf(call.builder, call.loc, *image);
  if (const TensorMeta *meta = call.recorded(call.schema.find("input") ? "input" : "self"))
    resampling->hasChannelsLast = hasManyChannelsLast(*meta);
  resampling->out = *sizes;
  return Results{resampling->forward(*image)};
}

FailureOr<Results> buildResampledBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(grad) || failed(sizes))
    return failure();
  FailureOr<Resampling> resampling = Resampling::of(call, aten::elementTypeOf(*grad));
  if (failed(resampling))
    return failure();
  resampling->isBackward = true;
  resampling->in = *sizes;
  resampling->out = sizesOf(call.builder, call.loc, *grad);
  return one(resampling->backward(*grad));
}

FailureOr<Results> buildAntialiased(Call &call) {
  return call.error() << "resizing with antialias is not supported: use antialias=False, or resize "
                         "before the model";
}

} // namespace shardc::torch_export
