// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Complex.h"

using namespace mlir;

namespace shardc::torch_export {

ComplexCall::ComplexCall(Call &call) : call(call), emit(call.builder, call.loc), pairs(emit) {
  if (isa_and_nonnull<FloatType>(call.resultElementType())) {
    type = call.resultElementType();
    return;
  }
  type = call.builder.getF32Type();
  for (const SchemaArgument &argument : call.schema.arguments)
    if (const TensorMeta *meta = call.recorded(argument.name))
      if (componentOf(meta->type) == ElementType::F64)
        type = call.builder.getF64Type();
}

FailureOr<ComplexOperand> ComplexCall::operand(StringRef name) {
  if (call.isNone(name))
    return ComplexOperand();
  const Argument &argument = *call.find(name);
  if (auto *number = std::get_if<ComplexArg>(&argument))
    return ComplexOperand{pairs.number(number->real, number->imag, type), true};
  if (!std::holds_alternative<TensorArg>(argument)) {
    FailureOr<Value> number = call.scalar(argument, type);
    if (failed(number))
      return failure();
    return ComplexOperand{*number, false};
  }
  FailureOr<Value> tensor = call.tensor(name);
  if (failed(tensor))
    return failure();
  if (!*tensor)
    return ComplexOperand();
  const TensorMeta *meta = call.recorded(name);
  return ComplexOperand{emit.cast(*tensor, type), meta && meta->isComplex()};
}

FailureOr<Value> ComplexCall::pair(StringRef name) {
  FailureOr<ComplexOperand> found = operand(name);
  if (failed(found))
    return failure();
  return found->value ? asPair(*found) : Value();
}

/// Sizes from the last dim on, as far as both have them: each pair of known ones is equal, or one
/// of them is 1.
static bool areBroadcast(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  while (!lhs.empty() && !rhs.empty()) {
    int64_t a = lhs.back(), b = rhs.back();
    if (a != b && a != 1 && b != 1 && !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b))
      return false;
    lhs = lhs.drop_back();
    rhs = rhs.drop_back();
  }
  return true;
}

LogicalResult ComplexCall::checkBroadcast(ArrayRef<ComplexOperand> operands) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (const ComplexOperand &operand : operands) {
    if (!operand.value)
      continue;
    ArrayRef<int64_t> shape = aten::shapeOf(operand.value);
    shapes.push_back(operand.isPair ? shape.drop_back() : shape);
    for (ArrayRef<int64_t> other : ArrayRef(shapes).drop_back())
      if (!areBroadcast(other, shapes.back()))
        return call.error() << "has tensors whose sizes do not broadcast";
  }
  return success();
}

LogicalResult ComplexCall::checkFactors(Value lhs, Value rhs) {
  ArrayRef<int64_t> left = aten::shapeOf(lhs).drop_back(), right = aten::shapeOf(rhs).drop_back();
  bool fits = !left.empty() && !right.empty();
  if (fits) {
    int64_t inner = right[right.size() < 2 ? 0 : right.size() - 2];
    fits =
        left.back() == inner || ShapedType::isDynamic(left.back()) || ShapedType::isDynamic(inner);
    fits &=
        left.size() < 3 || right.size() < 3 || areBroadcast(left.drop_back(2), right.drop_back(2));
  }
  if (!fits)
    return call.error() << "has matrices whose sizes do not fit";
  return success();
}

Value ComplexCall::product(ComplexOperand lhs, ComplexOperand rhs) {
  if (!lhs.isPair)
    std::swap(lhs, rhs);
  if (!lhs.isPair)
    return pairs.ofReal(emit.mul(lhs.value, rhs.value));
  return rhs.isPair ? pairs.mul(lhs.value, rhs.value) : pairs.scale(lhs.value, rhs.value);
}

Value ComplexCall::quotient(ComplexOperand lhs, ComplexOperand rhs) {
  Value above = asPair(lhs);
  return rhs.isPair ? pairs.div(above, rhs.value) : emit.div(above, pairs.beside(rhs.value));
}

Value ComplexCall::sum(Value z, ComplexOperand added) { return emit.add(z, asPair(added)); }

} // namespace shardc::torch_export
