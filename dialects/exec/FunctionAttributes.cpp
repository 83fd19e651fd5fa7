// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifies the attributes of FunctionAttributes.h.

#include "dialects/exec/EntryArguments.h"
#include "dialects/exec/Exec.h"
#include "dialects/exec/Overwrites.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::exec;

namespace {

bool isCount(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= 0;
}

bool isMemory(Attribute value) {
  auto fields = dyn_cast<DictionaryAttr>(value);
  if (!fields)
    return false;
  Attribute caller = fields.get("caller"), arena = fields.get("arena");
  return fields.getAs<DenseI64ArrayAttr>("parameters") && caller && isCount(caller) && arena &&
         isCount(arena) && fields.getAs<ArrayAttr>("peak");
}

bool isPlan(Operation *op, Attribute value) {
  // An entry names its plan function; a plan function says that it is one.
  return op->hasAttr(kEntryAttr) ? isa<FlatSymbolRefAttr>(value) : isa<UnitAttr>(value);
}

bool isInPlace(Operation *op, Attribute value) {
  // A kernel names arguments; an entry says that it is so.
  return op->hasAttr(kEntryAttr) ? isa<UnitAttr>(value) : isa<DenseI64ArrayAttr>(value);
}

bool isFunction(Operation *op) { return isa<FunctionOpInterface>(op); }
bool isModule(Operation *op) { return isa<ModuleOp>(op); }
bool isCall(Operation *op) { return isa<CallOpInterface>(op); }

/// An attribute: where it stands, and what it is there.
struct Known {
  StringLiteral name;
  bool (*mayStandOn)(Operation *);
  StringLiteral where;
  bool (*isValid)(Operation *, Attribute);
  StringLiteral what;
};

template <typename... Kinds> bool isOneOf(Operation *, Attribute value) {
  return isa<Kinds...>(value);
}

constexpr Known known[] = {
    {kEntryAttr, isFunction, "function", isOneOf<UnitAttr>, "unit"},
    {kKernelAttr, isFunction, "function", isOneOf<UnitAttr>, "unit"},
    {kOverwritesAttr, isFunction, "function", isOneOf<UnitAttr>, "unit"},
    {kWritesAttr, isFunction, "function", isOneOf<DenseI64ArrayAttr>, "list of argument numbers"},
    {kInPlaceAttr, isFunction, "function", isInPlace,
     "list of argument numbers, or on an entry a unit"},
    {kOutlinedAttr, isFunction, "function", isOneOf<UnitAttr>, "unit"},
    {kArenaBytesAttr, isFunction, "function",
     [](Operation *, Attribute value) { return isCount(value); }, "64-bit integer of at least 0"},
    {kSlotsAttr, isFunction, "function",
     [](Operation *, Attribute value) { return isCount(value); }, "64-bit integer of at least 0"},
    {kPlanAttr, isFunction, "function", isPlan,
     "unit, or on an entry the name of its plan function"},
    {kMemoryAttr, isFunction, "function",
     [](Operation *, Attribute value) { return isMemory(value); },
     "dictionary of 'parameters', 'caller', 'arena' and 'peak'"},
    {kMessagesAttr, isFunction, "function", isOneOf<ArrayAttr>, "list of strings"},
    {kSharedBytesAttr, isFunction, "function",
     [](Operation *, Attribute value) { return isCount(value); }, "64-bit integer of at least 0"},
    {kNameAttr, isCall, "call", isOneOf<StringAttr>, "string"},
    {kGroupsAttr, isModule, "module", isOneOf<ArrayAttr>, "list"},
    {kCollectivesAttr, isModule, "module", isOneOf<ArrayAttr>, "list"},
    {kLibrariesAttr, isModule, "module", isOneOf<ArrayAttr>, "list"},
    {kOpsAttr, isModule, "module", isOneOf<ArrayAttr>, "list"},
    {kProgramAttr, isModule, "module", isOneOf<DictionaryAttr>, "dictionary"},
    {kUsesBlasAttr, isModule, "module", isOneOf<UnitAttr>, "unit"},
};

/// What every pass over entries relies on. (Once it is code, LLVM's dialect has its own rules.)
LogicalResult verifyEntry(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function)
    return success();
  if (op->hasAttr(kKernelAttr))
    return op->emitOpError("is both an entry and a kernel");
  if (function.isExternal())
    return op->emitOpError("is an entry without a body");
  if (!function.getBody().hasOneBlock())
    return op->emitOpError("is an entry with several blocks, but entries are straight-line code");
  return success();
}

LogicalResult verifyExtents(Operation *op, unsigned argument, Type type, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  auto shaped = dyn_cast<ShapedType>(type);
  if (list && shaped && shaped.hasRank() && static_cast<int64_t>(list.size()) == shaped.getRank() &&
      llvm::all_of(list, llvm::IsaPred<dist::ExtentsAttr>))
    return success();
  return op->emitOpError("argument ")
         << argument << ": 'exec.extents' must list one #dist.extents for each dim of " << type
         << ", got " << value;
}

/// The new value of another argument, which is a parameter of the same type.
LogicalResult verifyUpdates(Operation *op, unsigned argument, Attribute value) {
  auto function = cast<FunctionOpInterface>(op);
  auto kindOf = [&](unsigned number) {
    return function.getArgAttrOfType<ArgumentKindAttr>(number, kArgumentAttr);
  };
  auto isA = [&](unsigned number, ArgumentKind kind) {
    return kindOf(number) && kindOf(number).getValue() == kind;
  };
  auto number = dyn_cast<IntegerAttr>(value);
  if (number && isCount(value) && number.getInt() < function.getNumArguments() &&
      isA(argument, ArgumentKind::Output) && isA(number.getInt(), ArgumentKind::Parameter) &&
      function.getArgumentTypes()[number.getInt()] == function.getArgumentTypes()[argument]) {
    for (unsigned other = 0; other < argument; ++other)
      if (function.getArgAttr(other, kUpdatesAttr) == value)
        return op->emitOpError("argument ") << argument << ": parameter " << number.getInt()
                                            << " gets its new value from argument " << other;
    return success();
  }
  return op->emitOpError("argument ")
         << argument << ": 'exec.updates' must be on an output the number of a parameter of type "
         << function.getArgumentTypes()[argument] << ", got " << value;
}

} // namespace

LogicalResult exec::verifyEntryArguments(FunctionOpInterface entry) {
  LogicalResult result = success();
  for (auto [number, type] : llvm::enumerate(entry.getArgumentTypes()))
    if (!isa<MemRefType>(type))
      result = entry.emitOpError("is an entry, but argument ")
               << number << " is no memory: " << type;
    else if (!entry.getArgAttr(number, kArgumentAttr))
      result = entry.emitOpError("is an entry, but does not say with '")
               << kArgumentAttr << "' what argument " << number << " is";
  return result;
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  for (const Known &entry : known) {
    if (attribute.getName() != entry.name)
      continue;
    if (!entry.mayStandOn(op))
      return op->emitOpError("'") << entry.name << "' belongs on a " << entry.where;
    if (!entry.isValid(op, attribute.getValue()))
      return op->emitOpError("'") << entry.name << "' must be a " << entry.what << ", got "
                                  << attribute.getValue();
    return entry.name == kEntryAttr ? verifyEntry(op) : success();
  }
  InFlightDiagnostic error = op->emitOpError("unknown attribute ")
                             << attribute.getName() << "; known are ";
  llvm::interleaveComma(known, error, [&](const Known &entry) { error << entry.name; });
  return error;
}

LogicalResult ExecDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  Type type = cast<FunctionOpInterface>(op).getArgumentTypes()[index];
  if (name == kArgumentAttr) {
    if (isa<ArgumentKindAttr>(value))
      return success();
    return op->emitOpError("argument ")
           << index << ": 'exec.argument' must be an #exec.argument, got " << value;
  }
  if (name == kIndexAttr) {
    if (isCount(value))
      return success();
    return op->emitOpError("argument ")
           << index << ": 'exec.index' must be a 64-bit integer of at least 0, got " << value;
  }
  if (name == kExtentsAttr)
    return verifyExtents(op, index, type, value);
  if (name == kUpdatesAttr)
    return verifyUpdates(op, index, value);
  return op->emitOpError("argument ")
         << index << ": unknown attribute '" << name
         << "'; known are exec.argument, exec.index, exec.extents and exec.updates";
}

LogicalResult ExecDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  return op->emitOpError("result ") << index << ": unknown attribute " << attribute.getName();
}
