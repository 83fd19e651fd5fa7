// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/interfaces/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace shardc;

Type shardc::toIrType(MLIRContext *context, ElementType type) {
  Builder builder(context);
  switch (type) {
  case ElementType::Bool:
    return builder.getI1Type();
  case ElementType::I8:
    return builder.getI8Type();
  case ElementType::I16:
    return builder.getI16Type();
  case ElementType::I32:
    return builder.getI32Type();
  case ElementType::I64:
    return builder.getI64Type();
  case ElementType::U8:
    return builder.getIntegerType(8, false);
  case ElementType::U16:
    return builder.getIntegerType(16, false);
  case ElementType::U32:
    return builder.getIntegerType(32, false);
  case ElementType::U64:
    return builder.getIntegerType(64, false);
  case ElementType::F16:
    return builder.getF16Type();
  case ElementType::BF16:
    return builder.getBF16Type();
  case ElementType::F32:
    return builder.getF32Type();
  case ElementType::F64:
    return builder.getF64Type();
  case ElementType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case ElementType::F8E5M2:
    return Float8E5M2Type::get(context);
  case ElementType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case ElementType::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case ElementType::F8E8M0FNU:
    return Float8E8M0FNUType::get(context);
  case ElementType::C32:
    return ComplexType::get(builder.getF16Type());
  case ElementType::C64:
    return ComplexType::get(builder.getF32Type());
  case ElementType::C128:
    return ComplexType::get(builder.getF64Type());
  }
  return {};
}

std::optional<ElementType> shardc::toElementType(Type type) {
  for (const ElementTypeFacts &row : elementTypes)
    if (toIrType(type.getContext(), row.type) == type)
      return row.type;
  return std::nullopt;
}
