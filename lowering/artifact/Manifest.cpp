// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/artifact/Manifest.h"

#include "dialects/dist/FunctionAttributes.h"

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace shardc::artifact {
namespace {

llvm::json::Value dimExpression(AffineExpr expr, ArrayRef<StringAttr> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()].getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return symbols[dim.getPosition()].getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  StringRef name = binary.getKind() == AffineExprKind::Add        ? "add"
                   : binary.getKind() == AffineExprKind::Mul      ? "mul"
                   : binary.getKind() == AffineExprKind::Mod      ? "mod"
                   : binary.getKind() == AffineExprKind::FloorDiv ? "floordiv"
                                                                  : "ceildiv";
  return llvm::json::Array{name, dimExpression(binary.getLHS(), symbols),
                           dimExpression(binary.getRHS(), symbols)};
}

/// The runtime's name of an element type; empty where it has none.
StringRef elementTypeName(Type type) {
  if (type.isF32())
    return "f32";
  if (type.isF64())
    return "f64";
  if (type.isF16())
    return "f16";
  if (type.isBF16())
    return "bf16";
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return "";
  switch (integer.getWidth()) {
  case 1:
    return "bool";
  case 8:
    return integer.isUnsigned() ? "u8" : "i8";
  case 16:
    return integer.isUnsigned() ? "" : "i16";
  case 32:
    return integer.isUnsigned() ? "" : "i32";
  case 64:
    return integer.isUnsigned() ? "" : "i64";
  default:
    return "";
  }
}

class Describer {
public:
  explicit Describer(ModuleOp module) : module(module) {}

  FailureOr<ProgramInterface> run() {
    auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr);
    if (!mesh)
      return module.emitError("the program has no 'dist.mesh'"), failure();
    result.mesh = mesh.getValue();
    auto specializations = module->getAttrOfType<DictionaryAttr>(dist::kSpecializationsAttr);
    if (!specializations || specializations.empty())
      return module.emitError("the program was not specialised; run dist-specialize first"),
             failure();
    for (NamedAttribute entry : specializations)
      addEntry(entry.getName(), cast<dist::VariantsAttr>(entry.getValue()));
    if (hasFailed)
      return failure();
    llvm::raw_string_ostream(result.sequenceHash)
        << llvm::format_hex_no_prefix(llvm::xxh3_64bits(sequence), 16);
    return std::move(result);
  }

private:
  void addEntry(StringAttr name, dist::VariantsAttr variants) {
    EntryInterface entry;
    entry.name = name.getValue().str();
    for (FlatSymbolRefAttr variant : variants.getFunctions())
      entry.variants.push_back(variant.getValue().str());
    int64_t world = 0;
    for (int64_t position = 0, e = result.mesh.numDevices(); position < e; ++position)
      world = std::max(world, result.mesh.rankAtPosition(position) + 1);
    entry.variantOfRank.assign(world, kNoVariant);
    for (auto [position, variant] : llvm::enumerate(variants.getPositions()))
      entry.variantOfRank[result.mesh.rankAtPosition(position)] = static_cast<uint32_t>(variant);

    auto function = module.lookupSymbol<func::FuncOp>(entry.variants.front());
    if (!function) {
      module.emitError("there is no function '") << entry.variants.front() << "'";
      hasFailed = true;
      return;
    }
    addSymbols(function);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      addArgument(function, i, entry);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      addResult(function, i, entry);
    addSequence(function);
    result.entries.push_back(std::move(entry));
  }

  void addSymbols(func::FuncOp function) {
    auto symbols = function->getAttrOfType<ArrayAttr>(dist::kSymbolsAttr);
    if (!symbols || !result.symbols.empty())
      return;
    for (auto symbol : symbols.getAsRange<dist::SymbolAttr>()) {
      llvm::json::Object entry{{"name", symbol.getName().getValue()}, {"min", symbol.getMin()}};
      if (!ShapedType::isDynamic(symbol.getMax()))
        entry["max"] = symbol.getMax();
      result.symbols.push_back(std::move(entry));
    }
  }

  /// Type, shape and layout of an argument or result, in the manifest's words.
  llvm::json::Object describe(DictionaryAttr attributes, Location location) {
    auto global = attributes.getAs<TypeAttr>(dist::kGlobalTypeAttr);
    auto layout = attributes.getAs<dist::LayoutAttr>(dist::kLayoutAttr);
    auto type = global ? dyn_cast<RankedTensorType>(global.getValue()) : RankedTensorType();
    if (!type || !layout) {
      emitError(location,
                "an argument or result of an entry does not say its global type and layout");
      hasFailed = true;
      return {};
    }
    StringRef element = elementTypeName(type.getElementType());
    if (element.empty()) {
      emitError(location) << "the runtime has no tensors of " << type.getElementType();
      hasFailed = true;
    }
    llvm::json::Array shape;
    auto sizes = attributes.getAs<ArrayAttr>(dist::kSizesAttr);
    for (int64_t d = 0; d < type.getRank(); ++d) {
      if (!type.isDynamicDim(d)) {
        shape.push_back(type.getDimSize(d));
      } else if (auto size = sizes ? dyn_cast<dist::SizeAttr>(sizes[d]) : dist::SizeAttr()) {
        shape.push_back(dimExpression(size.getExpr(), size.getSymbols()));
      } else {
        emitError(location) << "dim " << d << " of " << type << " has no 'dist.sizes'";
        hasFailed = true;
      }
    }
    return llvm::json::Object{
        {"type", element}, {"shape", std::move(shape)}, {"layout", layout.getValue().str()}};
  }

  void addArgument(func::FuncOp function, unsigned number, EntryInterface &entry) {
    DictionaryAttr attributes = function.getArgAttrDict(number);
    if (!attributes) {
      function.emitError() << "argument " << number << " does not say what it is";
      hasFailed = true;
      return;
    }
    llvm::json::Object json = describe(attributes, function.getArgument(number).getLoc());
    SmallVector<StringRef> names = dist::getNames(attributes);
    auto kind = attributes.getAs<StringAttr>(dist::kKindAttr);
    if (names.empty())
      names.push_back(entry.name);
    if (!kind || kind.getValue() == "input") {
      json["name"] = names.front();
      entry.inputs.push_back(std::move(json));
      entry.inputArguments.push_back(number);
      return;
    }
    entry.parameterArguments.push_back(number);
    llvm::json::Array nameList;
    for (StringRef name : names)
      nameList.push_back(name);
    json["names"] = std::move(nameList);
    if (kind.getValue() == "constant") {
      json["source"] = "constant";
      result.constants.push_back(names.front().str());
    }
    json["mutable"] = isMutated(function, names);
    if (result.entries.empty())
      result.parameters.push_back(std::move(json));
  }

  static bool isMutation(StringAttr kind) { return kind && kind.getValue() == "buffer_mutation"; }

  static bool isMutated(func::FuncOp function, ArrayRef<StringRef> names) {
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (isMutation(function.getResultAttrOfType<StringAttr>(i, dist::kKindAttr)))
        for (StringRef target : dist::getNames(function.getResultAttrDict(i)))
          if (llvm::is_contained(names, target))
            return true;
    return false;
  }

  void addResult(func::FuncOp function, unsigned number, EntryInterface &entry) {
    DictionaryAttr attributes = function.getResultAttrDict(number);
    if (!attributes) {
      function.emitError() << "result " << number << " does not say its global type and layout";
      hasFailed = true;
      return;
    }
    llvm::json::Object json = describe(attributes, function.getLoc());
    SmallVector<StringRef> names = dist::getNames(attributes);
    std::string name = names.empty() ? "output_" + std::to_string(number) : names.front().str();
    json["name"] = name;
    bool mutation = isMutation(attributes.getAs<StringAttr>(dist::kKindAttr));
    json["kind"] = mutation ? "state" : "user";
    if (mutation)
      json["updates"] = name;
    entry.outputs.push_back(std::move(json));
  }

  /// Everything about a collective that all ranks must agree on.
  void addSequence(func::FuncOp function) {
    llvm::raw_string_ostream os(sequence);
    function.walk([&](dist::CollectiveOpInterface op) {
      os << dist::stringifyCollectiveKind(op.getCollectiveKind()) << " "
         << op.getGroup().getCanonicalGroup();
      if (std::optional<Reduction> reduction = op.getReductionOrNone())
        os << " " << reductionName(*reduction);
      for (unsigned t = 0; t < op.getTensors().size(); ++t)
        os << " " << op.getOperandType(t).getElementType() << "/" << op.getOperandType(t).getRank()
           << "/" << op.getConcatDim(t) << "/" << op.getSplitDim(t);
      os << "\n";
    });
  }

  ModuleOp module;
  ProgramInterface result;
  std::string sequence;
  bool hasFailed = false;
};

} // namespace

FailureOr<ProgramInterface> describeProgram(ModuleOp module) { return Describer(module).run(); }

std::string buildManifest(const ProgramInterface &program, const ManifestFacts &facts) {
  llvm::json::Array axes;
  for (const MeshAxis &axis : program.mesh.axes)
    axes.push_back(llvm::json::Object{{"name", axis.name}, {"size", axis.size}});
  llvm::json::Object mesh{{"name", "mesh"}, {"axes", std::move(axes)}};
  if (!program.mesh.deviceIds.empty())
    mesh["devices"] = llvm::json::Array(program.mesh.deviceIds);
  llvm::json::Array entries;
  for (auto [e, entry] : llvm::enumerate(program.entries)) {
    llvm::json::Array arena;
    for (uint64_t bytes : facts.arenaBytes[e])
      arena.push_back(static_cast<int64_t>(bytes));
    entries.push_back(llvm::json::Object{{"name", entry.name},
                                         {"inputs", llvm::json::Array(entry.inputs)},
                                         {"outputs", llvm::json::Array(entry.outputs)},
                                         {"arena_bytes", std::move(arena)}});
  }
  llvm::json::Object manifest{
      {"format", 1},
      {"tool", facts.tool},
      {"name", facts.modelName},
      {"artifact_hash", facts.artifactHash},
      {"sequence_hash", program.sequenceHash},
      {"target", llvm::json::Object{{"kind", "cpu"},
                                    {"triple", facts.triple},
                                    {"cpu", facts.cpu},
                                    {"features", llvm::json::Array(facts.features)}}},
      {"world_size", static_cast<int64_t>(program.entries.front().variantOfRank.size())},
      {"mesh", std::move(mesh)},
      {"symbols", llvm::json::Array(program.symbols)},
      {"parameters", llvm::json::Array(program.parameters)},
      {"entries", std::move(entries)}};
  if (facts.usesBlas)
    manifest["libraries"] = llvm::json::Array{"blas"};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(manifest));
  return text;
}

} // namespace shardc::artifact
