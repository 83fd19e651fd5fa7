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
