// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc::dist;

#include "dialects/dist/Dialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dist/Types.cpp.inc"

void DistDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dist/Types.cpp.inc"
      >();
}
