// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Signature.h"

#include "importers/torch_export/import/Call.h"
#include "importers/torch_export/import/SizeAttributes.h"
#include "importers/torch_export/import/StoredElements.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

// Constants of at most so many elements become part of the program, where folding sees them.
constexpr int64_t maxInlineElements = 64;

using InputKind = InputSpec::Kind;
using OutputKind = OutputSpec::Kind;

StringRef argumentKind(const InputSpec &input) {
  switch (input.kind) {
  case InputKind::Parameter:
    return "parameter";
  case InputKind::Buffer:
    // A weights file does not have what is not persistent: its value is part of the program.
    return input.persistent ? "buffer" : "constant";
  case InputKind::TensorConstant:
    return "constant";
  default:
    return "input";
  }
}

StringRef resultKind(OutputKind kind) {
  switch (kind) {
  case OutputKind::Loss:
    return "loss";
  case OutputKind::BufferMutation:
  case OutputKind::ParameterMutation:
    return "buffer_mutation";
  case OutputKind::UserInputMutation:
    return "input_mutation";
  case OutputKind::GradientToParameter:
  case OutputKind::GradientToUserInput:
    return "gradient";
  case OutputKind::UserOutput:
  case OutputKind::Token:
    break;
  }
  return "output";
}

// A small stored tensor as an attribute; null if it is large, or not stored.
DenseElementsAttr inlineConstant(const StoredTensor *tensor, RankedTensorType type) {
  if (!tensor || !type.hasStaticShape() || type.getNumElements() > maxInlineElements)
    return {};
  return readElements(*tensor, type);
}

class SignatureBuilder {
public:
  SignatureBuilder(const ExportedProgram &program, const TensorStore &store, Location file,
                   bool lenient)
      : program(program), store(store), file(file), lenient(lenient), builder(file.getContext()) {}

  FailureOr<Signature> run() {
    for (const InputSpec &input : program.inputs)
      addInput(input);
    freeze();
    setNames();
    for (const OutputSpec &output : program.outputs)
      addOutput(output);
    nameOutputs();
    FailureOr<ArrayAttr> symbols = makeSymbols(builder.getContext(), program);
    if (failed(symbols) || errors)
      return failure();
    signature.symbols = *symbols;
    return std::move(signature);
  }

private:
  void fail(const Twine &what) {
    emitError(file) << what;
    errors = true;
  }

  void addInput(const InputSpec &input) {
    SignatureInput &entry = signature.inputs.emplace_back();
    StringRef name = input.target.empty() ? input.name : input.target;
    switch (input.kind) {
    case InputKind::ConstantInput:
    case InputKind::Token:
      return;
    case InputKind::CustomObject:
      return fail("the model holds the object '" + name + "', which is no tensor");
    case InputKind::UserInput:
    case InputKind::Parameter:
    case InputKind::Buffer:
    case InputKind::TensorConstant:
      break;
    }
    auto found = program.graph.tensors.find(input.name);
    if (found == program.graph.tensors.end())
      return fail("the input '" + name +
                  "' is a number: export the model with it as a constant or a tensor");
    RankedTensorType type = convertType(builder.getContext(), found->second);
    if (!isSupported(found->second.type) && !lenient)
      return fail("the input '" + name + "' has the element type " +
                  elementTypeName(found->second.type) + ", which is not supported");
    const StoredTensor *stored = input.target.empty() ? nullptr : store.find(input.target);
    if (stored && !agrees(*stored, found->second))
      return fail("the stored tensor '" + name +
                  "' has another shape or element type than the program says");
    if (input.kind == InputKind::TensorConstant)
      if ((entry.constant = inlineConstant(stored, type)))
        return;
    bool isTrained = input.kind == InputKind::Parameter && found->second.requiresGrad;
    // Tied weights are one storage with several names.
    if (stored && stored->identity())
      for (unsigned other : byStorage[stored->identity()])
        if (tensors[other]->tiedTo(*stored)) {
          entry.argument = other;
          (isTrained ? trained : untrained)[other].push_back(builder.getStringAttr(name));
          names[other].push_back(builder.getStringAttr(name));
          return;
        }
    entry.argument = unsigned(signature.argumentTypes.size());
    signature.argumentTypes.push_back(type);
    names.push_back({builder.getStringAttr(name)});
    trained.emplace_back();
    untrained.emplace_back();
    (isTrained ? trained : untrained).back().push_back(builder.getStringAttr(name));
    tensors.push_back(stored);
    if (stored && stored->identity())
      byStorage[stored->identity()].push_back(*entry.argument);
    NamedAttrList attributes;
    attributes.set(dist::kKindAttr, builder.getStringAttr(argumentKind(input)));
    if (ArrayAttr sizes = makeSizes(builder.getContext(), found->second))
      attributes.set(dist::kSizesAttr, sizes);
    pending.push_back(std::move(attributes));
  }

  static bool agrees(const StoredTensor &stored, const TensorMeta &meta) {
    std::vector<SymInt> sizes = meta.pairSizes();
    if (stored.type != componentOf(meta.type) || stored.sizes.size() != sizes.size())
      return false;
    for (auto [size, recorded] : llvm::zip_equal(stored.sizes, sizes))
      if (!recorded.constant() || recorded.value != size)
        return false;
    return true;
  }

  /// Says which names of an argument have no gradient.
  void freeze() {
    for (auto [argument, attributes] : llvm::enumerate(pending)) {
      if (trained[argument].empty()) {
        if (attributes.get(dist::kKindAttr) == builder.getStringAttr("parameter"))
          attributes.set(dist::kFrozenAttr, builder.getUnitAttr());
      } else if (!untrained[argument].empty()) {
        attributes.set(dist::kKindAttr, builder.getStringAttr("parameter"));
        attributes.set(dist::kFrozenAttr, builder.getArrayAttr(untrained[argument]));
      }
    }
    for (auto [input, entry] : llvm::zip_equal(program.inputs, signature.inputs)) {
      bool isTrained =
          input.kind == InputKind::Parameter && program.graph.tensors.at(input.name).requiresGrad;
      entry.isDetached = entry.argument && !isTrained && !trained[*entry.argument].empty();
    }
  }

  // Names of tied weights that the graph does not use count too: a plan may say any of them.
  void setNames() {
    for (const StoredTensor &stored : store.tensors())
      if (auto found = byStorage.find(stored.identity());
          stored.identity() && found != byStorage.end())
        for (unsigned argument : found->second)
          if (auto name = builder.getStringAttr(stored.name);
              tensors[argument]->tiedTo(stored) && !llvm::is_contained(names[argument], name))
            names[argument].push_back(name);
    for (auto [list, attributes] : llvm::zip_equal(names, pending)) {
      attributes.set(dist::kNameAttr,
                     list.size() == 1
                         ? Attribute(list.front())
                         : builder.getArrayAttr(SmallVector<Attribute>(list.begin(), list.end())));
      signature.argumentAttributes.push_back(attributes.getDictionary(builder.getContext()));
    }
  }

  void addOutput(const OutputSpec &output) {
    if (output.kind == OutputKind::Token || std::holds_alternative<NoneArg>(output.value))
      return;
    auto *tensor = std::get_if<TensorArg>(&output.value);
    if (!tensor && lenient)
      return;
    if (!tensor) {
      std::string place = output.path.empty() ? "an output" : "the output '" + output.path + "'";
      return fail(place + " is a number, not a tensor: return tensors only");
    }
    NamedAttrList attributes;
    attributes.set(dist::kKindAttr, builder.getStringAttr(resultKind(output.kind)));
    if (ArrayAttr sizes = makeSizes(builder.getContext(), program.graph.tensors.at(tensor->name)))
      attributes.set(dist::kSizesAttr, sizes);
    signature.outputs.push_back({tensor->name, attributes.getDictionary(builder.getContext())});
    returned.push_back(&output);
  }

  static StringRef plainName(const OutputSpec &output) {
    return output.target.empty() ? StringRef(std::get<TensorArg>(output.value).name)
                                 : StringRef(output.target);
  }

  static bool isMutation(const OutputSpec &output) {
    return output.kind == OutputKind::BufferMutation ||
           output.kind == OutputKind::ParameterMutation ||
           output.kind == OutputKind::UserInputMutation;
  }

  // A file of outputs has every name once, but a model may return a tensor several times: all but
  // the first have their place in the returned structure added, "mul" and "mul.1". What is mutated
  // keeps its name, which says what it is.
  void nameOutputs() {
    llvm::StringSet<> plain, taken;
    for (const OutputSpec *output : returned)
      (isMutation(*output) ? taken : plain).insert(plainName(*output));
    for (auto [number, output] : llvm::enumerate(returned)) {
      std::string name = plainName(*output).str();
      if (!isMutation(*output) && taken.contains(name)) {
        name += "." + (output->path.empty() ? std::to_string(number) : output->path);
        while (plain.contains(name) || taken.contains(name))
          name += "_";
      }
      taken.insert(name);
      NamedAttrList attributes(signature.outputs[number].attributes);
      attributes.set(dist::kNameAttr, builder.getStringAttr(name));
      signature.outputs[number].attributes = attributes.getDictionary(builder.getContext());
    }
  }

  const ExportedProgram &program;
  const TensorStore &store;
  Location file;
  bool lenient;
  OpBuilder builder;
  Signature signature;
  SmallVector<SmallVector<StringAttr, 1>> names; // of each argument
  SmallVector<const StoredTensor *> tensors;     // of each argument; null if not stored
  SmallVector<NamedAttrList> pending;            // of each argument
  SmallVector<const OutputSpec *> returned;      // of each output
  llvm::DenseMap<const void *, SmallVector<unsigned, 1>> byStorage;
  // Of each argument, the names with a gradient and those without.
  SmallVector<SmallVector<Attribute, 1>> trained, untrained;
  bool errors = false;
};

} // namespace

FailureOr<Signature> makeSignature(const ExportedProgram &program, const TensorStore &store,
                                   Location file, bool lenient) {
  return SignatureBuilder(program, store, file, lenient).run();
}

DictionaryAttr makeMutation(MLIRContext *context, const ExportedProgram &program, unsigned number) {
  const InputSpec &input = program.inputs[number];
  Builder builder(context);
  bool isInput = input.kind == InputKind::UserInput;
  NamedAttrList attributes;
  attributes.set(dist::kKindAttr,
                 builder.getStringAttr(isInput ? "input_mutation" : "buffer_mutation"));
  attributes.set(dist::kNameAttr, builder.getStringAttr(isInput ? input.name : input.target));
  if (ArrayAttr sizes = makeSizes(context, program.graph.tensors.at(input.name)))
    attributes.set(dist::kSizesAttr, sizes);
  return attributes.getDictionary(context);
}

void renameOutputs(MutableArrayRef<DictionaryAttr> outputs, StringRef taken) {
  auto nameOf = [](DictionaryAttr output) { return output.getAs<StringAttr>(dist::kNameAttr); };
  for (auto [number, output] : llvm::enumerate(outputs)) {
    StringAttr name = nameOf(output);
    auto kind = output.getAs<StringAttr>(dist::kKindAttr);
    bool isUpdate = kind && kind.getValue().ends_with("_mutation");
    if (!name || isUpdate || name.getValue() != taken)
      continue;
    std::string other = (taken + "." + Twine(number)).str();
    while (llvm::any_of(outputs, [&](DictionaryAttr one) {
      return nameOf(one) && nameOf(one).getValue() == other;
    }))
      other += "_";
    NamedAttrList attributes(output);
    attributes.set(dist::kNameAttr, StringAttr::get(output.getContext(), other));
    output = attributes.getDictionary(output.getContext());
  }
}

} // namespace shardc::torch_export
