// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/TypePromotion.h"

using namespace mlir;

namespace shardc::aten {

static ScalarKind kindOf(Type type) {
  if (isa<FloatType>(type))
    return ScalarKind::Float;
  return type.isInteger(1) ? ScalarKind::Bool : ScalarKind::Int;
}

Type promoteTypes(Type lhs, Type rhs) {
  if (lhs == rhs)
    return lhs;
  unsigned leftWidth = lhs.getIntOrFloatBitWidth(), rightWidth = rhs.getIntOrFloatBitWidth();
  bool leftFloat = isa<FloatType>(lhs), rightFloat = isa<FloatType>(rhs);
  if ((leftFloat && leftWidth == 8) || (rightFloat && rightWidth == 8))
    return {};
  if (leftFloat && rightFloat) {
    if (leftWidth == rightWidth) // f16 and bf16: neither holds the other
      return Float32Type::get(lhs.getContext());
    return leftWidth > rightWidth ? lhs : rhs;
  }
  if (leftFloat || rightFloat)
    return leftFloat ? lhs : rhs;
  // Integers of both signs, and bool. Only ui8 mixes with others.
  auto isWideUnsigned = [](Type type) {
    return type.isUnsignedInteger() && type.getIntOrFloatBitWidth() > 8;
  };
  if (isWideUnsigned(lhs) || isWideUnsigned(rhs))
    return {};
  if (leftWidth == 8 && rightWidth == 8) // ui8 and i8
    return IntegerType::get(lhs.getContext(), 16);
  return leftWidth > rightWidth ? lhs : rhs;
}

/// `lower` counts only if it is of a higher category than `higher` (which may be null).
static FailureOr<Type> combineCategories(Type higher, Type lower) {
  if (!higher || !lower)
    return higher ? higher : lower;
  if (kindOf(lower) <= kindOf(higher))
    return higher;
  Type promoted = promoteTypes(higher, lower);
  if (!promoted)
    return failure();
  return promoted;
}

Type resultElementType(ArrayRef<RankedTensorType> tensors, ArrayRef<ScalarKind> scalars) {
  Type withDims, withoutDims, scalar;
  for (RankedTensorType tensor : tensors) {
    Type &state = tensor.getRank() > 0 ? withDims : withoutDims;
    state = state ? promoteTypes(state, tensor.getElementType()) : tensor.getElementType();
    if (!state)
      return {};
  }
  if (tensors.empty())
    return {};
  MLIRContext *context = tensors.front().getContext();
  for (ScalarKind kind : scalars) {
    Type type = Float32Type::get(context);
    if (kind != ScalarKind::Float)
      type = IntegerType::get(context, kind == ScalarKind::Bool ? 1 : 64);
    scalar = scalar ? promoteTypes(scalar, type) : type;
  }
  FailureOr<Type> small = combineCategories(withoutDims, scalar);
  if (failed(small))
    return {};
  FailureOr<Type> all = combineCategories(withDims, *small);
  return failed(all) ? Type() : *all;
}

Type toFloatType(Type type) {
  return isa<FloatType>(type) ? type : Type(Float32Type::get(type.getContext()));
}

} // namespace shardc::aten
