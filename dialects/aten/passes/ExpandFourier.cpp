// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Fourier.h"
#include "dialects/aten/FourierProduct.h"
#include "dialects/aten/Pairs.h"
#include "dialects/aten/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numbers>

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENEXPANDFOURIER
#include "dialects/aten/passes/Passes.h.inc"

namespace {

using Factors = std::vector<std::complex<double>>;
using Sizes = SmallVector<OpFoldResult>;

/// Transforms along the last dim: of real numbers [..., n], or of pairs [..., n, 2].
class Transform {
public:
  Transform(OpBuilder &builder, Location loc, Type elementType)
      : builder(builder), emit(builder, loc), pairs(emit), sizes(builder, loc), type(elementType) {}

  /// Elements 0 to `count` - 1 of the result, times `scale`.
  Value run(Value x, int64_t n, int64_t count, bool forward, double scale, Parts from, Parts to) {
    FourierPlan plan = planFourier(n);
    switch (plan.kind) {
    case FourierPlan::Direct:
      return direct(x, n, count, forward, scale, from, to);
    case FourierPlan::Split:
      return split(x, plan, count, forward, scale, from, to);
    case FourierPlan::Convolution:
      return convolution(x, n, plan.second, count, forward, scale, from, to);
    }
    llvm_unreachable("a plan of no kind");
  }

  /// Of elements 0 to n / 2 of a transform, the n real elements.
  Value toReal(Value z, int64_t n, double scale) {
    // By a matrix where that is how the whole would be computed, else from all n elements.
    int64_t half = n / 2 + 1;
    if (planFourier(n).kind == FourierPlan::Direct)
      return product(flat(z, Parts::Both), realInverseMatrix(n, scale), 2 * half, n);
    int64_t dim = typeOf(z).getRank() - 2;
    Value rest = emit.slice(z, dim, number(1), number(n - half + 1));
    rest = pairs.conj(FlipOp::create(builder, emit.getLoc(), rest, ArrayRef<int64_t>{dim}));
    return run(emit.cat({z, rest}, dim), n, n, /*forward=*/false, scale, Parts::Both, Parts::Real);
  }

private:
  OpFoldResult number(int64_t value) { return builder.getIndexAttr(value); }
  static int64_t depth(Parts parts) { return parts == Parts::Both ? 2 : 1; }
  static int64_t lastOf(Value x, Parts parts) { return typeOf(x).getRank() - depth(parts); }

  /// The sizes in front of the transformed dim.
  Sizes leading(Value x, Parts parts) {
    SmallVector<Dim> all = sizes.sizesOf(x);
    return llvm::map_to_vector(ArrayRef(all).drop_back(depth(parts)),
                               [&](Dim size) { return sizes.get(size); });
  }
  Value view(Value x, Sizes shape, ArrayRef<int64_t> last, Parts parts) {
    for (int64_t size : last)
      shape.push_back(number(size));
    if (parts == Parts::Both)
      shape.push_back(number(2));
    return emit.view(x, shape);
  }
  /// [..., n, 2] as [..., 2n]
  Value flat(Value x, Parts parts) {
    if (parts == Parts::Real)
      return x;
    int64_t n = shapeOf(x)[lastOf(x, parts)];
    return view(x, leading(x, parts), {2 * n}, Parts::Real);
  }

  DenseElementsAttr dense(ArrayRef<int64_t> shape, ArrayRef<double> values) {
    auto tensor = RankedTensorType::get(shape, type);
    if (type.isF64())
      return DenseElementsAttr::get(tensor, values);
    return DenseElementsAttr::get(
        tensor, ArrayRef(llvm::map_to_vector(values, [](double x) { return float(x); })));
  }
  Value constant(ArrayRef<int64_t> shape, ArrayRef<double> values) {
    DenseElementsAttr elements = dense(shape, values);
    return ConstantOp::create(builder, emit.getLoc(), cast<RankedTensorType>(elements.getType()),
                              elements);
  }

  /// [..., rows] times a matrix.
  Value product(Value x, ArrayRef<double> matrix, int64_t rows, int64_t columns) {
    std::vector<double> weight(matrix.size());
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        weight[j * rows + i] = matrix[i * columns + j];
    return LinearOp::create(builder, emit.getLoc(), x, constant({columns, rows}, weight), Value());
  }

  /// Pairs times constants of the shape of their last dims. With `Parts::Real`, the real part.
  Value times(Value z, const Factors &factors, ArrayRef<int64_t> shape, Parts to = Parts::Both) {
    std::vector<double> real, imag;
    for (std::complex<double> factor : factors) {
      real.push_back(factor.real());
      imag.push_back(factor.imag());
    }
    Value a = pairs.real(z), b = pairs.imag(z);
    Value c = constant(shape, real), d = constant(shape, imag);
    Value ofReal = emit.sub(emit.mul(a, c), emit.mul(b, d));
    return to == Parts::Real ? ofReal
                             : pairs.make(ofReal, emit.add(emit.mul(a, d), emit.mul(b, c)));
  }

  Value direct(Value x, int64_t n, int64_t count, bool forward, double scale, Parts from,
               Parts to) {
    Value result = product(flat(x, from), fourierMatrix(n, count, forward, scale, from, to),
                           n * depth(from), count * depth(to));
    return to == Parts::Real ? result : view(result, leading(result, Parts::Real), {count}, to);
  }

  /// Element j1 * second + j2 of n is element (j1, j2) of a matrix, of which columns are
  /// transformed, then rows: that makes element k1 + first * k2 of the result.
  Value split(Value x, FourierPlan plan, int64_t count, bool forward, double scale, Parts from,
              Parts to) {
    int64_t n = plan.first * plan.second;
    Value matrix = swap(view(x, leading(x, from), {plan.first, plan.second}, from), from);
    Value columns = direct(matrix, plan.first, plan.first, forward, 1, from, Parts::Both);
    columns =
        times(columns, twiddles(plan.second, plan.first, forward, 1), {plan.second, plan.first});
    Value rows =
        run(swap(columns, Parts::Both), plan.second, plan.second, forward, scale, Parts::Both, to);
    Value turned = swap(rows, to);
    Sizes outer = leading(turned, to);
    outer.pop_back();
    return first(view(turned, outer, {n}, to), count, to);
  }

  /// Bluestein: jk is (j^2 + k^2 - (k - j)^2) / 2.
  Value convolution(Value x, int64_t n, int64_t length, int64_t count, bool forward, double scale,
                    Parts from, Parts to) {
    Factors factors = chirp(n, forward);
    Value turned = from == Parts::Real ? ofReal(x, factors) : times(x, factors, {n});
    SmallVector<int64_t> widths = {0, 0, 0, length - n};
    turned = ConstantPadNdOp::create(builder, emit.getLoc(), turned, widths, APFloat(0.0));
    Value transformed = run(turned, length, length, /*forward=*/true, 1, Parts::Both, Parts::Both);
    transformed = times(transformed, chirpFilter(n, length, forward), {length});
    Value back = run(transformed, length, length, /*forward=*/false, 1, Parts::Both, Parts::Both);
    factors.resize(static_cast<size_t>(count));
    for (std::complex<double> &factor : factors)
      factor *= scale;
    return times(first(back, count, Parts::Both), factors, {count}, to);
  }

  /// Real numbers times constants.
  Value ofReal(Value x, const Factors &factors) {
    std::vector<double> both;
    for (std::complex<double> factor : factors) {
      both.push_back(factor.real());
      both.push_back(factor.imag());
    }
    return emit.mul(pairs.beside(x), constant({int64_t(factors.size()), 2}, both));
  }

  Value first(Value x, int64_t count, Parts parts) {
    int64_t dim = lastOf(x, parts);
    return shapeOf(x)[dim] == count ? x : emit.slice(x, dim, number(0), number(count));
  }
  Value swap(Value x, Parts parts) {
    int64_t dim = lastOf(x, parts);
    return TransposeOp::create(builder, emit.getLoc(), x, dim - 1, dim);
  }

  OpBuilder &builder;
  Emitter emit;
  Pairs pairs;
  BuiltSizes sizes;
  Type type;
};

/// The same where the program learns the length only when it runs: it makes the matrices then.
class MeasuredTransform {
public:
  MeasuredTransform(OpBuilder &builder, Location loc, Type elementType, OpFoldResult length)
      : builder(builder), emit(builder, loc), pairs(emit), sizes(builder, loc), type(elementType),
        n(value(length)) {}

  Value run(Value x, OpFoldResult count, bool forward, int64_t normalization, Parts from) {
    auto [cosines, sines] = roots(value(count), n, forward);
    if (from == Parts::Real)
      return scaled(pairs.make(product(x, cosines), product(x, sines)), normalization);
    Value a = pairs.real(x), b = pairs.imag(x);
    Value real = emit.sub(product(a, cosines), product(b, sines));
    Value imag = emit.add(product(a, sines), product(b, cosines));
    return scaled(pairs.make(real, imag), normalization);
  }

  Value toReal(Value z, int64_t normalization) {
    Value half = value(sizes.get(sizes.of(z, typeOf(z).getRank() - 2)));
    auto [cosines, sines] = roots(n, half, /*forward=*/false);
    // Element 0, and n / 2 of an even n, stand for themselves alone.
    Type i64 = builder.getI64Type();
    Value k = range(half);
    Value isAlone =
        emit.binary<LogicalOrOp>(emit.binary<EqOp>(k, emit.integer(0, i64)),
                                 emit.binary<EqOp>(emit.add(k, k), emit.ofIndex(n, i64)));
    Value weights = emit.where(isAlone, emit.scalar(1, type), emit.scalar(2, type));
    Value alone = emit.where(isAlone, emit.scalar(0, type), emit.scalar(2, type));
    Value real = product(emit.mul(pairs.real(z), weights), cosines);
    return scaled(emit.sub(real, product(emit.mul(pairs.imag(z), alone), sines)), normalization);
  }

private:
  Value value(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(builder, emit.getLoc(), size);
  }
  Value range(Value length) {
    return emit.range(arith::ConstantIndexOp::create(builder, emit.getLoc(), 0), length,
                      /*step=*/1, builder.getI64Type());
  }
  Value product(Value x, Value matrix) {
    return LinearOp::create(builder, emit.getLoc(), x, matrix, Value());
  }
  /// The parts of exp(-+ 2 pi i r c / n), for rows r and columns c.
  std::pair<Value, Value> roots(Value rows, Value columns, bool forward) {
    Type i64 = builder.getI64Type();
    Value turns = emit.mul(emit.unsqueeze(range(rows), 1), range(columns));
    turns = emit.binary<RemainderOp>(turns, emit.ofIndex(n, i64));
    Value step = emit.div(emit.scalar(2 * std::numbers::pi, type), emit.ofIndex(n, type));
    Value angle = emit.mul(emit.cast(turns, type), step);
    Value sine = emit.unary<SinOp>(angle);
    return {emit.unary<CosOp>(angle), forward ? emit.unary<NegOp>(sine) : sine};
  }
  Value scaled(Value x, int64_t normalization) {
    if (normalization == 0)
      return x;
    Value length = emit.ofIndex(n, type);
    return emit.div(x, normalization == 1 ? emit.unary<SqrtOp>(length) : length);
  }

  OpBuilder &builder;
  Emitter emit;
  Pairs pairs;
  BuiltSizes sizes;
  Type type;
  Value n;
};

/// One transform, with its dim moved to the end.
struct Expansion {
  Operation *op;
  int64_t dim, normalization;
  Parts from, to;
  OpFoldResult length; ///< elements of the whole transform

  void run() {
    OpBuilder builder(op);
    Location loc = op->getLoc();
    Value self = op->getOperand(0);
    auto last = [](Value x, Parts parts) {
      return typeOf(x).getRank() - (parts == Parts::Both ? 2 : 1);
    };
    Value x = moveDim(builder, loc, self, dim, last(self, from));
    std::optional<int64_t> n = getConstantIntValue(length);
    Value result = n ? known(builder, x, *n) : measured(builder, x);
    result = moveDim(builder, loc, result, last(result, to), dim);
    // What the op's own type knows, the expansion may have lost.
    if (auto type = op->getResult(0).getType(); result.getType() != type)
      result.setType(type);
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

  bool isForward() const {
    auto c2c = dyn_cast<FftC2cOp>(op);
    return !c2c || c2c.getForward();
  }
  bool isHalf() const {
    auto r2c = dyn_cast<FftR2cOp>(op);
    return r2c && r2c.getOnesided();
  }

  Value known(OpBuilder &builder, Value x, int64_t n) const {
    Transform transform(builder, op->getLoc(), elementTypeOf(x));
    double scale = fourierScale(normalization, n);
    if (to == Parts::Real)
      return transform.toReal(x, n, scale);
    return transform.run(x, n, isHalf() ? n / 2 + 1 : n, isForward(), scale, from, to);
  }

  Value measured(OpBuilder &builder, Value x) const {
    MeasuredTransform transform(builder, op->getLoc(), elementTypeOf(x), length);
    if (to == Parts::Real)
      return transform.toReal(x, normalization);
    BuiltSizes sizes(builder, op->getLoc());
    Dim count = sizes.of(length);
    if (isHalf())
      count = sizes.ceilDiv(sizes.add(count, Dim(1)), 2);
    return transform.run(x, sizes.get(count), isForward(), normalization, from);
  }

  /// Nothing of other ops.
  static std::optional<Expansion> of(Operation *op) {
    auto make = [&](auto op, Parts from, Parts to, OpFoldResult length) {
      return Expansion{op,
                       static_cast<int64_t>(op.getDim()),
                       static_cast<int64_t>(op.getNormalization()),
                       from,
                       to,
                       length};
    };
    auto lengthOf = [](auto op) -> OpFoldResult {
      OpBuilder builder(op);
      BuiltSizes sizes(builder, op.getLoc());
      return sizes.get(sizes.of(op.getSelf(), op.getDim()));
    };
    return llvm::TypeSwitch<Operation *, std::optional<Expansion>>(op)
        .Case([&](FftC2cOp op) { return make(op, Parts::Both, Parts::Both, lengthOf(op)); })
        .Case([&](FftR2cOp op) { return make(op, Parts::Real, Parts::Both, lengthOf(op)); })
        .Case([&](FftC2rOp op) {
          return make(
              op, Parts::Both, Parts::Real,
              getMixedValues(op.getStaticLastDimSize(), op.getLastDimSize(), op.getContext())
                  .front());
        })
        .Default([](Operation *) { return std::nullopt; });
  }
};

struct ExpandFourier : impl::AtenExpandFourierBase<ExpandFourier> {
  void runOnOperation() override {
    SmallVector<Expansion> expansions;
    getOperation().walk([&](Operation *op) {
      if (std::optional<Expansion> expansion = Expansion::of(op))
        expansions.push_back(*expansion);
    });
    for (Expansion &expansion : expansions)
      expansion.run();
    expanded += expansions.size();
  }
};

} // namespace
} // namespace shardc::aten
