// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/StageChecks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;

/// Functions of libm that a kernel may call, by the name of the double version; the float version
/// ends in f. Nothing else is outside: services of the runtime, memory among them, are reached
/// through the frame.
static bool isAllowedExternal(StringRef name) {
  static const llvm::StringSet<> libm = {
      "acos", "acosh", "asin", "asinh", "atan",  "atan2", "atanh",  "cbrt",  "ceil",  "cos",
      "cosh", "erf",   "erfc", "exp",   "exp2",  "expm1", "fabs",   "floor", "fma",   "fmax",
      "fmin", "fmod",  "log",  "log10", "log1p", "log2",  "pow",    "rint",  "round", "roundeven",
      "sin",  "sinh",  "sqrt", "tan",   "tanh",  "trunc", "lgamma", "tgamma"};
  if (name.starts_with("llvm.") || name == "memcpy" || name == "memmove" || name == "memset")
    return true;
  return libm.contains(name) || (name.consume_back("f") && libm.contains(name));
}

/// Of a device: functions of NVIDIA's libdevice.
static bool isAllowedOnDevice(StringRef name) {
  return name.starts_with("llvm.") || name.starts_with("__nv_");
}

/// Whether the user has registered it for an op of the program.
static bool isOfLibrary(Operation *function, StringRef name) {
  auto libraries =
      function->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(exec::kLibrariesAttr);
  return libraries && llvm::any_of(libraries.getAsRange<ArrayAttr>(), [&](ArrayAttr entry) {
           return entry.size() == 3 && cast<StringAttr>(entry[1]).getValue() == name;
         });
}

void shardc::checkLoweredFunction(Operation *function, Violations &violations) {
  if (function->getNumRegions() != 1 || !function->getRegion(0).empty())
    return;
  auto name = function->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
  if (!name)
    return;
  if (isa<gpu::GPUModuleOp>(function->getParentOp())) {
    if (!isAllowedOnDevice(name.getValue()))
      violations.add(function->getLoc(),
                     "external function '" + name.getValue() +
                         "': code of a device may call functions of libdevice alone");
    return;
  }
  if (!isAllowedExternal(name.getValue()) && !isOfLibrary(function, name.getValue()))
    violations.add(
        function->getLoc(),
        "external function '" + name.getValue() +
            "': generated code may call libm, memcpy, memmove and memset, functions "
            "that 'exec.libraries' has, and reaches the runtime through its frame alone");
}
