// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Standard.h"

#include "importers/torch_export/import/SliceBuilders.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace shardc::torch_export {

SmallVector<int64_t> dimRange(int64_t begin, int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(begin, std::max(begin, end)));
}

SmallVector<int64_t> dimsBesideChannels(int64_t rank) {
  SmallVector<int64_t> dims = dimRange(2, rank);
  dims.insert(dims.begin(), 0);
  return dims;
}

std::optional<int64_t> fixedCount(Value x, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    int64_t size = aten::shapeOf(x)[dim];
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    count *= size;
  }
  return count;
}

Value countAlong(Emitter &emit, Value x, ArrayRef<int64_t> dims, Type elementType) {
  SmallVector<OpFoldResult> sizes = sizesOf(emit.getBuilder(), emit.getLoc(), x);
  Value count;
  int64_t fixed = 1;
  for (int64_t dim : dims) {
    if (std::optional<int64_t> number = getConstantIntValue(sizes[dim])) {
      fixed *= *number;
      continue;
    }
    Value factor = emit.ofIndex(cast<Value>(sizes[dim]), elementType);
    count = count ? emit.mul(count, factor) : factor;
  }
  Value number = emit.scalar(static_cast<double>(fixed), elementType);
  return count ? emit.mul(count, number) : number;
}

Value Standard::wide(Value x) { return emit.cast(x, Emitter::accumulator(aten::elementTypeOf(x))); }

Value Standard::constant(Value statistic, Type elementType) {
  auto alias = aten::AliasOp::create(call.builder, call.loc, emit.cast(statistic, elementType));
  alias.setDetached(true);
  return alias;
}

FailureOr<Value> Standard::mean(Value x, bool keepdim) {
  SmallVector<NamedAttribute> attributes = {call.integersAttr("dim", dims)};
  if (keepdim)
    attributes.push_back(call.builder.getNamedAttr("keepdim", call.builder.getUnitAttr()));
  return call.buildOne("aten.mean", {{"self", {x}}}, attributes);
}

FailureOr<std::pair<Value, Value>> Standard::statistics(Value x, double eps) {
  x = wide(x);
  FailureOr<Value> mean = this->mean(x);
  if (failed(mean))
    return failure();
  Value centered = emit.sub(x, *mean);
  FailureOr<Value> variance = this->mean(emit.mul(centered, centered));
  if (failed(variance))
    return failure();
  Value shifted = emit.add(*variance, emit.scalar(eps, aten::elementTypeOf(x)));
  return std::pair(*mean, emit.unary<aten::RsqrtOp>(shifted));
}

FailureOr<Value> Standard::ofInput(Value grad, Value value, Value scale) {
  FailureOr<Value> first = mean(grad), second = mean(emit.mul(grad, value));
  if (failed(first) || failed(second))
    return failure();
  Value rest = emit.sub(emit.sub(grad, *first), emit.mul(value, *second));
  return emit.mul(scale, rest);
}

} // namespace shardc::torch_export
