// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random numbers: each rank makes its own part of a tensor, by the words that a counter-based
// generator has for the places of its elements (semantics.md N1).

#include "dialects/aten/Random.h"
#include "dialects/dist/RandomMode.h"
#include "passes/localize/Models.h"
#include "passes/localize/core/RandomOffsets.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/IR/BuiltinOps.h"

#include <numbers>

using namespace mlir;
using namespace shardc;

namespace {

/// Numbers out of the four words of a counter. An op that takes several words of a counter pays for
/// one run of the generator: its kernel has the others as common subexpressions.
struct Words {
  Emitter &emit;
  Value element, seed, offset;

  Value word(int64_t number) const {
    return aten::PhiloxOp::create(emit.getBuilder(), emit.getLoc(), element, seed, offset, number);
  }
  /// The `count` low bits of a word.
  Value bits(int64_t number, unsigned count) const {
    return emit.binary<aten::BitwiseAndOp>(word(number),
                                           emit.integer((int64_t(1) << count) - 1, i64()));
  }
  /// Likewise as a float that holds them exactly. Casts from 32 bits are vectorised everywhere.
  Value fraction(int64_t number, unsigned count, Type type, double scale) const {
    Value narrow = emit.cast(bits(number, count), emit.getBuilder().getI32Type());
    return emit.mul(emit.cast(narrow, type), emit.scalar(scale, type));
  }
  Type i64() const { return emit.getBuilder().getI64Type(); }

  /// In [0, 1): 24 bits of f32, 53 of f64, 8 of bf16, 11 of f16.
  Value uniform(Type type, int64_t first = 0) const {
    if (type.isF64())
      return emit.add(fraction(first, 26, type, 0x1p-26), fraction(first + 1, 27, type, 0x1p-53));
    Type f32 = emit.getBuilder().getF32Type();
    unsigned precision = type.isBF16() ? 8 : type.isF16() ? 11 : 24;
    return emit.cast(fraction(first, precision, f32, 1.0 / double(1 << precision)), type);
  }

  /// Box-Muller, in f32 for shorter floats. The radius is of a number in (0, 1] with 48 bits (f64:
  /// 53) below 1, so that the tails reach 8 standard deviations.
  Value normal(Type type) const {
    Type wide = Emitter::accumulator(type);
    bool isDouble = wide.isF64();
    Value high = isDouble ? fraction(0, 26, wide, 0x1p-26) : fraction(0, 24, wide, 0x1p-24);
    Value low = isDouble ? fraction(1, 27, wide, 0x1p-53) : fraction(1, 24, wide, 0x1p-48);
    Value least = emit.scalar(isDouble ? 0x1p-53 : 0x1p-48, wide);
    Value distance = emit.add(high, emit.add(low, least));
    Value angle = isDouble ? uniform(wide, 2) : fraction(2, 24, wide, 0x1p-24);
    Value square = emit.mul(emit.unary<aten::LogOp>(distance), emit.scalar(-2, wide));
    Value radius = emit.unary<aten::SqrtOp>(square);
    return emit.cast(emit.mul(radius, cosineOfTurn(angle)), type);
  }

  /// cos(2 pi u) for u in [0, 1), which is sin(2 pi t) for t = |u - 1/2| - 1/4: by its series,
  /// which needs no reduction of its argument and vectorises.
  Value cosineOfTurn(Value u) const {
    Type type = aten::elementTypeOf(u);
    Value t = emit.sub(emit.unary<aten::AbsOp>(emit.sub(u, emit.scalar(0.5, type))),
                       emit.scalar(0.25, type));
    Value square = emit.mul(t, t), sum;
    // What is left out is below half a unit in the last place of 1.
    for (int power = type.isF64() ? 21 : 11; power > 0; power -= 2) {
      double factor = power % 4 == 1 ? 1 : -1;
      for (int i = 1; i <= power; ++i)
        factor *= 2 * std::numbers::pi / i;
      Value term = emit.scalar(factor, type);
      sum = sum ? emit.add(emit.mul(sum, square), term) : term;
    }
    return emit.mul(sum, t);
  }

  /// 63 bits.
  Value integer() const {
    Value high = emit.mul(bits(0, 31), emit.integer(int64_t(1) << 32, i64()));
    return emit.add(high, word(1));
  }
};

/// Row-major indices of the elements that this rank holds of result 0: in the whole tensor, or in
/// what it holds.
Value elementsOf(Localizer &localizer, OpBuilder &builder, bool isGlobal) {
  Emitter emit = localizer.emitter(builder);
  LocalIndices indices = localizer.indices(builder);
  const Layout *layout = localizer.resultLayout(0);
  SmallVector<OpFoldResult> lengths = localizer.localSizes(builder, 0);
  int64_t rank = localizer.globalResultType(0).getRank();
  Type i64 = builder.getI64Type();
  Value element, stride = indices.constant(1);
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    GlobalSize size = localizer.resultSize(builder, 0, dim);
    DimSplit split = layout ? layout->splitOfDim(dim) : DimSplit();
    Value length = getValueOrCreateConstantIndexOp(builder, emit.getLoc(), lengths[dim]);
    Value positions = isGlobal ? globalRange(localizer, builder, size, split)
                               : emit.range(indices.constant(0), length);
    Value part = alongDim(emit, positions, lengths[dim], dim, rank);
    if (getConstantIntValue(stride) != 1)
      part = emit.mul(part, emit.ofIndex(stride, i64));
    element = element ? emit.add(part, element) : part;
    stride = indices.mul(stride, isGlobal ? indices.global(size) : length);
  }
  return element ? element : emit.integer(0, i64);
}

/// How far behind the op's offset this rank's shard begins.
Value startOfShard(Localizer &localizer, OpBuilder &builder, const Layout &layout) {
  LocalIndices indices = localizer.indices(builder);
  const Mesh &mesh = localizer.getMesh().getValue();
  int64_t rank = localizer.globalResultType(0).getRank();
  std::vector<SplitDim> dims;
  std::vector<DimSplit> splits;
  SmallVector<GlobalSize> sizes;
  bool isFixed = true;
  for (int64_t dim = 0; dim < rank; ++dim) {
    sizes.push_back(localizer.resultSize(builder, 0, dim));
    splits.push_back(layout.splitOfDim(dim));
    dims.push_back({sizes.back().fixed(), splits.back()});
    isFixed &= dims.back().size != kDynamic;
  }
  SmallVector<int64_t> ofPosition;
  for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p) {
    Coordinate coordinate = mesh.coordinateOfPosition(p);
    ofPosition.push_back(isFixed ? randomStart(mesh, dims, coordinate)
                                 : shardNumber(mesh, splits, coordinate));
  }
  Value value = indices.table(ofPosition);
  if (isFixed)
    return value;
  for (auto [size, split] : llvm::zip_equal(sizes, splits)) {
    const AxisSplit *last = lastSplit(split);
    value = indices.mul(value, last ? indices.mul(indices.length({size, {}, *last}, 0),
                                                  indices.constant(last->equalBlocks()))
                                    : indices.global(size));
  }
  Value step = indices.constant(kRandomStep);
  return indices.mul(indices.ceilDiv(value, step), step);
}

/// What this rank adds to the seed, so that it has a stream of its own: its position in the mesh,
/// in the upper half of the key, where seeds that count up do not meet it.
Value ownKey(Localizer &localizer, OpBuilder &builder) {
  const Mesh &mesh = localizer.getMesh().getValue();
  Value position =
      localizer.indices(builder).table(llvm::to_vector(llvm::seq<int64_t>(0, mesh.numDevices())));
  Emitter emit = localizer.emitter(builder);
  Type i64 = builder.getI64Type();
  return emit.mul(emit.ofIndex(position, i64), emit.integer(int64_t(1) << 32, i64));
}

dist::RandomMode modeOf(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  auto text = module ? module->getAttrOfType<StringAttr>(dist::kRandomAttr) : StringAttr();
  return (text ? dist::parseRandomMode(text) : std::nullopt).value_or(dist::RandomMode::Global);
}

struct RandomModel : LocalizeModel<RandomModel, aten::RandomOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::RandomOp op,
                         ValueRange operands) {
    const Layout *layout = localizer.resultLayout(0);
    if (layout && layout->hasPartial()) {
      localizer.refuse() << "random numbers are not a partial value; place them as R and "
                            "redistribute";
      return failure();
    }
    Emitter emit = localizer.emitter(builder);
    dist::RandomMode mode = modeOf(op);
    Value seed = operands[0], offset = operands[1];
    if (layout && mode == dist::RandomMode::PerRank)
      seed = emit.add(seed, ownKey(localizer, builder));
    if (layout && mode == dist::RandomMode::DTensor)
      offset = emit.add(
          offset, emit.ofIndex(startOfShard(localizer, builder, *layout), builder.getI64Type()));
    Words words{emit, elementsOf(localizer, builder, mode == dist::RandomMode::Global), seed,
                offset};
    if (op.getDistribution() == "bits")
      return single(words.integer());
    return single(op.getDistribution() == "normal" ? words.normal(op.getDtype())
                                                   : words.uniform(op.getDtype()));
  }
};

} // namespace

void shardc::attachRandomModels(MLIRContext *context) {
  attachModel<aten::RandomOp, RandomModel>(context);
}
