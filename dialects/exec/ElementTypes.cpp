// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/ElementTypes.h"

#include "dialects/interfaces/ElementTypes.h"

using namespace mlir;

namespace shardc::exec {

int32_t runtimeType(Type type) {
  std::optional<ElementType> known = toElementType(type);
  return known ? runtimeCodeOf(*known) : 0;
}

llvm::StringRef typeName(int32_t type) {
  std::optional<ElementType> known = elementTypeFromRuntime(type);
  return known ? elementTypeName(*known) : "";
}

} // namespace shardc::exec
