// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements of an image those of a resampled one are made of, as PyTorch finds them: constants
// where the sizes are known, else computed by the program.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_RESAMPLEDPOSITIONS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_RESAMPLEDPOSITIONS_H

#include "dialects/aten/Emitter.h"
#include "dialects/aten/LookupLine.h"

#include <cmath>

namespace shardc::torch_export {

enum class Mode { Nearest, NearestExact, Linear, Cubic };

/// One element that is read: its position, and its weight (null for 1), as vectors along the
/// result.
struct Tap {
  mlir::Value position, weight;
};

struct ResampledPositions {
  Emitter emit;
  Mode mode = Mode::Nearest;
  bool alignCorners = false;
  bool isBackward = false;
  bool hasChannelsLast = false; ///< more than three of them
  /// Of the whole tensors; spatial dims are the last ones.
  llvm::SmallVector<mlir::OpFoldResult> in, out;
  /// Given as an argument; 0 where they follow from the sizes.
  llvm::SmallVector<double> factors;
  bool followsFactors = false; ///< the sizes are those of the image times the factors, rounded down
  mlir::Type element, wide;

  ResampledPositions(mlir::OpBuilder &builder, mlir::Location loc) : emit(builder, loc) {}

  int64_t rank() const { return static_cast<int64_t>(in.size()); }
  double factorOf(int64_t dim) const {
    return factors.empty() ? 0 : factors[dim - (rank() - static_cast<int64_t>(factors.size()))];
  }
  std::optional<int64_t> fixed(mlir::OpFoldResult size) const {
    return mlir::getConstantIntValue(size);
  }
  /// Whether nothing is done along a dim. By a factor near 1, PyTorch moves the elements of a dim
  /// that keeps its size, except in two modes.
  bool isSame(int64_t dim) const {
    bool followsSizes = alignCorners || factorOf(dim) <= 0 || factorOf(dim) == 1;
    bool looks = mode == Mode::Nearest && looksAtSizes().value_or(false);
    if (!followsSizes && !looks && mode != Mode::Linear)
      return false;
    return in[dim] == out[dim] || (fixed(in[dim]) && fixed(in[dim]) == fixed(out[dim]));
  }

  bool isNearest() const { return mode == Mode::Nearest || mode == Mode::NearestExact; }
  /// Where elements are not interpolated between, PyTorch has two kernels (measured, 2.13 on CPUs
  /// with FMA). The one of which this is true computes positions in f32, and does not look at the
  /// factor where sizes are the same, or twice as many. It is for all derivatives, and for images
  /// of two dims that are small or have their channels last: nothing where the program must see
  /// whether they are. The other one computes in the type that sums of elements have.
  std::optional<bool> looksAtSizes() const {
    if (isBackward || hasChannelsLast)
      return true;
    if (rank() != 4)
      return false;
    std::optional<int64_t> height = fixed(out[rank() - 2]), width = fixed(out[rank() - 1]);
    return height && width ? std::optional(*height + *width <= kMostSmall) : std::nullopt;
  }
  static constexpr int64_t kMostSmall = 128;
  /// Whether both kernels read the same elements whatever the sizes are, since all numbers are
  /// floats.
  bool isExact(int64_t dim) const {
    double factor = factorOf(dim);
    int exponent;
    return factor > 0 && followsFactors && std::frexp(factor, &exponent) == 0.5;
  }

  /// In how many elements each element becomes, where they are alike and known; 0 otherwise.
  int64_t repetition(int64_t dim) const;
  /// What elements of the result are the sum of.
  llvm::SmallVector<Tap> taps(int64_t dim);
  /// The line that computed positions are near; nothing where a factor has none, or may contradict
  /// the sizes that PyTorch looks at.
  std::optional<aten::LookupLine> lineOf(int64_t dim) const;

private:
  mlir::Value number(mlir::OpFoldResult size, mlir::Type type);
  mlir::Value range(mlir::OpFoldResult length);
  mlir::Value plus(mlir::Value x, double y) {
    return emit.add(x, emit.scalar(y, aten::elementTypeOf(x)));
  }
  mlir::Value times(mlir::Value x, double y) {
    return emit.mul(x, emit.scalar(y, aten::elementTypeOf(x)));
  }
  mlir::Value floor(mlir::Value x) {
    return emit.cast(emit.unary<aten::FloorOp>(x), emit.getBuilder().getI64Type());
  }
  mlir::Value atMost(mlir::Value x, mlir::Value y) { return emit.binary<aten::MinimumOp>(x, y); }
  mlir::Value atLeast(mlir::Value x, mlir::Value y) { return emit.binary<aten::MaximumOp>(x, y); }

  /// Elements of the image for one of the result, in `type`.
  mlir::Value scale(int64_t dim, mlir::Type type);
  /// The positions of the elements that a dim of the result has; nothing where they depend on a
  /// size that is not known.
  std::optional<llvm::SmallVector<int64_t>> nearest(int64_t dim, int64_t from, int64_t to) const;
  template <typename T>
  llvm::SmallVector<int64_t> nearestIn(int64_t dim, int64_t from, int64_t to, bool looks) const;
  /// As computedTaps, as constants. `T` is the type in which PyTorch computes.
  template <typename T> llvm::SmallVector<Tap> knownTaps(int64_t dim, int64_t from, int64_t to);
  /// nearestIn, computed by the program.
  mlir::Value computedNearest(int64_t dim, bool looks);
  mlir::Value computedNearest(int64_t dim);
  llvm::SmallVector<Tap> computedTaps(int64_t dim);

  // The cubic convolution, for elements at a distance of less than 1 and of 1 to 2.
  static constexpr double kCubic = -0.75;
  template <typename T> static T innerWeight(T x) {
    return ((x * T(kCubic + 2) + T(-(kCubic + 3))) * x) * x + T(1);
  }
  template <typename T> static T outerWeight(T x) {
    return ((x * T(kCubic) + T(-5 * kCubic)) * x + T(8 * kCubic)) * x + T(-4 * kCubic);
  }
  mlir::Value inner(mlir::Value x);
  mlir::Value outer(mlir::Value x);
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_RESAMPLEDPOSITIONS_H
