// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/OpInterfaces.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace shardc {

LocalizeContext::~LocalizeContext() = default;

std::optional<ViewKind> viewKindOf(Operation *op) {
  auto view = dyn_cast_or_null<TensorViewOpInterface>(op);
  return view ? std::optional(view.getViewKind()) : std::nullopt;
}

std::optional<SmallVector<int64_t>> permutationOf(Operation *op) {
  if (viewKindOf(op) != ViewKind::Permutation)
    return std::nullopt;
  return cast<TensorViewOpInterface>(op).getSourceDims();
}

std::optional<double> numElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return std::nullopt;
  // Not getNumElements(): a product of 64-bit sizes may overflow.
  double count = 1;
  for (int64_t size : tensor.getShape())
    count *= static_cast<double>(size);
  return count;
}

std::optional<double> numBytes(Type type) {
  std::optional<double> count = numElements(type);
  if (!count)
    return std::nullopt;
  Type element = cast<RankedTensorType>(type).getElementType();
  unsigned parts = 1;
  if (auto complex = dyn_cast<ComplexType>(element)) {
    element = complex.getElementType();
    parts = 2;
  }
  if (!element.isIntOrFloat())
    return std::nullopt;
  return *count * parts * ((element.getIntOrFloatBitWidth() + 7) / 8);
}

std::optional<double> elementwiseFlops(Operation *op) {
  double flops = 0;
  for (Type type : op->getResultTypes()) {
    std::optional<double> count = numElements(type);
    if (!count)
      return std::nullopt;
    flops += *count;
  }
  return flops;
}

std::optional<double> operandAndResultBytes(Operation *op) {
  double bytes = 0;
  auto add = [&](Type type) {
    if (!isa<RankedTensorType>(type))
      return true;
    std::optional<double> size = numBytes(type);
    bytes += size.value_or(0);
    return size.has_value();
  };
  llvm::SmallPtrSet<Value, 4> seen;
  for (Value operand : op->getOperands())
    if (seen.insert(operand).second && !add(operand.getType()))
      return std::nullopt;
  for (Type type : op->getResultTypes())
    if (!add(type))
      return std::nullopt;
  return bytes;
}

FailureOr<SmallVector<Value>> localizeAsSameOp(Operation *op, OpBuilder &builder,
                                               ValueRange operands, LocalizeContext &context) {
  SmallVector<Type> types;
  for (unsigned i = 0, e = op->getNumResults(); i < e; ++i)
    types.push_back(context.localResultType(i));
  Operation *local = Operation::create(op->getLoc(), op->getName(), types, operands,
                                       op->getDiscardableAttrDictionary(),
                                       op->getPropertiesStorage(), op->getSuccessors(), 0);
  builder.insert(local);
  return SmallVector<Value>(local->getResults());
}

} // namespace shardc

#include "dialects/interfaces/OpInterfaces.cpp.inc"
