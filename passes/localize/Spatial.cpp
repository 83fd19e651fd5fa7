// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions, pools and windows whose spatial dims are sharded: the elements that a rank's
// positions cover are brought first (Halos.h), and then the same op runs on them, without the
// padding that they have already.

#include "passes/localize/ChannelGroups.h"
#include "passes/localize/FoldOfProducts.h"
#include "passes/localize/Halos.h"
#include "passes/localize/Models.h"
#include "passes/localize/PartialWindows.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/ConvolutionAsProduct.h"
#include "dialects/aten/Spatial.h"

using namespace mlir;
using namespace shardc;

namespace {

SmallVector<int64_t> paddingOf(ArrayRef<aten::Window> windows) {
  return llvm::map_to_vector(windows, [](const aten::Window &window) { return window.padding; });
}

/// The operands with the covered image in place of operand 0.
SmallVector<Value> withImage(ValueRange operands, Value image) {
  SmallVector<Value> all(operands);
  all.front() = image;
  return all;
}

/// Channels shard by whole groups: the op counts the groups of one rank, or, where ranks have
/// different numbers of them, is written as the matrix product that it is.
struct ConvolutionModel : LocalizeModel<ConvolutionModel, aten::ConvolutionOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ConvolutionOp op,
                         ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getBias(), 2)))
      return failure();
    aten::Windows windows = op.getWindows();
    SmallVector<HaloDim> dims = haloDims(localizer, windows);
    windows = withoutPadding(windows, dims);
    auto fetched = [&] {
      return dims.empty() ? operands[0]
                          : coveredImage(localizer, builder, dims, operands[0], 0).value;
    };
    auto numGroups = static_cast<int64_t>(op.getGroups());
    FailureOr<std::optional<ChannelGroups>> groups = groupsOf(localizer, builder, op);
    if (failed(groups))
      return failure();
    Value bias = op.getBias() ? operands[2] : Value();
    if (*groups) {
      std::optional<int64_t> fixed = getConstantIntValue((*groups)->groups);
      if (!fixed)
        return single(aten::buildConvolutionAsProduct(builder, op.getLoc(), windows, fetched(),
                                                      operands[1], bias, (*groups)->groups,
                                                      (*groups)->channels));
      numGroups = *fixed;
    }
    auto make = [&](ValueRange of) {
      return convolution(localizer, builder, of, windows, numGroups);
    };
    if (Value sum = partialWindows(localizer, builder, op, dims, operands[0],
                                   [&](Value image) { return make({image, operands[1]}); }))
      return single(bias ? plusChannels(localizer, builder, sum, bias) : sum);
    SmallVector<Value> all = withImage(operands, fetched());
    return single(make(all));
  }

  /// The groups of this rank, where channels are shared out.
  static FailureOr<std::optional<ChannelGroups>> groupsOf(Localizer &localizer, OpBuilder &builder,
                                                          aten::ConvolutionOp op) {
    auto numGroups = static_cast<int64_t>(op.getGroups());
    DimSplit split =
        localizer.resultLayout(0) ? localizer.resultLayout(0)->splitOfDim(1) : DimSplit();
    if (numGroups == 1 || split.empty())
      return std::optional<ChannelGroups>();
    FailureOr<ChannelGroups> local =
        localGroups(localizer, builder, localizer.resultSize(builder, 0, 1), split, numGroups);
    if (failed(local))
      return failure();
    if (!local->sharedBy.empty()) {
      localizer.refuse() << "a rank has a part of every group, and the op needs whole ones; shard "
                            "whole groups, or replicate the channels before";
      return failure();
    }
    return std::optional<ChannelGroups>(*local);
  }

  static Value convolution(Localizer &localizer, OpBuilder &builder, ValueRange operands,
                           ArrayRef<aten::Window> windows, int64_t groups) {
    Value value = sameOp(localizer, builder, operands)->front();
    auto local = cast<aten::ConvolutionOp>(value.getDefiningOp());
    local.setPadding(paddingOf(windows));
    local.setGroups(static_cast<uint64_t>(groups));
    return value;
  }

  /// With a number for each channel, which is dim 1.
  static Value plusChannels(Localizer &localizer, OpBuilder &builder, Value value, Value channels) {
    Emitter emit = localizer.emitter(builder);
    auto type = cast<RankedTensorType>(value.getType());
    for (int64_t dim = 2; dim < type.getRank(); ++dim)
      channels = emit.unsqueeze(channels, dim - 1);
    value = emit.add(value, channels);
    value.setType(type);
    return value;
  }
};

struct WindowsModel : LocalizeModel<WindowsModel, aten::WindowsOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::WindowsOp op,
                         ValueRange operands) {
    SmallVector<HaloDim> dims = haloDims(localizer, op.getWindows());
    if (dims.empty())
      return sameOp(localizer, builder, operands);
    CoveredImage image = coveredImage(localizer, builder, dims, operands[0], 0);
    LocalValues values = sameOp(localizer, builder, withImage(operands, image.value));
    if (succeeded(values))
      cast<aten::WindowsOp>(values->front().getDefiningOp())
          .setPadding(paddingOf(withoutPadding(op.getWindows(), dims)));
    return values;
  }
};

/// What a rank's positions make for elements of others goes to them, or is made by them.
struct FoldModel : LocalizeModel<FoldModel, aten::FoldOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::FoldOp op,
                         ValueRange operands) {
    SmallVector<HaloDim> dims = haloDims(localizer, op.getWindows(), /*isAdjoint=*/true);
    // The op says how large the image is, which a rank may have a part of.
    int64_t rank = localizer.globalResultType(0).getRank();
    const Layout *result = localizer.resultLayout(0);
    auto isSharded = [&](int64_t dim) { return result && !result->splitOfDim(dim).empty(); };
    auto spatial = static_cast<int64_t>(op.getWindows().size());
    if (dims.empty() && llvm::none_of(llvm::seq(rank - spatial, rank), isSharded))
      return sameOp(localizer, builder, operands);
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    for (const HaloDim &dim : dims) {
      if (!dim.image.split.isOverAxesOf(dim.positions.split)) {
        localizer.refuse() << "the positions of the window and the image are sharded over "
                              "different axes; shard both alike";
        return failure();
      }
      sizes[dim.imageDim] = getAsOpFoldResult(coverOnRank(localizer, builder, dim).size);
    }
    if (LocalValues fetched = foldOfFetched(localizer, builder, op, dims); succeeded(fetched))
      return fetched;
    aten::Windows windows = withoutPadding(op.getWindows(), dims);
    Value covered = aten::buildFold(builder, op.getLoc(), operands[0],
                                    ArrayRef(sizes).take_back(windows.size()), windows);
    Value sum = haloSum(localizer, builder, dims, covered, sizes);
    sum.setType(localizer.localResultType(0));
    return single(sum);
  }
};

/// The same pool without padding in the halo dims, where a last position that reaches beyond the
/// padding is in the covered image as well.
template <typename Op>
LocalValues poolOf(Localizer &localizer, OpBuilder &builder, Op op, ArrayRef<HaloDim> dims,
                   ValueRange operands, Value image) {
  LocalValues values = sameOp(localizer, builder, withImage(operands, image));
  if (succeeded(values))
    cast<Op>(values->front().getDefiningOp())
        .setPadding(paddingOf(withoutPadding(op.getWindows(), dims)));
  return values;
}

struct MaxPoolModel : LocalizeModel<MaxPoolModel, aten::MaxPoolOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::MaxPoolOp op,
                         ValueRange operands) {
    SmallVector<HaloDim> dims = haloDims(localizer, op.getWindows());
    if (dims.empty())
      return sameOp(localizer, builder, operands);
    double lowest = lowestOf(aten::elementTypeOf(operands[0]));
    auto make = [&](Value image) {
      return poolOf(localizer, builder, op, dims, operands, image)->front();
    };
    if (Value largest = partialWindows(localizer, builder, op, dims, operands[0], make))
      return single(largest);
    return single(make(coveredImage(localizer, builder, dims, operands[0], lowest).value));
  }
};

/// Positions in the covered image become positions in the whole one. Padding is the largest where
/// all that is covered is as low: then the first element of the image under the window is meant.
struct MaxPoolPositionsModel : LocalizeModel<MaxPoolPositionsModel, aten::MaxPoolPositionsOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::MaxPoolPositionsOp op,
                         ValueRange operands) {
    aten::Windows windows = op.getWindows();
    int64_t rank = localizer.globalOperandType(0).getRank();
    int64_t first = rank - static_cast<int64_t>(windows.size());
    if (localizer.operandAxes(0, llvm::to_vector(llvm::seq(first, rank))).empty())
      return sameOp(localizer, builder, operands);
    SmallVector<HaloDim> dims = haloDims(localizer, windows);
    CoveredImage image = coveredImage(localizer, builder, dims, operands[0],
                                      lowestOf(aten::elementTypeOf(operands[0])));
    LocalValues values = poolOf(localizer, builder, op, dims, operands, image.value);
    if (failed(values))
      return failure();
    Emitter emit = localizer.emitter(builder);
    LocalIndices indices = localizer.indices(builder);
    Type i64 = builder.getI64Type();
    auto number = [&](OpFoldResult size) {
      if (std::optional<int64_t> fixed = getConstantIntValue(size))
        return emit.integer(*fixed, i64);
      return emit.ofIndex(cast<Value>(size), i64);
    };
    // From the last dim on: what is left of the position, and what it makes of the global one.
    Value rest = values->front(), global, stride;
    for (int64_t dim = rank - 1; dim >= first; --dim) {
      Value size = number(image.sizes[dim]);
      Value at = emit.binary<aten::RemainderOp>(rest, size);
      rest = aten::DivOp::create(builder, op.getLoc(), rest, size, builder.getStringAttr("floor"));
      const auto *halo = llvm::find_if(dims, [&](const HaloDim &d) { return d.imageDim == dim; });
      GlobalSize whole = localizer.operandSize(builder, 0, dim);
      if (halo != dims.end())
        at = inImage(localizer, builder, *halo, at);
      else if (!localizer.operandAxes(0, dim).empty())
        at = emit.add(at, number(getAsOpFoldResult(
                              indices.offset(whole, localizer.operandLayout(0)->splitOfDim(dim)))));
      global = global ? emit.add(global, emit.mul(at, stride)) : at;
      Value count = number(getAsOpFoldResult(indices.global(whole)));
      stride = stride ? emit.mul(stride, count) : count;
    }
    global.setType(localizer.localResultType(0));
    return single(global);
  }

  /// The index in the whole image of one in what is covered. For padding before the image, of the
  /// first element behind it that is under the same window.
  static Value inImage(Localizer &localizer, OpBuilder &builder, const HaloDim &dim, Value at) {
    Emitter emit = localizer.emitter(builder);
    Type i64 = builder.getI64Type();
    Value begin = coverOnRank(localizer, builder, dim).begin;
    at = emit.add(at, emit.ofIndex(begin, i64));
    Value inside = emit.binary<aten::RemainderOp>(at, emit.integer(dim.window.dilation, i64));
    return emit.where(emit.binary<aten::LtOp>(at, emit.integer(0, i64)), inside, at);
  }
};

/// A mean where the window always counts alike; otherwise a sum, divided by how many elements it
/// counts at each position of the whole image.
struct AvgPoolModel : LocalizeModel<AvgPoolModel, aten::AvgPoolOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::AvgPoolOp op,
                         ValueRange operands) {
    aten::Windows windows = op.getWindows();
    SmallVector<HaloDim> dims = haloDims(localizer, windows);
    if (dims.empty())
      return sameOp(localizer, builder, operands);
    Type element = aten::elementTypeOf(operands[0]);
    int64_t elements = 1;
    bool isPadded = op.getCeilMode();
    for (const aten::Window &window : windows) {
      elements *= window.kernel;
      isPadded |= window.padding != 0 && !op.getCountIncludePad();
    }
    std::optional<int64_t> divisor = op.getDivisorOverride();
    if (!divisor && !isPadded)
      divisor = elements;
    Type wide = divisor ? element : Emitter::accumulator(element);
    Emitter emit = localizer.emitter(builder);
    auto make = [&](Value image) -> Value {
      return aten::AvgPoolOp::create(
          builder, op.getLoc(), cast<RankedTensorType>(localizer.localResultType(0)).clone(wide),
          emit.cast(image, wide), op.getKernelSize(), op.getStride(),
          paddingOf(withoutPadding(windows, dims)), op.getCeilMode(), op.getCountIncludePad(),
          builder.getI64IntegerAttr(divisor.value_or(1)));
    };
    Value sums = partialWindows(localizer, builder, op, dims, operands[0], make);
    if (!sums)
      sums = make(coveredImage(localizer, builder, dims, operands[0], 0).value);
    if (divisor)
      return single(sums);
    return single(emit.cast(emit.div(sums, counts(localizer, builder, op, wide)), element));
  }

  /// How many elements the window counts at each position of this rank, as numbers of type `wide`.
  static Value counts(Localizer &localizer, OpBuilder &builder, aten::AvgPoolOp op, Type wide) {
    Emitter emit = localizer.emitter(builder);
    LocalIndices indices = localizer.indices(builder);
    Type i64 = builder.getI64Type();
    aten::Windows windows = op.getWindows();
    int64_t rank = localizer.globalOperandType(0).getRank();
    int64_t first = rank - static_cast<int64_t>(windows.size());
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    auto number = [&](int64_t n) { return emit.integer(n, i64); };
    auto least = [&](Value x, Value y) { return emit.binary<aten::MinimumOp>(x, y); };
    Value count;
    for (auto [i, window] : llvm::enumerate(windows)) {
      int64_t dim = first + static_cast<int64_t>(i);
      const Layout *layout = localizer.resultLayout(0);
      Value position =
          alongDim(emit,
                   globalRange(localizer, builder, localizer.resultSize(builder, 0, dim),
                               layout ? layout->splitOfDim(dim) : DimSplit()),
                   sizes[dim], dim, rank);
      Value begin = emit.add(emit.mul(position, number(window.stride)), number(-window.padding));
      Value size = emit.ofIndex(indices.global(localizer.operandSize(builder, 0, dim)), i64);
      Value end =
          least(emit.add(begin, number(window.kernel)), emit.add(size, number(window.padding)));
      if (!op.getCountIncludePad()) {
        begin = emit.binary<aten::MaximumOp>(begin, number(0));
        end = least(end, size);
      }
      Value length = emit.sub(end, begin);
      count = count ? emit.mul(count, length) : length;
    }
    return emit.cast(count, wide);
  }
};

} // namespace

void shardc::attachSpatialModels(MLIRContext *context) {
  attachModel<aten::ConvolutionOp, ConvolutionModel>(context);
  attachModel<aten::WindowsOp, WindowsModel>(context);
  attachModel<aten::FoldOp, FoldModel>(context);
  attachModel<aten::MaxPoolOp, MaxPoolModel>(context);
  attachModel<aten::MaxPoolPositionsOp, MaxPoolPositionsModel>(context);
  attachModel<aten::AvgPoolOp, AvgPoolModel>(context);
}
