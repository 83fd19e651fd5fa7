// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/ElementTypes.h"

#include "runtime/include/shardrt.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace shardc::exec {

int32_t runtimeType(Type type) {
  if (type.isF32())
    return SHARDRT_F32;
  if (type.isF64())
    return SHARDRT_F64;
  if (type.isF16())
    return SHARDRT_F16;
  if (type.isBF16())
    return SHARDRT_BF16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return 0;
  if (integer.isUnsigned())
    return integer.getWidth() == 8 ? SHARDRT_U8 : 0;
  switch (integer.getWidth()) {
  case 64:
    return SHARDRT_I64;
  case 32:
    return SHARDRT_I32;
  case 16:
    return SHARDRT_I16;
  case 8:
    return SHARDRT_I8;
  case 1:
    return SHARDRT_BOOL;
  default:
    return 0;
  }
}

const char *typeName(int32_t type) {
  switch (type) {
  case SHARDRT_F32:
    return "f32";
  case SHARDRT_F64:
    return "f64";
  case SHARDRT_F16:
    return "f16";
  case SHARDRT_BF16:
    return "bf16";
  case SHARDRT_I64:
    return "i64";
  case SHARDRT_I32:
    return "i32";
  case SHARDRT_I16:
    return "i16";
  case SHARDRT_I8:
    return "i8";
  case SHARDRT_U8:
    return "u8";
  case SHARDRT_BOOL:
    return "bool";
  default:
    return "";
  }
}

} // namespace shardc::exec
