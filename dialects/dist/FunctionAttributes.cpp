// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/FunctionAttributes.h"

#include "dialects/dist/Constraints.h"
#include "dialects/dist/FindMesh.h"
#include "dialects/dist/RandomMode.h"
#include "dialects/dist/Shardings.h"
#include "dialects/dist/TypicalSizes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

ArrayRef<StringLiteral> shardc::dist::argumentKinds() {
  static constexpr StringLiteral kinds[] = {"parameter", "buffer", "constant", "state", "input"};
  return kinds;
}

ArrayRef<StringLiteral> shardc::dist::resultKinds() {
  static constexpr StringLiteral kinds[] = {
      "output",         "loss",    "parameter_mutation", "buffer_mutation", "state_mutation",
      "input_mutation", "gradient"};
  return kinds;
}

bool shardc::dist::isStateUpdate(StringAttr kind) {
  return kind && kind.getValue().ends_with("_mutation") && kind.getValue() != "input_mutation";
}

SmallVector<StringRef> shardc::dist::getNames(DictionaryAttr attributes) {
  SmallVector<StringRef> names;
  Attribute value = attributes ? attributes.get(kNameAttr) : Attribute();
  if (auto name = dyn_cast_or_null<StringAttr>(value))
    names.push_back(name.getValue());
  else if (auto list = dyn_cast_or_null<ArrayAttr>(value))
    for (Attribute name : list)
      names.push_back(cast<StringAttr>(name).getValue());
  return names;
}

SmallVector<StringRef> shardc::dist::getTrainedNames(DictionaryAttr attributes) {
  SmallVector<StringRef> names = getNames(attributes);
  if (auto frozen = attributes ? attributes.getAs<ArrayAttr>(kFrozenAttr) : ArrayAttr())
    llvm::erase_if(names, [&](StringRef name) {
      return llvm::is_contained(frozen, StringAttr::get(frozen.getContext(), name));
    });
  return names;
}

int64_t shardc::dist::getOrdinal(Operation *op, int64_t place) {
  auto number = op->getAttrOfType<IntegerAttr>(kOrdinalAttr);
  return number ? number.getInt() : place;
}

SymbolAttr shardc::dist::findSymbol(FunctionOpInterface function, StringRef name) {
  auto symbols = function->getAttrOfType<ArrayAttr>(kSymbolsAttr);
  for (Attribute symbol : symbols ? symbols.getValue() : ArrayRef<Attribute>())
    if (auto declared = dyn_cast<SymbolAttr>(symbol); declared && declared.getName() == name)
      return declared;
  return {};
}

namespace {
/// One argument or result of a function with its attributes.
class AttributeVerifier {
public:
  AttributeVerifier(FunctionOpInterface function, bool isResult, unsigned index)
      : function(function), isResult(isResult), index(index),
        type(isResult ? function.getResultTypes()[index] : function.getArgumentTypes()[index]),
        attributes(isResult ? function.getResultAttrDict(index) : function.getArgAttrDict(index)) {}

  LogicalResult verify(NamedAttribute attribute);

private:
  InFlightDiagnostic error() {
    return function->emitOpError(isResult ? "result " : "argument ") << index << ": ";
  }
  LogicalResult verifyName(Attribute value);
  LogicalResult verifyKind(Attribute value);
  LogicalResult verifyFrozen(Attribute value);
  LogicalResult verifyInitial(Attribute value);
  LogicalResult verifyUnsaved(Attribute value);
  bool isState() {
    auto kind = attributes.getAs<StringAttr>(kKindAttr);
    return !isResult && kind && kind.getValue() == "state";
  }
  LogicalResult verifyAnnotation(Attribute value);
  LogicalResult verifyGlobalType(Attribute value);
  LogicalResult verifyLayout(Attribute value);
  LogicalResult verifySizes(Attribute value);
  LogicalResult verifyPerAxis(StringRef name, Attribute value, ArrayRef<StringLiteral> allowed);
  /// Of the whole tensor: `dist.global_type` where there is one; null for what is not a tensor.
  RankedTensorType getGlobalType();

  FunctionOpInterface function;
  bool isResult;
  unsigned index;
  Type type;
  DictionaryAttr attributes;
};
} // namespace

RankedTensorType AttributeVerifier::getGlobalType() {
  if (auto global = attributes.getAs<TypeAttr>(kGlobalTypeAttr))
    return dyn_cast<RankedTensorType>(global.getValue());
  return getDeliveredType(type);
}

LogicalResult AttributeVerifier::verifyName(Attribute value) {
  auto isName = [](Attribute name) {
    auto text = dyn_cast<StringAttr>(name);
    return text && !text.empty();
  };
  auto list = dyn_cast<ArrayAttr>(value);
  if (isName(value) || (list && !list.empty() && llvm::all_of(list, isName)))
    return success();
  return error() << "'dist.name' must be a name or a list of names, got " << value;
}

LogicalResult AttributeVerifier::verifyFrozen(Attribute value) {
  SmallVector<StringRef> names = getNames(attributes);
  auto isName = [&](Attribute name) {
    auto text = dyn_cast<StringAttr>(name);
    return text && llvm::is_contained(names, text.getValue());
  };
  auto list = dyn_cast<ArrayAttr>(value);
  if (isa<UnitAttr>(value) || (list && !list.empty() && llvm::all_of(list, isName)))
    return success();
  return error()
         << "'dist.frozen' must be a unit attribute, or a list of names in 'dist.name', got "
         << value;
}

LogicalResult AttributeVerifier::verifyInitial(Attribute value) {
  auto number = dyn_cast<FloatAttr>(value);
  if (number && number.getType().isF64() && isState())
    return success();
  return error() << "'dist.initial' must be a number (f64) of an argument of kind state, got "
                 << value;
}

LogicalResult AttributeVerifier::verifyUnsaved(Attribute value) {
  if (isa<UnitAttr>(value) && isState())
    return success();
  return error() << "'dist.unsaved' must be a unit attribute of an argument of kind state, got "
                 << value;
}

LogicalResult AttributeVerifier::verifyKind(Attribute value) {
  auto kind = dyn_cast<StringAttr>(value);
  ArrayRef<StringLiteral> kinds = isResult ? resultKinds() : argumentKinds();
  if (kind && !isResult && kind.getValue() == "state" && !attributes.contains(kInitialAttr))
    return error() << "an argument of kind state needs 'dist.initial'";
  if (kind && llvm::is_contained(kinds, kind.getValue()))
    return success();
  InFlightDiagnostic diagnostic = error() << "'dist.kind' must be one of ";
  llvm::interleaveComma(kinds, diagnostic);
  return diagnostic << "; got " << value;
}

LogicalResult AttributeVerifier::verifyAnnotation(Attribute value) {
  auto layout = dyn_cast<LayoutAttr>(value);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!layout || !tensor)
    return error() << "'dist.annotation' is a #dist.layout for a tensor, got " << value << " for "
                   << type;
  if (tensor.getEncoding())
    return error() << "'dist.annotation' asks for a layout, but the type already has one: "
                   << tensor;
  return layout.verifyAnnotation(tensor.getShape(),
                                 [&] { return error() << "'dist.annotation': "; });
}

LogicalResult AttributeVerifier::verifyGlobalType(Attribute value) {
  auto typeAttr = dyn_cast<TypeAttr>(value);
  auto global = dyn_cast_or_null<RankedTensorType>(typeAttr ? typeAttr.getValue() : Type());
  if (!global || global.getEncoding())
    return error() << "'dist.global_type' must be a tensor type without a layout, got " << value;
  RankedTensorType local = getDeliveredType(type);
  if (!local || local.getRank() != global.getRank() ||
      local.getElementType() != global.getElementType())
    return error() << "'dist.global_type' " << global << " differs in rank or element type from "
                   << type;
  if (!attributes.contains(kLayoutAttr))
    return error() << "'dist.global_type' needs 'dist.layout'";
  return success();
}

LogicalResult AttributeVerifier::verifyLayout(Attribute value) {
  auto layout = dyn_cast<LayoutAttr>(value);
  if (!layout)
    return error() << "'dist.layout' must be a #dist.layout, got " << value;
  if (!attributes.contains(kGlobalTypeAttr))
    return error() << "'dist.layout' needs 'dist.global_type'";
  RankedTensorType global = getGlobalType();
  if (!global)
    return success(); // reported for dist.global_type
  auto emitError = [&] { return error() << "'dist.layout': "; };
  return layout.verifyEncoding(global.getShape(), global.getElementType(), emitError);
}

LogicalResult AttributeVerifier::verifySizes(Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  RankedTensorType global = getGlobalType();
  if (!global)
    return error() << "'dist.sizes' is for tensors, got " << type;
  if (!list || static_cast<int64_t>(list.size()) != global.getRank())
    return error() << "'dist.sizes' must list one #dist.size for each of " << global.getRank()
                   << " dims, got " << value;
  for (auto [dim, entry] : llvm::enumerate(list)) {
    auto size = dyn_cast<SizeAttr>(entry);
    if (!size)
      return error() << "'dist.sizes': expected a #dist.size for dim " << dim << ", got " << entry;
    int64_t known = size.getConstant().value_or(ShapedType::kDynamic);
    if (known != global.getDimSize(dim))
      return error() << "'dist.sizes': " << size << " is not the size of dim " << dim << " of "
                     << global;
    for (StringAttr symbol : size.getSymbols())
      if (!findSymbol(function, symbol.getValue()))
        return error() << "'dist.sizes': the function's 'dist.symbols' does not declare " << symbol;
  }
  return success();
}

LogicalResult AttributeVerifier::verifyPerAxis(StringRef name, Attribute value,
                                               ArrayRef<StringLiteral> allowed) {
  auto entries = dyn_cast<ArrayAttr>(value);
  auto layout = attributes.getAs<LayoutAttr>(kAnnotationAttr);
  auto isAllowed = [&](Attribute entry) {
    auto text = dyn_cast<StringAttr>(entry);
    return text && (allowed.empty() || llvm::is_contained(allowed, text.getValue()));
  };
  if (!entries || !llvm::all_of(entries, isAllowed)) {
    InFlightDiagnostic diagnostic = error() << "'" << name << "' must be a list of strings";
    if (!allowed.empty()) {
      diagnostic << " out of ";
      llvm::interleaveComma(allowed, diagnostic);
    }
    return diagnostic << ", got " << value;
  }
  if (!layout || layout.getValue().placements.size() != entries.size())
    return error() << "'" << name << "' needs a 'dist.annotation', and one string per mesh axis";
  return success();
}

LogicalResult AttributeVerifier::verify(NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kNameAttr)
    return verifyName(value);
  if (name == kKindAttr)
    return verifyKind(value);
  if (name == kFrozenAttr)
    return verifyFrozen(value);
  if (name == kInitialAttr)
    return verifyInitial(value);
  if (name == kUnsavedAttr)
    return verifyUnsaved(value);
  if (name == kAnnotationAttr)
    return verifyAnnotation(value);
  if (name == kShardingAttr)
    return verifySharding(value, type, [&] { return error(); });
  if (name == kGlobalTypeAttr)
    return verifyGlobalType(value);
  if (name == kLayoutAttr)
    return verifyLayout(value);
  if (name == kSizesAttr)
    return verifySizes(value);
  if (name == kOriginAttr)
    return verifyPerAxis(name, value, {});
  if (name == kStrengthAttr)
    return verifyPerAxis(name, value, {"pinned", "normal", "weak"});
  return error() << "unknown attribute '" << name
                 << "'; known are dist.name, dist.kind, dist.initial, dist.unsaved, dist.frozen, "
                    "dist.annotation, dist.origin, dist.strength, "
                    "dist.sharding, dist.layout, dist.global_type and dist.sizes";
}

/// MLIR asks this of functions only.
static LogicalResult verifyOf(Operation *op, bool isResult, unsigned index,
                              NamedAttribute attribute) {
  return AttributeVerifier(cast<FunctionOpInterface>(op), isResult, index).verify(attribute);
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  return verifyOf(op, /*isResult=*/false, index, attribute);
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  return verifyOf(op, /*isResult=*/true, index, attribute);
}

static LogicalResult verifySymbols(Operation *op, Attribute value) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!isa<FunctionOpInterface>(op) || !list || !llvm::all_of(list, llvm::IsaPred<SymbolAttr>))
    return op->emitOpError("'dist.symbols' must be a function's list of #dist.symbol, got ")
           << value;
  llvm::StringSet<> names;
  for (auto symbol : list.getAsRange<SymbolAttr>())
    if (!names.insert(symbol.getName().getValue()).second)
      return op->emitOpError("'dist.symbols' declares ") << symbol.getName() << " twice";
  return success();
}

static LogicalResult verifyTrain(Operation *op, Attribute value) {
  if (isa<ModuleOp>(op) && isa<StringAttr>(value))
    return success();
  return op->emitOpError("'dist.train' must be a module's text, got ") << value;
}

static LogicalResult verifyTraining(Operation *op, Attribute value) {
  auto items = dyn_cast<DictionaryAttr>(value);
  bool ok = isa<ModuleOp>(op) && items && llvm::all_of(items, [](NamedAttribute item) {
              return isa<StringAttr, IntegerAttr>(item.getValue());
            });
  if (ok)
    return success();
  return op->emitOpError("'dist.training' must be a module's dictionary of text and numbers, got ")
         << value;
}

static LogicalResult verifyMeshes(Operation *op, Attribute value) {
  auto meshes = dyn_cast<DictionaryAttr>(value);
  if (!isa<ModuleOp>(op) || !meshes || !op->hasAttr(kMeshAttr) ||
      !llvm::all_of(meshes, [](NamedAttribute mesh) { return isa<MeshAttr>(mesh.getValue()); }))
    return op->emitOpError("'dist.meshes' must be a dictionary of #dist.mesh by name, on a module "
                           "with a 'dist.mesh', got ")
           << value;
  return success();
}

static LogicalResult verifyOrdinal(Operation *op, Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  if (number && number.getType().isInteger(64) && number.getInt() >= 0)
    return success();
  return op->emitOpError("'dist.ordinal' must be a number (i64) that is not negative, got ")
         << value;
}

static LogicalResult verifySpecializations(Operation *op, Attribute value) {
  auto entries = dyn_cast<DictionaryAttr>(value);
  std::optional<Mesh> world = isa<ModuleOp>(op) ? findWorld(cast<ModuleOp>(op)) : std::nullopt;
  if (!entries || !world)
    return op->emitOpError("'dist.specializations' must be a dictionary, on a module with a "
                           "'dist.mesh', got ")
           << value;
  for (NamedAttribute entry : entries) {
    auto variants = dyn_cast<VariantsAttr>(entry.getValue());
    if (!variants)
      return op->emitOpError("'dist.specializations': expected #dist.variants for ")
             << entry.getName() << ", got " << entry.getValue();
    if (static_cast<int64_t>(variants.getPositions().size()) != world->numDevices())
      return op->emitOpError("'dist.specializations': expected one position for each of ")
             << world->numDevices() << " devices, got " << variants.getPositions().size() << " for "
             << entry.getName();
  }
  return success();
}

static LogicalResult verifyAssumedSizes(Operation *op, Attribute value) {
  auto sizes = dyn_cast<DictionaryAttr>(value);
  bool ok = isa<ModuleOp>(op) && sizes && llvm::all_of(sizes, [](NamedAttribute size) {
              auto number = dyn_cast<IntegerAttr>(size.getValue());
              return number && number.getType().isInteger(64) && number.getInt() >= 0;
            });
  if (ok)
    return success();
  return op->emitOpError("'dist.assumed_sizes' must be a module's dictionary of numbers (i64) by "
                         "the names of symbols, got ")
         << value;
}

static LogicalResult verifyRandom(Operation *op, Attribute value) {
  auto mode = dyn_cast<StringAttr>(value);
  if (isa<ModuleOp>(op) && mode && parseRandomMode(mode.getValue()))
    return success();
  return op->emitOpError("'dist.random' must be a module's mode of random numbers, \"default\", "
                         "\"dtensor\" or \"per-rank\", got ")
         << value;
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kSymbolsAttr)
    return verifySymbols(op, attribute.getValue());
  if (name == kConstraintsAttr)
    return verifyConstraints(op, attribute.getValue());
  if (name == kSpecializationsAttr)
    return verifySpecializations(op, attribute.getValue());
  if (name == kAssumedSizesAttr)
    return verifyAssumedSizes(op, attribute.getValue());
  if (name == kTrainAttr)
    return verifyTrain(op, attribute.getValue());
  if (name == kRandomAttr)
    return verifyRandom(op, attribute.getValue());
  if (name == kTrainingAttr)
    return verifyTraining(op, attribute.getValue());
  if (name == kMeshesAttr)
    return verifyMeshes(op, attribute.getValue());
  if (name == kOrdinalAttr)
    return verifyOrdinal(op, attribute.getValue());
  if (name == kShardingAttr)
    return verifyShardings(op, attribute.getValue());
  if (name == kMeshAttr && (!isa<ModuleOp>(op) || !isa<MeshAttr>(attribute.getValue())))
    return op->emitOpError("'dist.mesh' must be a module's #dist.mesh, got ")
           << attribute.getValue();
  return success();
}
