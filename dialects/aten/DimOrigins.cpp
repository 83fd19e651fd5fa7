// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/DimOrigins.h"

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/IdentityOpInterface.h"
#include "dialects/interfaces/OriginMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace shardc::aten {

namespace {

/// Sizes as places that they are known from: dims of operands, and index operands.
class OriginSizes final : public SizeAlgebra {
public:
  SmallVector<Dim> sizesOf(Value tensor) override {
    SmallVector<Dim> sizes;
    for (auto [dim, size] : llvm::enumerate(shapeOf(tensor)))
      sizes.push_back(ShapedType::isDynamic(size) ? add({tensor, static_cast<int64_t>(dim)})
                                                  : Dim(size));
    return sizes;
  }
  Dim valueOf(Value index) override { return add({index, -1}); }

  std::optional<DimOrigin> get(Dim dim) const {
    return dim.entry() ? std::optional(origins[*dim.entry()]) : std::nullopt;
  }

private:
  Dim add(DimOrigin origin) {
    origins.push_back(origin);
    return Dim::entry(origins.size() - 1);
  }

  SmallVector<DimOrigin> origins;
};

} // namespace

/// Where an op has a dim of its result from, if it is one place.
static std::optional<DimOrigin> sourceOf(OpResult result, int64_t dim) {
  auto op = dyn_cast<ResultSizesOpInterface>(result.getOwner());
  if (!op)
    return std::nullopt;
  OriginSizes origins;
  FailureOr<SmallVector<SmallVector<Dim>>> sizes = op.inferResultSizes(origins);
  if (failed(sizes))
    return std::nullopt;
  return origins.get((*sizes)[result.getResultNumber()][dim]);
}

/// One step towards the origin; none where this is it.
static std::optional<DimOrigin> stepFrom(const DimOrigin &origin) {
  if (origin.dim < 0) {
    auto size = origin.value.getDefiningOp<SymSizeOp>();
    if (!size)
      return std::nullopt;
    return DimOrigin{size.getSelf(), static_cast<int64_t>(size.getDim())};
  }
  auto result = dyn_cast<OpResult>(origin.value);
  if (!result)
    return std::nullopt;
  if (auto identity = dyn_cast<IdentityOpInterface>(result.getOwner()))
    return DimOrigin{identity.getIdentitySource(), origin.dim};
  return sourceOf(result, origin.dim);
}

DimOrigin originOf(Value tensor, int64_t dim) {
  constexpr int maxSteps = 64;
  OriginMemory *memory = OriginMemory::current();
  DimOrigin origin{tensor, dim};
  SmallVector<OriginMemory::Place> passed;
  for (int step = 0; memory || step < maxSteps; ++step) {
    OriginMemory::Place place(origin.value, origin.dim);
    if (memory)
      if (auto known = memory->origins.find(place); known != memory->origins.end()) {
        origin = {known->second.first, known->second.second};
        break;
      }
    std::optional<DimOrigin> next = stepFrom(origin);
    if (!next)
      break;
    passed.push_back(place);
    origin = *next;
  }
  if (memory)
    for (const OriginMemory::Place &place : passed)
      memory->origins.try_emplace(place, origin.value, origin.dim);
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
