// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/artifact/Description.h"

#include "dialects/exec/ElementTypes.h"
#include "dialects/exec/Exec.h"

#include "dialects/dist/Constraints.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/FindMesh.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/SignatureAttributes.h"
#include "passes/collectives/verify/Sequence.h"
#include "runtime/abi/shardrt_program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace mlir;

namespace shardc::artifact {
namespace {

llvm::json::Value expression(AffineExpr expr, ArrayRef<StringAttr> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()].getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return symbols[dim.getPosition()].getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  const char *name = "mod";
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    name = "add";
    break;
  case AffineExprKind::Mul:
    name = "mul";
    break;
  case AffineExprKind::FloorDiv:
    name = "floordiv";
    break;
  case AffineExprKind::CeilDiv:
    name = "ceildiv";
    break;
  default:
    break;
  }
  return llvm::json::Array{name, expression(binary.getLHS(), symbols),
                           expression(binary.getRHS(), symbols)};
}

/// The same of one in the form of dialects/dist/Constraints.h.
llvm::json::Value expression(Attribute expr) {
  if (auto integer = dyn_cast<IntegerAttr>(expr))
    return integer.getInt();
  if (auto symbol = dyn_cast<StringAttr>(expr))
    return symbol.getValue();
  auto parts = cast<ArrayAttr>(expr);
  return llvm::json::Array{cast<StringAttr>(parts[0]).getValue(), expression(parts[1]),
                           expression(parts[2])};
}

class Describer {
public:
  explicit Describer(ModuleOp module) : module(module) {}

  FailureOr<ProgramDescription> run();

private:
  void describeMesh();
  void describeEntry(func::FuncOp function, StringRef name, dist::VariantsAttr variants);
  TensorDescription describeTensor(func::FuncOp function, DictionaryAttr attributes, Type local,
                                   const std::string &fallback);
  void addParameters(func::FuncOp function);
  unsigned addParameter(func::FuncOp function, unsigned argument);
  void addSymbols(func::FuncOp function);
  InFlightDiagnostic error(func::FuncOp function) {
    failed = true;
    return function.emitOpError();
  }

  ModuleOp module;
  ProgramDescription program;
  Mesh mesh;
  Mesh world;                                      ///< the ranks that `dist.specializations` count
  llvm::DenseMap<Attribute, StringRef> nameOfMesh; ///< of the others
  llvm::StringMap<unsigned> parameterIndex;
  llvm::StringSet<> disagreeing; ///< parameters that entries describe differently
  llvm::StringSet<> knownSymbols;
  llvm::DenseSet<Attribute> knownConstraints;
  bool failed = false;
};

static llvm::json::Object meshJson(StringRef name, const Mesh &mesh) {
  llvm::json::Array axes;
  for (const MeshAxis &axis : mesh.axes)
    axes.push_back(llvm::json::Object{{"name", axis.name}, {"size", axis.size}});
  llvm::json::Object json{{"name", name}, {"axes", std::move(axes)}};
  if (!mesh.deviceIds.empty())
    json["devices"] = llvm::json::Array(mesh.deviceIds);
  return json;
}

void Describer::describeMesh() {
  if (auto attribute = module->getAttrOfType<dist::MeshAttr>(dist::kMeshAttr))
    mesh = attribute.getValue();
  world = dist::findWorld(module).value_or(mesh);
  program.mesh = meshJson("mesh", mesh);
  if (auto others = module->getAttrOfType<DictionaryAttr>(dist::kMeshesAttr))
    for (NamedAttribute other : others) {
      auto attribute = cast<dist::MeshAttr>(other.getValue());
      program.meshes.push_back(meshJson(other.getName().getValue(), attribute.getValue()));
      nameOfMesh.try_emplace(attribute, other.getName().getValue());
    }
  for (int64_t rank : world.ranks())
    program.worldSize = std::max(program.worldSize, rank + 1);
}

void Describer::addSymbols(func::FuncOp function) {
  auto list = function->getAttrOfType<ArrayAttr>(dist::kSymbolsAttr);
  if (!list)
    return;
  for (auto symbol : list.getAsRange<dist::SymbolAttr>())
    if (knownSymbols.insert(symbol.getName().getValue()).second) {
      llvm::json::Object entry{{"name", symbol.getName().getValue()}, {"min", symbol.getMin()}};
      if (!ShapedType::isDynamic(symbol.getMax()))
        entry["max"] = symbol.getMax();
      program.symbols.push_back(std::move(entry));
    }
  if (auto constraints = function->getAttrOfType<ArrayAttr>(dist::kConstraintsAttr))
    for (Attribute constraint : constraints)
      if (knownConstraints.insert(constraint).second) {
        auto parts = cast<ArrayAttr>(constraint);
        program.constraints.push_back(
            llvm::json::Object{{"relation", cast<StringAttr>(parts[0]).getValue()},
                               {"left", expression(parts[1])},
                               {"right", expression(parts[2])}});
      }
}

TensorDescription Describer::describeTensor(func::FuncOp function, DictionaryAttr attributes,
                                            Type local, const std::string &fallback) {
  TensorDescription result;
  auto get = [&](StringRef name) { return attributes ? attributes.get(name) : Attribute(); };
  if (attributes)
    for (StringRef name : dist::getNames(attributes))
      result.names.push_back(name.str());
  if (result.names.empty())
    result.names.push_back(fallback);
  RankedTensorType type = dist::getDeliveredType(local);
  if (!type) {
    error(function) << "'" << result.names.front() << "' is " << local
                    << ", but a program is described before its tensors get memory";
    return result;
  }
  if (auto global = dyn_cast_or_null<TypeAttr>(get(dist::kGlobalTypeAttr)))
    type = cast<RankedTensorType>(global.getValue());
  result.type = exec::runtimeType(type.getElementType());
  if (result.type == 0)
    error(function) << "'" << result.names.front() << "' has the element type "
                    << type.getElementType() << ", which the runtime does not have";
  auto sizes = dyn_cast_or_null<ArrayAttr>(get(dist::kSizesAttr));
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      result.shape.push_back(size);
    } else if (sizes && dim < sizes.size()) {
      auto symbolic = cast<dist::SizeAttr>(sizes[dim]);
      result.shape.push_back(expression(symbolic.getExpr(), symbolic.getSymbols()));
    } else {
      error(function) << "'" << result.names.front() << "' has the dynamic dim " << dim
                      << ", but no '" << dist::kSizesAttr << "' names its size";
    }
  }
  Layout layout;
  if (auto attribute = dyn_cast_or_null<dist::LayoutAttr>(get(dist::kLayoutAttr)))
    layout = attribute.getValue();
  else
    layout = Layout(mesh);
  result.layout = layout.str();
  if (!(layout.mesh == mesh)) {
    auto name = nameOfMesh.find(dist::MeshAttr::get(module.getContext(), layout.mesh));
    if (name == nameOfMesh.end())
      error(function) << "'" << result.names.front() << "' is on the mesh " << layout.mesh.str()
                      << ", which '" << dist::kMeshesAttr << "' of the module does not name";
    else
      result.mesh = name->second.str();
  }
  auto kind = dyn_cast_or_null<StringAttr>(get(dist::kKindAttr));
  result.kind = dist::isStateUpdate(kind) ? "state" : "user";
  return result;
}

/// Whether the function has parameters or buffers, none of which it reads.
static bool onlyWritesParameters(func::FuncOp function) {
  bool hasWeights = false;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto kind = function.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
    if (!kind || (kind.getValue() != "parameter" && kind.getValue() != "buffer"))
      continue;
    hasWeights = true;
    if (!function.getArgument(i).use_empty())
      return false;
  }
  return hasWeights;
}

static bool isInput(func::FuncOp function, unsigned argument) {
  auto kind = function.getArgAttrOfType<StringAttr>(argument, dist::kKindAttr);
  return !kind || kind.getValue() == "input";
}

/// Returns its index in the program's parameters.
unsigned Describer::addParameter(func::FuncOp function, unsigned argument) {
  TensorDescription tensor = describeTensor(function, function.getArgAttrDict(argument),
                                            function.getArgumentTypes()[argument],
                                            "parameter_" + std::to_string(argument));
  auto [it, inserted] = parameterIndex.try_emplace(tensor.names.front(), program.parameters.size());
  if (!inserted) {
    const ParameterDescription &known = program.parameters[it->second];
    bool agrees =
        known.layout == tensor.layout && known.type == tensor.type && known.shape == tensor.shape;
    // The variants of an entry differ alike: one of them says so.
    if (agrees || !disagreeing.insert(tensor.names.front()).second)
      return it->second;
    failed = true;
    InFlightDiagnostic diagnostic = function.emitError()
                                    << "entry '" << function.getName() << "' has the parameter '"
                                    << tensor.names.front() << "' ";
    if (known.layout != tensor.layout)
      diagnostic << "in the layout " << tensor.layout << ", and an entry before it in "
                 << known.layout << ": annotate it in both alike";
    else
      diagnostic << "in another element type or shape than an entry before it";
    return it->second;
  }
  ParameterDescription parameter;
  static_cast<TensorDescription &>(parameter) = std::move(tensor);
  auto kind = function.getArgAttrOfType<StringAttr>(argument, dist::kKindAttr);
  parameter.isConstant = kind && kind.getValue() == "constant";
  if (auto initial = function.getArgAttrOfType<FloatAttr>(argument, dist::kInitialAttr))
    parameter.initial = initial.getValueAsDouble();
  parameter.isSaved = !function.getArgAttr(argument, dist::kUnsavedAttr);
  if (!parameter.mesh.empty())
    error(function) << "has the parameter '" << parameter.names.front() << "' on the mesh '"
                    << parameter.mesh
                    << "', but parameters are on the mesh of the program: redistribute it";
  program.parameters.push_back(std::move(parameter));
  return it->second;
}

void Describer::addParameters(func::FuncOp function) {
  OpBuilder b(function.getContext());
  dist::SignatureAttributes signature(function);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (!isInput(function, i))
      signature.argument(i).set(exec::kIndexAttr, b.getI64IntegerAttr(addParameter(function, i)));
  signature.store();
}

void Describer::describeEntry(func::FuncOp function, StringRef name, dist::VariantsAttr variants) {
  EntryDescription entry;
  entry.name = name.str();
  if (auto timeline = function->getAttrOfType<DictionaryAttr>(kTimelineAttr)) {
    entry.predicted = predictionOf(timeline);
    if (!entry.predicted)
      error(function) << "has a '" << kTimelineAttr
                      << "' that is not what dist-predict-timeline writes";
  }
  addSymbols(function);
  addParameters(function);
  bool onlyWrites = onlyWritesParameters(function);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (isInput(function, i))
      entry.inputs.push_back(describeTensor(function, function.getArgAttrDict(i),
                                            function.getArgumentTypes()[i],
                                            "input_" + std::to_string(entry.inputs.size())));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    entry.outputs.push_back(describeTensor(function, function.getResultAttrDict(i),
                                           function.getResultTypes()[i],
                                           "output_" + std::to_string(i)));
  llvm::StringSet<> inputNames, outputNames;
  for (const TensorDescription &input : entry.inputs)
    if (!inputNames.insert(input.names.front()).second)
      error(function) << "has two inputs called '" << input.names.front() << "'";
  for (const TensorDescription &output : entry.outputs)
    if (output.kind == "user" && !outputNames.insert(output.names.front()).second)
      error(function) << "has two outputs called '" << output.names.front() << "'";
  for (TensorDescription &output : entry.outputs)
    if (output.kind == "state") {
      auto it = parameterIndex.find(output.names.front());
      if (it == parameterIndex.end())
        error(function) << "updates '" << output.names.front() << "', which is no parameter";
      else
        program.parameters[it->second].isMutable = true;
    }
  entry.variantOfRank.assign(program.worldSize, SHARDRT_NO_VARIANT);
  for (auto [position, rank] : llvm::enumerate(world.ranks()))
    entry.variantOfRank[rank] = variants ? variants.getPositions()[position] : 0;
  if (!variants) {
    entry.variants.push_back(function.getName().str());
  } else {
    for (FlatSymbolRefAttr variant : variants.getFunctions()) {
      entry.variants.push_back(variant.getValue().str());
      auto other = module.lookupSymbol<func::FuncOp>(variant.getAttr());
      if (!other || other == function)
        continue;
      addSymbols(other);
      addParameters(other);
      onlyWrites &= onlyWritesParameters(other);
    }
  }
  entry.readsParameters = !onlyWrites;
  program.entries.push_back(std::move(entry));
}

/// Variants of one function have one.
static std::string verifiedSequences(ModuleOp module) {
  std::set<std::string> hashes;
  for (auto function : module.getOps<func::FuncOp>())
    if (auto hash = function->getAttrOfType<StringAttr>(dist::kSequenceHashAttr))
      hashes.insert(hash.str());
  return llvm::join(hashes, " ");
}

FailureOr<ProgramDescription> Describer::run() {
  describeMesh();
  program.sequenceHashes = verifiedSequences(module);
  if (auto training = module->getAttrOfType<DictionaryAttr>(dist::kTrainingAttr))
    for (NamedAttribute item : training) {
      if (auto text = dyn_cast<StringAttr>(item.getValue()))
        program.training[item.getName().getValue()] = text.getValue();
      else
        program.training[item.getName().getValue()] = cast<IntegerAttr>(item.getValue()).getInt();
    }
  auto specializations = module->getAttrOfType<DictionaryAttr>(dist::kSpecializationsAttr);
  llvm::MapVector<StringRef, std::pair<StringRef, dist::VariantsAttr>> first; // by first variant
  llvm::DenseSet<StringRef> other;
  if (specializations)
    for (NamedAttribute entry : specializations) {
      auto variants = cast<dist::VariantsAttr>(entry.getValue());
      for (FlatSymbolRefAttr variant : variants.getFunctions())
        other.insert(variant.getValue());
      first[variants.getFunctions().front().getValue()] = {entry.getName(), variants};
    }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration() || function->hasAttr(exec::kKernelAttr))
      continue;
    auto it = first.find(function.getName());
    if (it != first.end())
      describeEntry(function, it->second.first, it->second.second);
    else if (!other.contains(function.getName()))
      describeEntry(function, function.getName(), {});
  }
  if (program.entries.empty()) {
    failed = true;
    module.emitError("the module has no function to compile");
  }
  if (failed)
    return failure();
  return std::move(program);
}

llvm::json::Object tensorJson(const TensorDescription &tensor) {
  llvm::json::Object json{{"name", tensor.names.front()},
                          {"type", exec::typeName(tensor.type)},
                          {"shape", llvm::json::Array(tensor.shape)},
                          {"layout", tensor.layout}};
  if (!tensor.mesh.empty())
    json["mesh"] = tensor.mesh;
  return json;
}

} // namespace

FailureOr<ProgramDescription> describeProgram(ModuleOp module) { return Describer(module).run(); }

std::string manifestJson(const ProgramDescription &program, const CompiledFacts &facts) {
  llvm::json::Array parameters, entries;
  for (const ParameterDescription &parameter : program.parameters) {
    llvm::json::Object object = tensorJson(parameter);
    object.erase("name");
    object["names"] = llvm::json::Array(parameter.names);
    object["source"] = parameter.constant ? "constant" : parameter.initial ? "state" : "weights";
    if (parameter.initial) {
      object["initial"] = *parameter.initial;
      object["saved"] = parameter.isSaved;
    }
    object["mutable"] = parameter.isMutable;
    parameters.push_back(std::move(object));
  }
  for (const EntryDescription &entry : program.entries) {
    llvm::json::Array inputs, outputs, arena, memory;
    for (const TensorDescription &input : entry.inputs)
      inputs.push_back(tensorJson(input));
    for (const TensorDescription &output : entry.outputs) {
      llvm::json::Object object = tensorJson(output);
      object["kind"] = output.kind;
      if (output.kind == "state")
        object["updates"] = output.names.front();
      outputs.push_back(std::move(object));
    }
    for (const std::string &variant : entry.variants) {
      arena.push_back(facts.arenaBytes(variant));
      if (std::optional<MemoryFacts> bytes = facts.memory(variant))
        memory.push_back(llvm::json::Object{{"parameter_bytes", bytes->parameters},
                                            {"state_bytes", bytes->states},
                                            {"arena_bytes", bytes->arena},
                                            {"caller_bytes", bytes->caller}});
      else
        memory.push_back(nullptr);
    }
    llvm::json::Object object{{"name", entry.name},
                              {"inputs", std::move(inputs)},
                              {"outputs", std::move(outputs)},
                              {"arena_bytes", std::move(arena)},
                              {"memory", std::move(memory)}};
    if (!entry.readsParameters)
      object["reads_parameters"] = false;
    if (const std::optional<Prediction> &predicted = entry.predicted)
      object["predicted"] = llvm::json::Object{{"cost_model", predicted->costModel},
                                               {"step_us", predicted->stepUs},
                                               {"exposed_us", predicted->exposedUs},
                                               {"peak_bytes", predicted->peakBytes}};
    entries.push_back(std::move(object));
  }
  llvm::json::Array libraries;
  if (facts.usesBlas)
    libraries.push_back("blas");
  llvm::json::Object json{{"format", 1},
                          {"tool", facts.tool},
                          {"name", program.name},
                          {"artifact_hash", facts.artifactHash},
                          {"sequence_hash", facts.sequenceHash},
                          {"target", llvm::json::Object(facts.target)},
                          {"world_size", program.worldSize},
                          {"mesh", llvm::json::Object(program.mesh)},
                          {"symbols", llvm::json::Array(program.symbols)},
                          {"constraints", llvm::json::Array(program.constraints)},
                          {"parameters", std::move(parameters)},
                          {"libraries", std::move(libraries)},
                          {"entries", std::move(entries)}};
  if (!program.training.empty())
    json["training"] = llvm::json::Object(program.training);
  if (!program.meshes.empty())
    json["meshes"] = llvm::json::Array(program.meshes);
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << llvm::json::Value(std::move(json));
  return text;
}

} // namespace shardc::artifact
