// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program's description as an attribute of its module, so that a lowered program that was printed
// is still one.

#include "lowering/artifact/Description.h"

#include "dialects/exec/FunctionAttributes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace shardc::artifact {
namespace {

class Writer {
public:
  explicit Writer(MLIRContext *context) : b(context) {}

  DictionaryAttr write(const ProgramDescription &program) {
    return dictionary(
        {{"constraints", json(llvm::json::Value(llvm::json::Array(program.constraints)))},
         {"entries", list(program.entries)},
         {"mesh", json(llvm::json::Value(llvm::json::Object(program.mesh)))},
         {"meshes", program.meshes.empty()
                        ? Attribute()
                        : json(llvm::json::Value(llvm::json::Array(program.meshes)))},
         {"parameters", list(program.parameters)},
         {"sequences", b.getStringAttr(program.sequenceHashes)},
         {"symbols", json(llvm::json::Value(llvm::json::Array(program.symbols)))},
         {"training", program.training.empty()
                          ? Attribute()
                          : json(llvm::json::Value(llvm::json::Object(program.training)))},
         {"world_size", b.getI64IntegerAttr(program.worldSize)}});
  }

private:
  DictionaryAttr dictionary(ArrayRef<std::pair<StringRef, Attribute>> entries) {
    NamedAttrList list;
    for (auto [name, value] : entries)
      if (value)
        list.set(name, value);
    return list.getDictionary(b.getContext());
  }
  template <typename T> ArrayAttr list(const std::vector<T> &items) {
    SmallVector<Attribute> attributes;
    for (const T &item : items)
      attributes.push_back(write(item));
    return b.getArrayAttr(attributes);
  }
  Attribute write(const std::string &text) { return b.getStringAttr(text); }
  Attribute write(const TensorDescription &tensor) {
    return dictionary({{"kind", tensor.kind.empty() ? Attribute() : b.getStringAttr(tensor.kind)},
                       {"layout", b.getStringAttr(tensor.layout)},
                       {"mesh", tensor.mesh.empty() ? Attribute() : b.getStringAttr(tensor.mesh)},
                       {"names", list(tensor.names)},
                       {"shape", json(llvm::json::Value(llvm::json::Array(tensor.shape)))},
                       {"type", b.getI32IntegerAttr(tensor.type)}});
  }
  Attribute write(const ParameterDescription &parameter) {
    NamedAttrList attributes(
        cast<DictionaryAttr>(write(static_cast<const TensorDescription &>(parameter))));
    attributes.set("constant", b.getBoolAttr(parameter.isConstant));
    attributes.set("mutable", b.getBoolAttr(parameter.isMutable));
    if (parameter.initial) {
      attributes.set("initial", b.getF64FloatAttr(*parameter.initial));
      attributes.set("saved", b.getBoolAttr(parameter.isSaved));
    }
    return attributes.getDictionary(b.getContext());
  }
  Attribute write(const EntryDescription &entry) {
    SmallVector<int32_t> variantOfRank(entry.variantOfRank.begin(), entry.variantOfRank.end());
    return dictionary(
        {{"inputs", list(entry.inputs)},
         {"name", b.getStringAttr(entry.name)},
         {"outputs", list(entry.outputs)},
         {"predicted",
          entry.predicted ? toAttribute(b.getContext(), *entry.predicted) : DictionaryAttr()},
         {"reads_parameters", entry.readsParameters ? Attribute() : b.getBoolAttr(false)},
         {"variant_of_rank", b.getDenseI32ArrayAttr(variantOfRank)},
         {"variants", list(entry.variants)}});
  }

  /// Of numbers that are whole, text, lists and objects.
  Attribute json(const llvm::json::Value &value) {
    if (const llvm::json::Array *array = value.getAsArray()) {
      SmallVector<Attribute> items;
      for (const llvm::json::Value &item : *array)
        items.push_back(json(item));
      return b.getArrayAttr(items);
    }
    if (const llvm::json::Object *object = value.getAsObject()) {
      NamedAttrList list;
      for (const auto &[name, item] : *object)
        list.set(StringRef(name), json(item));
      return list.getDictionary(b.getContext());
    }
    if (std::optional<int64_t> number = value.getAsInteger())
      return b.getI64IntegerAttr(*number);
    return b.getStringAttr(*value.getAsString());
  }

  Builder b;
};

/// Of all elements, one after the other.
std::vector<char> bytesOf(DenseElementsAttr data) {
  ArrayRef<char> raw = data.getRawData();
  std::vector<char> bytes;
  for (int64_t i = 0, count = data.isSplat() ? data.getNumElements() : 1; i < count; ++i)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

/// Anything that is not as it was written sets `ok` to false.
class Reader {
public:
  bool ok = true;

  ProgramDescription read(DictionaryAttr attributes) {
    ProgramDescription program;
    program.constraints = array(attributes, "constraints");
    program.symbols = array(attributes, "symbols");
    llvm::json::Value mesh = json(get<DictionaryAttr>(attributes, "mesh"));
    if (llvm::json::Object *object = mesh.getAsObject())
      program.mesh = std::move(*object);
    if (attributes.contains("meshes"))
      program.meshes = array(attributes, "meshes");
    program.sequenceHashes = text(attributes, "sequences");
    if (attributes.contains("training")) {
      llvm::json::Value training = json(get<DictionaryAttr>(attributes, "training"));
      if (const llvm::json::Object *object = training.getAsObject())
        program.training = *object;
    }
    if (auto worldSize = get<IntegerAttr>(attributes, "world_size"))
      program.worldSize = worldSize.getInt();
    for (DictionaryAttr parameter : dictionaries(attributes, "parameters"))
      program.parameters.push_back(readParameter(parameter));
    for (DictionaryAttr entry : dictionaries(attributes, "entries"))
      program.entries.push_back(readEntry(entry));
    return program;
  }

private:
  template <typename T> T get(DictionaryAttr attributes, StringRef name) {
    auto value = attributes.getAs<T>(name);
    ok &= bool(value);
    return value;
  }
  std::string text(DictionaryAttr attributes, StringRef name) {
    auto value = get<StringAttr>(attributes, name);
    return value ? value.str() : "";
  }
  bool flag(DictionaryAttr attributes, StringRef name) {
    auto value = get<BoolAttr>(attributes, name);
    return value && value.getValue();
  }
  /// Elements of a list that have the type T.
  template <typename T> SmallVector<T> items(DictionaryAttr attributes, StringRef name) {
    SmallVector<T> result;
    if (auto list = get<ArrayAttr>(attributes, name))
      for (Attribute item : list) {
        ok &= isa<T>(item);
        if (auto typed = dyn_cast<T>(item))
          result.push_back(typed);
      }
    return result;
  }
  SmallVector<DictionaryAttr> dictionaries(DictionaryAttr attributes, StringRef name) {
    return items<DictionaryAttr>(attributes, name);
  }
  std::vector<std::string> texts(DictionaryAttr attributes, StringRef name) {
    std::vector<std::string> result;
    for (StringAttr item : items<StringAttr>(attributes, name))
      result.push_back(item.str());
    return result;
  }
  llvm::json::Array array(DictionaryAttr attributes, StringRef name) {
    llvm::json::Value value = json(get<ArrayAttr>(attributes, name));
    llvm::json::Array *list = value.getAsArray();
    return list ? std::move(*list) : llvm::json::Array();
  }
  llvm::json::Value json(Attribute attribute) {
    if (auto list = dyn_cast_or_null<ArrayAttr>(attribute)) {
      llvm::json::Array result;
      for (Attribute item : list)
        result.push_back(json(item));
      return result;
    }
    if (auto object = dyn_cast_or_null<DictionaryAttr>(attribute)) {
      llvm::json::Object result;
      for (NamedAttribute item : object)
        result[item.getName().getValue()] = json(item.getValue());
      return result;
    }
    if (auto number = dyn_cast_or_null<IntegerAttr>(attribute))
      return number.getInt();
    if (auto string = dyn_cast_or_null<StringAttr>(attribute))
      return string.getValue();
    ok = false;
    return nullptr;
  }

  TensorDescription readTensor(DictionaryAttr attributes) {
    TensorDescription tensor;
    tensor.names = texts(attributes, "names");
    ok &= !tensor.names.empty();
    if (auto type = get<IntegerAttr>(attributes, "type"))
      tensor.type = int32_t(type.getInt());
    tensor.shape = array(attributes, "shape");
    tensor.layout = text(attributes, "layout");
    if (attributes.contains("mesh"))
      tensor.mesh = text(attributes, "mesh");
    if (attributes.contains("kind"))
      tensor.kind = text(attributes, "kind");
    return tensor;
  }
  ParameterDescription readParameter(DictionaryAttr attributes) {
    ParameterDescription parameter;
    static_cast<TensorDescription &>(parameter) = readTensor(attributes);
    parameter.isMutable = flag(attributes, "mutable");
    parameter.isConstant = flag(attributes, "constant");
    if (attributes.contains("initial")) {
      if (auto initial = get<FloatAttr>(attributes, "initial"))
        parameter.initial = initial.getValueAsDouble();
      parameter.isSaved = flag(attributes, "saved");
    }
    if (auto data = attributes.getAs<DenseElementsAttr>("data"))
      parameter.data = bytesOf(data);
    return parameter;
  }
  EntryDescription readEntry(DictionaryAttr attributes) {
    EntryDescription entry;
    entry.name = text(attributes, "name");
    for (DictionaryAttr input : dictionaries(attributes, "inputs"))
      entry.inputs.push_back(readTensor(input));
    for (DictionaryAttr output : dictionaries(attributes, "outputs"))
      entry.outputs.push_back(readTensor(output));
    if (attributes.contains("reads_parameters"))
      entry.readsParameters = flag(attributes, "reads_parameters");
    entry.variants = texts(attributes, "variants");
    if (auto ranks = get<DenseI32ArrayAttr>(attributes, "variant_of_rank"))
      entry.variantOfRank.assign(ranks.asArrayRef().begin(), ranks.asArrayRef().end());
    if (attributes.contains("predicted")) {
      auto timeline = get<DictionaryAttr>(attributes, "predicted");
      entry.predicted = timeline ? predictionOf(timeline) : std::nullopt;
      ok &= entry.predicted.has_value();
    }
    return entry;
  }
};

} // namespace

DictionaryAttr toAttribute(MLIRContext *context, const ProgramDescription &program) {
  return Writer(context).write(program);
}

FailureOr<ProgramDescription> readDescription(ModuleOp module) {
  auto attributes = module->getAttrOfType<DictionaryAttr>(exec::kProgramAttr);
  if (!attributes)
    return module.emitError("the module has no '") << exec::kProgramAttr
                                                   << "': run exec-describe-program before "
                                                      "buffers are assigned";
  Reader reader;
  ProgramDescription program = reader.read(attributes);
  if (!reader.ok)
    return module.emitError("the module has an '")
           << exec::kProgramAttr << "' that is not what exec-describe-program writes";
  return program;
}

} // namespace shardc::artifact
