// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/TensorBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shardc {

TensorBuilder::Sizes TensorBuilder::sizesOf(Value tensor) const {
  return tensor::getMixedSizes(builder, loc, tensor);
}

TensorBuilder::Sizes TensorBuilder::broadcastSizes(ArrayRef<int64_t> shape,
                                                   ValueRange operands) const {
  Sizes sizes;
  int64_t rank = shape.size();
  for (auto [position, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(builder.getIndexAttr(size));
      continue;
    }
    OpFoldResult found;
    for (Value operand : operands) {
      auto type = cast<RankedTensorType>(operand.getType());
      int64_t at = static_cast<int64_t>(position) + type.getRank() - rank;
      if (at < 0 || type.getDimSize(at) == 1)
        continue;
      found = tensor::getMixedSize(builder, loc, operand, at);
      break;
    }
    sizes.push_back(found ? found : OpFoldResult(builder.getIndexAttr(1)));
  }
  return sizes;
}

Value TensorBuilder::empty(ArrayRef<OpFoldResult> sizes, Type element) const {
  return tensor::EmptyOp::create(builder, loc, sizes, element);
}

AffineMap TensorBuilder::broadcastMap(Value operand, ArrayRef<OpFoldResult> domain) const {
  auto type = cast<RankedTensorType>(operand.getType());
  int64_t shift = static_cast<int64_t>(domain.size()) - type.getRank();
  SmallVector<AffineExpr> exprs;
  for (auto [position, size] : llvm::enumerate(type.getShape())) {
    bool repeated = size == 1 && getConstantIntValue(domain[position + shift]) != 1;
    exprs.push_back(repeated ? builder.getAffineConstantExpr(0)
                             : builder.getAffineDimExpr(position + shift));
  }
  return AffineMap::get(domain.size(), 0, exprs, builder.getContext());
}

Value TensorBuilder::map(ArrayRef<OpFoldResult> domain, Type element, ValueRange operands,
                         Body body) const {
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(broadcastMap(operand, domain));
  return map(domain, element, operands, maps, body);
}

Value TensorBuilder::map(ArrayRef<OpFoldResult> domain, Type element, ValueRange operands,
                         ArrayRef<AffineMap> operandMaps, Body body) const {
  SmallVector<AffineMap> maps(operandMaps);
  maps.push_back(builder.getMultiDimIdentityMap(domain.size()));
  SmallVector<utils::IteratorType> iterators(domain.size(), utils::IteratorType::parallel);
  Value init = empty(domain, element);
  auto op = linalg::GenericOp::create(builder, loc, init.getType(), operands, init, maps, iterators,
                                      [&](OpBuilder &b, Location l, ValueRange args) {
                                        linalg::YieldOp::create(b, l, body(b, args.drop_back()));
                                      });
  return op.getResult(0);
}

Value TensorBuilder::reduce(ArrayRef<OpFoldResult> domain, ArrayRef<bool> reduced, bool keepdim,
                            Value initial, ValueRange operands, ReductionBody body) const {
  SmallVector<AffineMap> maps;
  for (Value operand : operands)
    maps.push_back(broadcastMap(operand, domain));
  SmallVector<AffineExpr> results;
  SmallVector<utils::IteratorType> iterators;
  Sizes sizes;
  for (auto [position, isReduced] : llvm::enumerate(reduced)) {
    iterators.push_back(isReduced ? utils::IteratorType::reduction : utils::IteratorType::parallel);
    if (!isReduced) {
      results.push_back(builder.getAffineDimExpr(position));
      sizes.push_back(domain[position]);
    } else if (keepdim) {
      results.push_back(builder.getAffineConstantExpr(0));
      sizes.push_back(builder.getIndexAttr(1));
    }
  }
  maps.push_back(AffineMap::get(domain.size(), 0, results, builder.getContext()));
  Value start = empty(sizes, initial.getType());
  Value init = linalg::FillOp::create(builder, loc, initial, start).getResult(0);
  auto op = linalg::GenericOp::create(builder, loc, init.getType(), operands, init, maps, iterators,
                                      [&](OpBuilder &b, Location l, ValueRange args) {
                                        linalg::YieldOp::create(
                                            b, l, body(b, args.drop_back(), args.back()));
                                      });
  return op.getResult(0);
}

Value TensorBuilder::countReduced(ArrayRef<OpFoldResult> domain, ArrayRef<bool> reduced) const {
  int64_t constant = 1;
  Value product;
  for (auto [size, isReduced] : llvm::zip_equal(domain, reduced)) {
    if (!isReduced)
      continue;
    if (std::optional<int64_t> value = getConstantIntValue(size)) {
      constant *= *value;
      continue;
    }
    Value factor = getValueOrCreateConstantIndexOp(builder, loc, size);
    product = product ? arith::MulIOp::create(builder, loc, product, factor).getResult() : factor;
  }
  Value known = arith::ConstantIndexOp::create(builder, loc, constant);
  return product ? arith::MulIOp::create(builder, loc, product, known).getResult() : known;
}

Value currentIndex(OpBuilder &builder, Location loc, unsigned dim) {
  return linalg::IndexOp::create(builder, loc, dim);
}

} // namespace shardc
