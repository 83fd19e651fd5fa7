// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Rules.h"
#include "dialects/aten/Spatial.h"
#include "dialects/sharding/HaloCost.h"

using namespace mlir;

namespace shardc::aten {

/// A dim of size 1 has no factor.
static DimFactors factorOf(RuleBuilder &builder, int64_t size,
                           FactorKind kind = FactorKind::Parallel) {
  return size == 1 ? DimFactors{} : DimFactors{builder.factor(size, kind)};
}

static DimFactors join(DimFactors outer, const DimFactors &inner) {
  outer.insert(outer.end(), inner.begin(), inner.end());
  return outer;
}

/// A halo as rules count it: elements of the tensor that ranks exchange, for each of the `ofFactor`
/// elements of a factor, in elements of the op's result. `lacked` of the `size` rows of that tensor
/// are exchanged, which has `exchanged` elements; the result has `made`.
static double haloOf(int64_t lacked, int64_t size, int64_t ofFactor, double exchanged,
                     double made) {
  if (size == 0 || made == 0)
    return 0;
  double ofRow = exchanged / static_cast<double>(size);
  return static_cast<double>(lacked) * ofRow * static_cast<double>(ofFactor) / made;
}

namespace {
struct Sliding {
  bool isAdjoint = false;  ///< the image is the result
  bool isPosition = false; ///< the op tells where in the image something is
  bool hasParts = false;   ///< ranks may send what they make of parts of a window
};

/// A dim of the image and the dim of the window's positions in it. Each is chunked over the ranks,
/// which fetch the elements under their positions (or, the other way round, send what their
/// positions add to elements of others).
struct SlidingDim {
  int64_t imageDim, positionsDim;     ///< of operand 0 and of the result, in one order or the other
  ArrayRef<int64_t> image, positions; ///< shapes
  Window window;
  Sliding sliding;

  int64_t size() const { return image[imageDim]; }
  int64_t count() const { return positions[positionsDim]; }

  /// A window that does not reach beyond its own element leaves it where it is. (An adjoint may
  /// have more elements behind the last position.)
  void describe(RuleBuilder &builder) const {
    DimFactors factors;
    bool isAsLong = size() == count() && !(sliding.isAdjoint && ShapedType::isDynamic(size()));
    if (window.isIdentity() && isAsLong) {
      factors = factorOf(builder, size());
      for (unsigned factor : factors)
        builder.at(factor).inOnePiece = sliding.isPosition;
    } else if (mayBeLong(size()) && mayBeLong(count()) && !ShapedType::isDynamic(window.kernel)) {
      bool isKnown = !ShapedType::isDynamic(size()) && !ShapedType::isDynamic(count());
      unsigned factor = builder.factor(isKnown ? std::max(size(), count()) : ShapedType::kDynamic,
                                       FactorKind::Neighbouring);
      builder.at(factor).inOnePiece = true;
      builder.at(factor).haloAfter = halo();
      factors = {factor};
    } else {
      return;
    }
    builder.operandDim(0, sliding.isAdjoint ? positionsDim : imageDim, factors);
    builder.resultDim(0, sliding.isAdjoint ? imageDim : positionsDim, factors);
  }

  /// Of one element there is nothing to share out.
  static bool mayBeLong(int64_t extent) { return extent > 1 || ShapedType::isDynamic(extent); }

  /// Elements that the larger part of two ranks' exchange has, for each element of the factor, of
  /// which the result may have few: rows of the image, which may be wider than those of the result,
  /// or narrower by far where the result has all elements of every window. Of symbolic sizes any
  /// that are large say the same.
  double halo() const {
    constexpr int64_t kLarge = 1024;
    int64_t counted = ShapedType::isDynamic(count()) ? kLarge : count();
    int64_t sized = ShapedType::isDynamic(size()) ? counted * window.stride : size();
    auto elements = [](ArrayRef<int64_t> shape, int64_t dim, int64_t extent) {
      return elementsOf(shape) *
             static_cast<double>(ShapedType::isDynamic(shape[dim]) ? extent : 1);
    };
    double ofImage = elements(image, imageDim, sized);
    int64_t lacked = mostLackedOfTwo(sized, counted,
                                     [&](Run run) { return coverOf(window, run, sized).elements; });
    int64_t ofFactor = std::max(sized, counted);
    if (sliding.isAdjoint)
      return haloOf(lacked, sized, ofFactor, ofImage, ofImage);
    double ofPositions = elements(positions, positionsDim, counted);
    double fetched = haloOf(lacked, sized, ofFactor, ofImage, ofPositions);
    if (!sliding.hasParts || ShapedType::isDynamic(size()) || ShapedType::isDynamic(count()))
      return fetched;
    int64_t touched = mostLackedOfTwo(counted, sized,
                                      [&](Run run) { return positionsOver(window, run, counted); });
    return std::min(fetched, haloOf(touched, counted, ofFactor, ofPositions, ofPositions));
  }
};
} // namespace

/// The last dims of operand 0 and of result 0.
static void slide(RuleBuilder &builder, ArrayRef<Window> windows, ArrayRef<int64_t> operand,
                  ArrayRef<int64_t> result, Sliding sliding) {
  ArrayRef<int64_t> image = sliding.isAdjoint ? result : operand,
                    positions = sliding.isAdjoint ? operand : result;
  auto spatial = static_cast<int64_t>(windows.size());
  for (auto [i, window] : llvm::enumerate(windows)) {
    int64_t fromEnd = static_cast<int64_t>(i) - spatial;
    SlidingDim{static_cast<int64_t>(image.size()) + fromEnd,
               static_cast<int64_t>(positions.size()) + fromEnd,
               image,
               positions,
               window,
               sliding}
        .describe(builder);
  }
}

ShardingRule convolutionRule(Operation *op) {
  auto conv = cast<ConvolutionOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> input = shapeOf(conv.getInput()), weight = shapeOf(conv.getWeight());
  int64_t groups = conv.getGroups();
  DimFactors batch = factorOf(builder, input[0]);
  DimFactors group, in, out;
  if (groups == 1) {
    // Sharded input channels are a sharded sum: reducing, as in a matrix product.
    in = factorOf(builder, weight[1], FactorKind::Reducing);
    out = factorOf(builder, weight[0]);
  } else {
    // Whole groups are independent; a part of each group would be no block of the channels.
    group = factorOf(builder, groups);
    in = factorOf(builder, weight[1], FactorKind::NeedReplication);
    out = factorOf(builder, ShapedType::isDynamic(weight[0]) ? weight[0] : weight[0] / groups,
                   FactorKind::NeedReplication);
  }
  builder.operandDim(0, 0, batch).operandDim(0, 1, join(group, in));
  builder.operandDim(1, 0, join(group, out)).operandDim(1, 1, in);
  builder.resultDim(0, 0, batch).resultDim(0, 1, join(group, out));
  slide(builder, conv.getWindows(), input, shapeOf(conv.getResult()),
        {.hasParts = conv.getPartReduction().has_value()});
  if (!conv.getBias())
    return builder.linear(0).linear(1).build();
  builder.operandDim(2, 0, join(group, out));
  return addsTo(builder, 2, 0, 1).build();
}

/// The first `count` dims are independent.
static RuleBuilder leadingDims(Operation *op, size_t count, bool isLinear) {
  RuleBuilder builder = ruleBuilder(op);
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getOperand(0)).take_front(count))) {
    DimFactors factors = factorOf(builder, size);
    builder.operandDim(0, static_cast<int64_t>(i), factors);
    builder.resultDim(0, static_cast<int64_t>(i), factors);
  }
  if (isLinear)
    builder.linear(0);
  return builder;
}

ShardingRule windowsRule(Operation *op, ArrayRef<Window> windows) {
  RuleBuilder builder = leadingDims(op, 2, /*isLinear=*/true);
  slide(builder, windows, shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)), {});
  return builder.build();
}

ShardingRule foldRule(Operation *op, ArrayRef<Window> windows) {
  RuleBuilder builder = leadingDims(op, 2, /*isLinear=*/true);
  slide(builder, windows, shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)),
        {.isAdjoint = true});
  return builder.build();
}

ShardingRule poolRule(Operation *op, bool isLinear) {
  auto windowed = cast<WindowOpInterface>(op);
  Windows windows = windowed.getWindows();
  ArrayRef<int64_t> image = shapeOf(op->getOperand(0));
  RuleBuilder builder = leadingDims(op, image.size() - windows.size(), isLinear);
  slide(builder, windows, image, shapeOf(op->getResult(0)),
        {.isPosition = isa<MaxPoolPositionsOp>(op),
         .hasParts = windowed.getPartReduction().has_value()});
  return builder.build();
}

ShardingRule adaptivePoolRule(Operation *op, ArrayRef<int64_t> parts, Reduction reduction) {
  ArrayRef<int64_t> image = shapeOf(op->getOperand(0));
  size_t leading = image.size() - parts.size();
  RuleBuilder builder = leadingDims(op, leading, reduction == Reduction::Sum);
  for (auto [i, part] : llvm::enumerate(parts)) {
    int64_t dim = static_cast<int64_t>(leading + i);
    // Several parts: ranks have chunks of them, and send what they have made of parts of others.
    // (An element is in parts as a part has elements.)
    if (part > 1 && !ShapedType::isDynamic(image[dim])) {
      unsigned factor = builder.factor(std::max(image[dim], part), FactorKind::Neighbouring);
      builder.at(factor).inOnePiece = true;
      int64_t lacked = mostLackedOfTwo(
          part, image[dim], [&](Run run) { return coverOfParts(run, part, image[dim]); });
      double made = elementsOf(shapeOf(op->getResult(0)));
      builder.at(factor).haloAfter = haloOf(lacked, part, std::max(image[dim], part), made, made);
      builder.operandDim(0, dim, {factor}).resultDim(0, dim, {factor});
      continue;
    }
    // Of symbolic size, sums of parts that a border cuts go to their owners.
    if (part > 1 && reduction == Reduction::Sum) {
      unsigned factor = builder.factor(ShapedType::kDynamic, FactorKind::Neighbouring);
      builder.at(factor).inOnePiece = true;
      builder.at(factor).haloAfter = static_cast<double>(ceilDiv(2 * kTypicalSize, part));
      builder.operandDim(0, dim, {factor}).resultDim(0, dim, {factor});
      continue;
    }
    // The whole is a reduction.
    if (part != 1)
      continue;
    DimFactors factors = factorOf(builder, image[dim], FactorKind::Reducing);
    for (unsigned factor : factors)
      builder.at(factor).reduction = reduction;
    builder.operandDim(0, dim, factors);
  }
  return builder.build();
}

ShardingRule adaptivePositionsRule(Operation *op, size_t spatial) {
  return leadingDims(op, shapeOf(op->getOperand(0)).size() - spatial, /*isLinear=*/false).build();
}

ShardingRule perChannelRule(Operation *op) {
  RuleBuilder builder = ruleBuilder(op);
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    int64_t dim = static_cast<int64_t>(i);
    DimFactors factors = factorOf(builder, size);
    builder.operandDim(0, dim, factors).resultDim(0, dim, factors);
    for (unsigned parameter = 1; dim == 1 && parameter < op->getNumOperands(); ++parameter)
      builder.operandDim(parameter, 0, factors);
  }
  return builder.build();
}

} // namespace shardc::aten
