// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/DimOrigins.h"

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/IdentityOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace shardc::aten {

/// The operand dim that has the factors of a result dim, by the op's sharding rule.
static std::optional<DimOrigin> sameFactors(OpResult result, int64_t dim) {
  auto op = dyn_cast<ShardingRuleOpInterface>(result.getOwner());
  if (!op || isa<ViewOp, ExpandOp>(result.getOwner()))
    return std::nullopt;
  ShardingRule rule = op.getShardingRule();
  if (result.getResultNumber() >= rule.results.size() ||
      dim >= static_cast<int64_t>(rule.results[result.getResultNumber()].size()))
    return std::nullopt;
  const DimFactors &factors = rule.results[result.getResultNumber()][dim];
  if (factors.size() != 1)
    return std::nullopt;
  for (auto [operand, dims] : llvm::enumerate(rule.operands))
    for (auto [operandDim, candidate] : llvm::enumerate(dims))
      if (candidate == factors)
        return DimOrigin{op->getOperand(operand), static_cast<int64_t>(operandDim)};
  return std::nullopt;
}

/// The index operand that an op was given for a dynamic dim of its result.
static Value givenSize(OpResult result, int64_t dim) {
  SmallVector<OpFoldResult> sizes;
  if (auto view = dyn_cast<ViewOp>(result.getOwner()))
    sizes = view.getMixedSize();
  else if (auto expand = dyn_cast<ExpandOp>(result.getOwner()))
    sizes = expand.getMixedSize();
  else if (auto arange = dyn_cast<ArangeOp>(result.getOwner());
           arange && !arange.getStart() && arange.getStaticStart() == 0 && arange.getStep() == 1)
    return arange.getEnd();
  return dim < static_cast<int64_t>(sizes.size()) ? dyn_cast<Value>(sizes[dim]) : Value();
}

DimOrigin originOf(Value tensor, int64_t dim) {
  constexpr int maxSteps = 64;
  DimOrigin origin{tensor, dim};
  for (int step = 0; step < maxSteps; ++step) {
    if (origin.dim < 0) {
      auto size = origin.value.getDefiningOp<SymSizeOp>();
      if (!size)
        return origin;
      origin = {size.getSelf(), static_cast<int64_t>(size.getDim())};
      continue;
    }
    auto result = dyn_cast<OpResult>(origin.value);
    if (!result)
      return origin;
    if (auto identity = dyn_cast<IdentityOpInterface>(result.getOwner())) {
      origin.value = identity.getIdentitySource();
      continue;
    }
    if (Value size = givenSize(result, origin.dim))
      origin = {size, -1};
    else if (std::optional<DimOrigin> source = sameFactors(result, origin.dim))
      origin = *source;
    else
      return origin;
  }
  return origin;
}

Value materializeSize(OpBuilder &builder, Location loc, Value tensor, int64_t dim) {
  int64_t size = shapeOf(tensor)[dim];
  if (!ShapedType::isDynamic(size))
    return arith::ConstantIndexOp::create(builder, loc, size);
  DimOrigin origin = originOf(tensor, dim);
  if (origin.dim < 0)
    return origin.value;
  return SymSizeOp::create(builder, loc, origin.value, origin.dim);
}

DimSize DimSizes::symbol(const void *key, int64_t dim) {
  int next = static_cast<int>(symbols.size());
  return DimSize::symbol(symbols.try_emplace({key, dim}, next).first->second);
}

DimSize DimSizes::of(Value tensor, int64_t dim) {
  int64_t size = shapeOf(tensor)[dim];
  if (!ShapedType::isDynamic(size))
    return size;
  DimOrigin origin = originOf(tensor, dim);
  if (origin.dim < 0)
    return ofIndex(origin.value);
  if (auto argument = dyn_cast<BlockArgument>(origin.value))
    if (auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())) {
      // The expressions of an argument's sizes, where it has them. What they say is no matter here:
      // equal attributes are equal sizes.
      auto sizes = function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), "dist.sizes");
      if (sizes && origin.dim < static_cast<int64_t>(sizes.size()))
        return symbol(sizes[origin.dim].getAsOpaquePointer(), 0);
    }
  return symbol(origin.value.getAsOpaquePointer(), origin.dim);
}

DimSize DimSizes::ofIndex(Value index) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant;
  if (auto size = index.getDefiningOp<SymSizeOp>())
    return of(size.getSelf(), static_cast<int64_t>(size.getDim()));
  if (auto product = index.getDefiningOp<arith::MulIOp>()) {
    DimSize lhs = ofIndex(product.getLhs()), rhs = ofIndex(product.getRhs());
    llvm::append_range(lhs.symbols, rhs.symbols);
    int64_t coefficient = 0;
    if (!llvm::MulOverflow(lhs.coefficient, rhs.coefficient, coefficient))
      return DimSize(coefficient, std::move(lhs.symbols));
  }
  return symbol(index.getAsOpaquePointer(), -1);
}

} // namespace shardc::aten
