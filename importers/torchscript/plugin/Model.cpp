// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torchscript/plugin/Model.h"

#include "importers/torchscript/plugin/Interpreter.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/import_read.h>

#include <charconv>
#include <stdexcept>

namespace shardc::torchscript {
namespace {

using c10::IValue;

/// Code that restores an object is run while the archive is loaded, before anybody could look at
/// it.
void refuseRestoringCode(caffe2::serialize::PyTorchStreamReader &reader) {
  for (const std::string &name : reader.getAllRecords()) {
    if (!name.starts_with("code/") || !name.ends_with(".py"))
      continue;
    auto [data, size] = reader.getRecord(name);
    std::string_view text(static_cast<const char *>(data.get()), size);
    TORCH_CHECK(text.find("__setstate__") == text.npos, name,
                " restores objects by code of its own (__setstate__), which is not run");
  }
}

class Importer {
public:
  explicit Importer(const ImportRequest &request) : request(request) {}

  std::string run() {
    caffe2::serialize::PyTorchStreamReader reader(request.path);
    refuseRestoringCode(reader);
    IValue table = torch::jit::readArchiveAndTensors("constants", "", "", std::nullopt,
                                                     std::nullopt, at::kCPU, reader);
    std::vector<at::Tensor> constants;
    for (const IValue &item : table.toTuple()->elements())
      constants.push_back(item.isTensor() ? item.toTensor() : at::Tensor());
    program.setConstants(std::move(constants));

    torch::jit::Module model = torch::jit::load(request.path, at::kCPU);
    std::optional<torch::jit::Method> forward = model.find_method("forward");
    TORCH_CHECK(forward, "the model has no method 'forward'");
    makeSymbolic(model._ivalue(), "");
    std::vector<IValue> arguments = makeArguments(forward->function().getSchema());
    arguments.insert(arguments.begin(), IValue(model._ivalue()));

    Interpreter interpreter(program, paths);
    IValue result;
    try {
      result = interpreter.run(forward->function(), std::move(arguments));
    } catch (const c10::Error &error) {
      std::string message = error.what_without_backtrace();
      throw std::runtime_error("in " + interpreter.describePlace() + ": " +
                               message.substr(0, message.find('\n')));
    }
    for (const Attribute &attribute : attributes)
      if (IValue now = attribute.owner->getSlot(attribute.slot);
          !now.isTensor() || !now.toTensor().is_same(attribute.tensor)) {
        TORCH_CHECK(now.isTensor(), "'", attribute.path, "' is no tensor any more");
        program.addMutation(attribute.path, now.toTensor());
      }
    addOutputs(result);
    return program.toJson();
  }

private:
  struct Attribute {
    c10::intrusive_ptr<c10::ivalue::Object> owner;
    size_t slot;
    std::string path;
    at::Tensor tensor;
  };

  static std::string join(const std::string &path, const std::string &name) {
    return path.empty() ? name : path + "." + name;
  }

  /// Replaces tensors in an object, and in what it holds, by symbolic ones.
  void makeSymbolic(const c10::intrusive_ptr<c10::ivalue::Object> &object,
                    const std::string &path) {
    if (!paths.emplace(object.get(), path).second)
      return;
    TORCH_CHECK(paths.size() < 1'000'000 && path.size() < 4096, "the model has too many objects");
    c10::ClassTypePtr type = object->type();
    for (size_t slot = 0; slot < type->numAttributes(); ++slot) {
      std::string name = join(path, type->getAttributeName(slot));
      IValue value = object->getSlot(slot);
      if (value.isObject()) {
        makeSymbolic(value.toObject(), name);
      } else if (value.isTensor()) {
        if (!value.toTensor().defined())
          continue;
        bool isParameter = type->is_parameter(slot) ||
                           (!type->is_buffer(slot) && value.toTensor().requires_grad());
        at::Tensor symbol = makeSymbol(value.toTensor(), name, isParameter);
        object->setSlot(slot, symbol);
        attributes.push_back({object, slot, name, symbol});
      } else {
        object->setSlot(slot, replaceIn(value, name));
      }
    }
  }

  at::Tensor makeSymbol(const at::Tensor &tensor, const std::string &path, bool isParameter) {
    TORCH_CHECK(tensor.layout() == at::kStrided && !tensor.is_quantized(), "the tensor '", path,
                "' is sparse or quantized, which is not supported");
    return program.addInput(
        isParameter ? Program::InputKind::Parameter : Program::InputKind::Buffer, path,
        tensor.scalar_type(), tensor.sizes(), tensor.strides(), tensor.requires_grad());
  }

  IValue replaceIn(const IValue &value, const std::string &path) {
    if (value.isTensor())
      return value.toTensor().defined()
                 ? makeSymbol(value.toTensor(), path, value.toTensor().requires_grad())
                 : value;
    if (value.isObject())
      makeSymbolic(value.toObject(), path);
    if (value.isList()) {
      c10::impl::GenericList items(value.toList().elementType());
      for (size_t i = 0; i < value.toListRef().size(); ++i)
        items.push_back(replaceIn(value.toListRef()[i], join(path, std::to_string(i))));
      return value.isTensorList() ? IValue(c10::impl::toTypedList<at::Tensor>(items))
                                  : IValue(items);
    }
    if (value.isTuple()) {
      std::vector<IValue> items;
      for (const IValue &item : value.toTuple()->elements())
        items.push_back(replaceIn(item, join(path, std::to_string(items.size()))));
      return c10::ivalue::Tuple::create(std::move(items));
    }
    if (value.isGenericDict()) {
      c10::impl::GenericDict dict = value.toGenericDict();
      for (const auto &entry : dict)
        if (entry.key().isString())
          dict.insert_or_assign(entry.key(),
                                replaceIn(entry.value(), join(path, entry.key().toStringRef())));
    }
    return value;
  }

  //===--------------------------------------------------------------------===//
  // Inputs and outputs
  //===--------------------------------------------------------------------===//

  /// What the user says of an argument, or the model was traced with.
  std::optional<std::string> specOf(const std::string &name, size_t position) {
    for (const std::vector<std::string> *specs : {&request.inputs, &request.examples})
      for (const std::string &spec : *specs) {
        size_t equals = spec.find('=');
        std::string key = spec.substr(0, equals);
        if (equals != spec.npos && (key == name || key == std::to_string(position))) {
          used.insert(spec);
          return spec.substr(equals + 1);
        }
      }
    return std::nullopt;
  }

  /// A tensor of "8x64xf32"; nothing if it is no such text.
  std::optional<IValue> parseTensor(const std::string &name, std::string_view text) {
    std::vector<int64_t> sizes, strides;
    while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front()))) {
      int64_t size = 0;
      auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (code != std::errc() || end == text.data() + text.size() || *end != 'x')
        return std::nullopt;
      sizes.push_back(size);
      text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
    }
    std::optional<at::ScalarType> type = parseElementType(text);
    if (!type)
      return std::nullopt;
    strides.assign(sizes.size(), 1);
    for (size_t dim = sizes.size(); dim-- > 1;)
      TORCH_CHECK(!__builtin_mul_overflow(strides[dim], std::max<int64_t>(sizes[dim], 1),
                                          &strides[dim - 1]),
                  "the input '", name, "' is larger than 64 bits can count");
    return program.addInput(Program::InputKind::User, name, *type, sizes, strides);
  }

  std::optional<IValue> parseValue(const std::string &name, const std::string &text) {
    if (std::optional<IValue> tensor = parseTensor(name, text))
      return tensor;
    if (text == "none")
      return IValue();
    if (text == "true" || text == "false")
      return IValue(text == "true");
    int64_t integer = 0;
    double real = 0;
    const char *end = text.data() + text.size();
    if (std::from_chars(text.data(), end, integer).ptr == end && !text.empty())
      return IValue(integer);
    if (std::from_chars(text.data(), end, real).ptr == end && !text.empty())
      return IValue(real);
    return std::nullopt;
  }

  std::vector<IValue> makeArguments(const c10::FunctionSchema &schema) {
    std::vector<IValue> arguments;
    std::string missing, example;
    for (size_t i = 1; i < schema.arguments().size(); ++i) {
      const c10::Argument &declared = schema.arguments()[i];
      std::string name = declared.name();
      if (std::optional<std::string> spec = specOf(name, i - 1)) {
        std::optional<IValue> value = parseValue(name, *spec);
        TORCH_CHECK(value, "'", *spec,
                    "' is no shape and element type, and no number, for the input '", name,
                    "': write for example ", name, "=8x64xf32");
        arguments.push_back(*value);
      } else if (declared.default_value()) {
        arguments.push_back(*declared.default_value());
      } else {
        missing += (missing.empty() ? "'" : ", '") + name + "' (" + declared.type()->str() + ")";
        example = name;
      }
    }
    TORCH_CHECK(missing.empty(), "the shapes of these inputs are not known: ", missing,
                "; give each one, for example --input ", example, "=8x64xf32");
    std::string unknown;
    for (const std::string &spec : request.inputs)
      if (!used.contains(spec))
        unknown += (unknown.empty() ? "'" : ", '") + spec + "'";
    std::string names;
    for (size_t i = 1; i < schema.arguments().size(); ++i)
      names += (i > 1 ? ", " : "") + schema.arguments()[i].name();
    TORCH_CHECK(unknown.empty(), "there are no such inputs: ", unknown, "; forward has ", names);
    return arguments;
  }

  void addOutputs(const IValue &value) {
    if (value.isNone())
      return;
    if (value.isTensor())
      return program.addOutput(value.toTensor());
    if (value.isTuple()) {
      for (const IValue &item : value.toTuple()->elements())
        addOutputs(item);
    } else if (value.isList()) {
      for (const IValue &item : value.toList())
        addOutputs(item);
    } else if (value.isGenericDict()) {
      for (const auto &entry : value.toGenericDict())
        addOutputs(entry.value());
    } else if (value.isObject()) {
      for (const IValue &slot : value.toObject()->slots())
        addOutputs(slot);
    } else {
      TORCH_CHECK(false, "an output is of type ", value.tagKind(),
                  ", not a tensor: return tensors only");
    }
  }

  const ImportRequest &request;
  Program program;
  std::unordered_map<const c10::ivalue::Object *, std::string> paths;
  std::vector<Attribute> attributes;
  std::unordered_set<std::string> used;
};

} // namespace

std::string importModel(const ImportRequest &request) {
  at::NoGradGuard noGradients;
  try {
    return Importer(request).run();
  } catch (const c10::Error &error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

} // namespace shardc::torchscript
