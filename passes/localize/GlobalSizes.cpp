// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/GlobalSizes.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/IdentityOpInterface.h"
#include "dialects/interfaces/OpInterfaces.h"

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
  if (llvm::none_of(op->getResults(), isDynamic))
    return;
  SmallVector<SmallVector<Known>> inferred = infer(op);
  for (OpResult result : op->getResults()) {
    if (!isDynamic(result))
      continue;
    SmallVector<Known> known;
    for (int64_t dim = 0; dim < cast<RankedTensorType>(result.getType()).getRank(); ++dim) {
      known.push_back(of(result, dim)); // static dims
      if (!known.back().size && !inferred.empty())
        known.back() = inferred[result.getResultNumber()][dim];
    }
    dims[result] = known;
  }
}

namespace {
struct SizeRange {
  int64_t min, max;
};
} // namespace

/// The values that an expression may have, or nothing where an intermediate value overflows.
static std::optional<SizeRange> rangeOf(AffineExpr expr, ArrayRef<SizeRange> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return SizeRange{constant.getValue(), constant.getValue()};
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<SizeRange> lhs = rangeOf(binary.getLHS(), symbols);
  std::optional<SizeRange> rhs = rangeOf(binary.getRHS(), symbols);
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
        return SizeRange{0, b - 1};
      }
      if (overflow)
        return std::nullopt;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  return SizeRange{low, high};
}

bool GlobalSizes::isNotNegative(SizeAttr size) const {
  if (!size)
    return false;
  SmallVector<SizeRange> symbols;
  for (StringAttr name : size.getSymbols()) {
    SymbolAttr symbol = findSymbol(function, name.getValue());
    if (!symbol)
      return false;
    symbols.push_back({symbol.getMin(), symbol.getMax()});
  }
  std::optional<SizeRange> range = rangeOf(size.getExpr(), symbols);
  return range && range->min >= 0;
}

/// Sizes as expressions over the function's symbols; where there is none, as index values of the
/// placed program, with which nothing can be calculated.
class GlobalSizes::Symbolic final : public SizeAlgebra {
public:
  explicit Symbolic(const GlobalSizes &global) : global(global) {}

  SmallVector<Dim> sizesOf(Value tensor) override {
    SmallVector<Dim> sizes;
    for (int64_t dim = 0, e = cast<RankedTensorType>(tensor.getType()).getRank(); dim < e; ++dim)
      sizes.push_back(add(global.of(tensor, dim)));
    return sizes;
  }
  Dim valueOf(Value index) override { return add({global.ofIndex(index), index}); }

  Known get(Dim dim) const {
    if (dim.number())
      return {SizeAttr::get(context(), *dim.number()), Value()};
    return dim.isKnown() ? known[*dim.entry()] : Known();
  }

protected:
  Dim compute(Operation operation, Dim a, Dim b) override {
    SizeAttr lhs = get(a).size, rhs = get(b).size;
    switch (operation) {
    case Operation::Add:
      return add(combine(AffineExprKind::Add, lhs, rhs));
    case Operation::Sub:
      return add(subtract(lhs, rhs));
    case Operation::Mul:
      return add(combine(AffineExprKind::Mul, lhs, rhs));
    case Operation::CeilDiv:
      return add(combine(AffineExprKind::CeilDiv, lhs, rhs));
    // Where the ranges of the symbols show which it is.
    case Operation::Min:
      return isNotLess(rhs, lhs) ? a : isNotLess(lhs, rhs) ? b : Dim();
    case Operation::Max:
      return isNotLess(lhs, rhs) ? a : isNotLess(rhs, lhs) ? b : Dim();
    case Operation::FromEnd:
      return global.isNotNegative(lhs) ? a : Dim();
    case Operation::AsSize:
      return a;
    }
    llvm_unreachable("all operations are listed");
  }

private:
  MLIRContext *context() const { return global.function->getContext(); }
  bool isNotLess(SizeAttr lhs, SizeAttr rhs) const {
    return global.isNotNegative(subtract(lhs, rhs));
  }
  Dim add(SizeAttr size) { return add(Known{size, Value()}); }
  Dim add(Known entry) {
    if (!entry.size && !entry.index)
      return {};
    if (std::optional<int64_t> constant = entry.size ? entry.size.getConstant() : std::nullopt)
      return *constant;
    known.push_back(entry);
    return Dim::entry(known.size() - 1);
  }

  const GlobalSizes &global;
  SmallVector<Known> known;
};

SmallVector<SmallVector<GlobalSizes::Known>> GlobalSizes::infer(Operation *op) const {
  Symbolic symbolic(*this);
  SmallVector<SmallVector<Dim>> sizes;
  if (auto identity = dyn_cast<IdentityOpInterface>(op)) {
    sizes.push_back(symbolic.sizesOf(identity.getIdentitySource()));
  } else if (auto sized = dyn_cast<ResultSizesOpInterface>(op)) {
    if (auto inferred = sized.inferResultSizes(symbolic); succeeded(inferred))
      sizes = std::move(*inferred);
  }
  return llvm::map_to_vector(sizes, [&](ArrayRef<Dim> shape) {
    return llvm::map_to_vector(shape, [&](Dim dim) { return symbolic.get(dim); });
  });
}
