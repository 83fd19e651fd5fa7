// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/dist/Constraints.h"

#include "dialects/dist/FunctionAttributes.h"

using namespace mlir;

namespace shardc::dist {
namespace {

constexpr unsigned maxDepth = 256; // users recurse

bool isExpression(FunctionOpInterface function, Attribute value, unsigned depth = 0) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getType().isInteger(64);
  if (auto symbol = dyn_cast<StringAttr>(value))
    return !!findSymbol(function, symbol.getValue());
  auto parts = dyn_cast<ArrayAttr>(value);
  if (!parts || parts.size() != 3 || depth == maxDepth)
    return false;
  auto name = dyn_cast<StringAttr>(parts[0]);
  return name &&
         llvm::is_contained({"add", "sub", "mul", "floordiv", "ceildiv", "mod", "min", "max"},
                            name.getValue()) &&
         isExpression(function, parts[1], depth + 1) && isExpression(function, parts[2], depth + 1);
}

} // namespace

LogicalResult verifyConstraints(Operation *op, Attribute value) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  auto list = dyn_cast<ArrayAttr>(value);
  if (!function || !list)
    return op->emitOpError("'dist.constraints' must be an array, on a function");
  for (Attribute entry : list) {
    auto parts = dyn_cast<ArrayAttr>(entry);
    auto relation = parts && parts.size() == 3 ? dyn_cast<StringAttr>(parts[0]) : StringAttr();
    if (!relation || !llvm::is_contained({"==", "!=", "<=", "<", ">=", ">"}, relation.getValue()) ||
        !isExpression(function, parts[1]) || !isExpression(function, parts[2]))
      return op->emitOpError("'dist.constraints': expected a relation and two expressions of "
                             "integers and declared symbols, got ")
             << entry;
  }
  return success();
}

} // namespace shardc::dist
