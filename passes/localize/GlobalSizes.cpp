// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/GlobalSizes.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"
#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static bool isDynamic(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && !type.hasStaticShape();
}

GlobalSizes::GlobalSizes(func::FuncOp function) : function(function) {
  for (BlockArgument arg : function.getArguments()) {
    auto sizes = function.getArgAttrOfType<ArrayAttr>(arg.getArgNumber(), kSizesAttr);
    if (!sizes || !isDynamic(arg))
      continue;
    for (Attribute size : sizes)
      dims[arg].push_back({dyn_cast<SizeAttr>(size), Value()});
  }
  for (Operation &op : function.getBody().front())
    visit(&op);
}

GlobalSizes::Known GlobalSizes::of(Value placed, int64_t dim) const {
  int64_t size = cast<RankedTensorType>(placed.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return {SizeAttr::get(placed.getContext(), size), Value()};
  auto found = dims.find(placed);
  return found == dims.end() ? Known() : found->second[dim];
}

SizeAttr GlobalSizes::ofIndex(Value index) const {
  if (std::optional<int64_t> value = getConstantIntValue(index))
    return SizeAttr::get(index.getContext(), *value);
  return indices.lookup(index);
}

GlobalSizes::Known GlobalSizes::ofMixed(OpFoldResult size) const {
  if (auto attribute = dyn_cast<Attribute>(size)) {
    int64_t value = cast<IntegerAttr>(attribute).getInt();
    return {SizeAttr::get(attribute.getContext(), value), Value()};
  }
  return {ofIndex(cast<Value>(size)), cast<Value>(size)};
}

static SizeAttr combine(AffineExprKind kind, SizeAttr lhs, SizeAttr rhs) {
  if (!lhs || !rhs)
    return {};
  // A quotient by something that may be 0 or negative is not an affine expression.
  bool isQuotient = kind != AffineExprKind::Add && kind != AffineExprKind::Mul;
  if (isQuotient && rhs.getConstant().value_or(0) < 1)
    return {};
  return SizeAttr::combine(kind, lhs, rhs);
}

static SizeAttr subtract(SizeAttr lhs, SizeAttr rhs) {
  if (!lhs || !rhs)
    return {};
  return combine(AffineExprKind::Add, lhs,
                 combine(AffineExprKind::Mul, rhs, SizeAttr::get(rhs.getContext(), -1)));
}

void GlobalSizes::visit(Operation *op) {
  if (op->getNumResults() == 1 && isa<IndexType>(op->getResult(0).getType())) {
    auto binary = [&](AffineExprKind kind) {
      return combine(kind, ofIndex(op->getOperand(0)), ofIndex(op->getOperand(1)));
    };
    SizeAttr size = llvm::TypeSwitch<Operation *, SizeAttr>(op)
                        .Case([&](aten::SymSizeOp symSize) {
                          return of(symSize.getSelf(), static_cast<int64_t>(symSize.getDim())).size;
                        })
                        .Case([&](ExtentOp extent) {
                          ExtentsAttr extents = extent.getExtents();
                          return extents.getMesh() ? SizeAttr() : extents.getSize();
                        })
                        .Case([&](arith::AddIOp) { return binary(AffineExprKind::Add); })
                        .Case([&](arith::MulIOp) { return binary(AffineExprKind::Mul); })
                        .Case([&](arith::SubIOp) {
                          return subtract(ofIndex(op->getOperand(0)), ofIndex(op->getOperand(1)));
                        })
                        .Case([&](arith::FloorDivSIOp) { return binary(AffineExprKind::FloorDiv); })
                        .Case([&](arith::CeilDivSIOp) { return binary(AffineExprKind::CeilDiv); })
                        .Default([](Operation *) { return SizeAttr(); });
    if (size)
      indices[op->getResult(0)] = size;
    return;
  }
  for (OpResult result : op->getResults()) {
    if (!isDynamic(result))
      continue;
    SmallVector<Known> known;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(result.getType()).getRank(); ++dim) {
      known.push_back(of(result, dim)); // static dims
      if (!known.back().size)
        known.back() = infer(result, dim);
    }
    dims[result] = known;
  }
}

GlobalSizes::Known GlobalSizes::sumAlong(ValueRange tensors, int64_t dim) const {
  SizeAttr sum;
  for (Value tensor : tensors) {
    SizeAttr size = of(tensor, dim).size;
    sum = sum ? combine(AffineExprKind::Add, sum, size) : size;
    if (!sum)
      return {};
  }
  return {sum, Value()};
}

/// The size of a result dim that has the same factors as an operand dim.
static std::optional<std::pair<unsigned, int64_t>> sameFactors(OpResult result, int64_t dim) {
  auto op = dyn_cast<ShardingRuleOpInterface>(result.getOwner());
  if (!op)
    return std::nullopt;
  ShardingRule rule = op.getShardingRule();
  unsigned number = result.getResultNumber();
  if (number >= rule.results.size() || dim >= static_cast<int64_t>(rule.results[number].size()))
    return std::nullopt;
  const DimFactors &factors = rule.results[number][dim];
  for (unsigned operand = 0; !factors.empty() && operand < rule.operands.size(); ++operand)
    for (auto [operandDim, candidate] : llvm::enumerate(rule.operands[operand]))
      if (candidate == factors)
        return std::pair(operand, static_cast<int64_t>(operandDim));
  return std::nullopt;
}

namespace {
struct Interval {
  int64_t min, max;
};
} // namespace

/// The values that an expression may have, or nothing where an intermediate value overflows.
static std::optional<Interval> rangeOf(AffineExpr expr, ArrayRef<Interval> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Interval{constant.getValue(), constant.getValue()};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<Interval> lhs = rangeOf(binary.getLHS(), symbols);
  std::optional<Interval> rhs = rangeOf(binary.getRHS(), symbols);
  if (!lhs || !rhs)
    return std::nullopt;
  // Extremes of these operations are at corners; divisors are positive constants (see combine).
  int64_t low = std::numeric_limits<int64_t>::max(), high = std::numeric_limits<int64_t>::min();
  for (int64_t a : {lhs->min, lhs->max})
    for (int64_t b : {rhs->min, rhs->max}) {
      int64_t value = 0;
      bool overflow = false;
      switch (expr.getKind()) {
      case AffineExprKind::Add:
        overflow = llvm::AddOverflow(a, b, value);
        break;
      case AffineExprKind::Mul:
        overflow = llvm::MulOverflow(a, b, value);
        break;
      case AffineExprKind::FloorDiv:
        value = llvm::divideFloorSigned(a, b);
        break;
      case AffineExprKind::CeilDiv:
        value = llvm::divideCeilSigned(a, b);
        break;
      default: // mod: all remainders
        return Interval{0, b - 1};
      }
      if (overflow)
        return std::nullopt;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return Interval{low, high};
}

bool GlobalSizes::isNotNegative(SizeAttr size) const {
  if (!size)
    return false;
  SmallVector<Interval> symbols;
  for (StringAttr name : size.getSymbols()) {
    SymbolAttr symbol = findSymbol(function, name.getValue());
    if (!symbol)
      return false;
    symbols.push_back({symbol.getMin(), symbol.getMax()});
  }
  std::optional<Interval> range = rangeOf(size.getExpr(), symbols);
  return range && range->min >= 0;
}

/// end - start, where the ranges of the symbols show that nothing is clipped.
SizeAttr GlobalSizes::sliced(aten::SliceOp slice) const {
  MLIRContext *context = slice.getContext();
  SizeAttr size = of(slice.getSelf(), static_cast<int64_t>(slice.getDim())).size;
  SizeAttr start =
      slice.getStart() ? ofIndex(slice.getStart()) : SizeAttr::get(context, slice.getStaticStart());
  SizeAttr end = slice.getEnd() ? ofIndex(slice.getEnd()) : SizeAttr();
  if (!slice.getEnd()) {
    int64_t bound = static_cast<int64_t>(slice.getStaticEnd());
    end = bound == std::numeric_limits<int64_t>::max() ? size : SizeAttr::get(context, bound);
  }
  SizeAttr length = subtract(end, start);
  if (!isNotNegative(start) || !isNotNegative(length) || !isNotNegative(subtract(size, end)))
    return {};
  return combine(AffineExprKind::CeilDiv, length, SizeAttr::get(context, slice.getStep()));
}

GlobalSizes::Known GlobalSizes::infer(OpResult result, int64_t dim) const {
  Operation *op = result.getOwner();
  if (auto redistribute = dyn_cast<RedistributeOp>(op))
    return of(redistribute.getInput(), dim);
  if (auto view = dyn_cast<aten::ViewOp>(op))
    return ofMixed(view.getMixedSize()[dim]);
  if (auto expand = dyn_cast<aten::ExpandOp>(op))
    return ofMixed(expand.getMixedSize()[dim]);
  if (auto arange = dyn_cast<aten::ArangeOp>(op)) {
    MLIRContext *context = op->getContext();
    SizeAttr start = arange.getStart() ? ofIndex(arange.getStart())
                                       : SizeAttr::get(context, arange.getStaticStart());
    SizeAttr end =
        arange.getEnd() ? ofIndex(arange.getEnd()) : SizeAttr::get(context, arange.getStaticEnd());
    return {combine(AffineExprKind::CeilDiv, subtract(end, start),
                    SizeAttr::get(context, arange.getStep())),
            Value()};
  }
  if (auto slice = dyn_cast<aten::SliceOp>(op);
      slice && dim == static_cast<int64_t>(slice.getDim()))
    return {sliced(slice), Value()};
  if (auto cat = dyn_cast<aten::CatOp>(op); cat && dim == static_cast<int64_t>(cat.getDim()))
    return sumAlong(aten::partsOfCat(cat.getTensors()), dim);
  if (auto split = dyn_cast<aten::SplitWithSizesOp>(op);
      split && dim == static_cast<int64_t>(split.getDim()))
    return ofMixed(getMixedValues(split.getStaticSplitSizes(), split.getSplitSizes(),
                                  op->getContext())[result.getResultNumber()]);
  if (auto gather = dyn_cast<aten::GatherOp>(op))
    return of(gather.getIndex(), dim);
  if (auto source = sameFactors(result, dim))
    return of(op->getOperand(source->first), source->second);
  return {};
}
