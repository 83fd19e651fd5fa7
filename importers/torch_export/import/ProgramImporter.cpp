// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/ProgramImporter.h"

#include "importers/torch_export/import/Parts.h"
#include "importers/torch_export/import/Signature.h"
#include "importers/torch_export/import/Storages.h"
#include "importers/torch_export/import/Targets.h"

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

class ProgramImporter : private ValueSource {
public:
  ProgramImporter(const ExportedProgram &program, const TensorStore &store, Location file)
      : program(program), store(store), file(file), builder(file.getContext()), storages(builder) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(file);
    FailureOr<Signature> signature = makeSignature(program, store, file);
    if (failed(signature))
      return {};
    builder.setInsertionPointToStart(module->getBody());
    auto function =
        func::FuncOp::create(builder, file, "forward",
                             FunctionType::get(builder.getContext(), signature->argumentTypes, {}));
    function.setAllArgAttrs(signature->argumentAttributes);
    Block *entry = function.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    symbols.emplace(entry);
    frames.push_back({&program.graph, {}, {}});
    bindInputs(*signature, entry);
    importNodes();
    finish(function, *signature);
    if (errors || failed(verify(*module)))
      return {};
    return module;
  }

private:
  // The names of one graph: the program's, or one nested in a node.
  struct Frame {
    const Graph *graph;
    llvm::StringMap<Storages::Tensor> tensors;
    llvm::StringMap<OpFoldResult> sizes; // null: could not be built
  };
  Frame &frame() { return frames.back(); }

  void fail() { errors = true; }

  //===--------------------------------------------------------------------===//
  // Values by name
  //===--------------------------------------------------------------------===//

  Value tensor(StringRef name, Location loc) override {
    auto found = frame().tensors.find(name);
    if (found == frame().tensors.end()) {
      emitError(loc) << "the tensor '" << name << "' is not available here";
      return {};
    }
    return storages.read(found->second, loc);
  }

  FailureOr<OpFoldResult> size(const SymIntArg &value, Location loc) override {
    if (value.constant())
      return OpFoldResult(builder.getIndexAttr(value.value));
    auto found = frame().sizes.find(value.name);
    if (found == frame().sizes.end())
      return emitError(loc) << "the symbolic integer '" << StringRef(value.name)
                            << "' is not available here";
    if (!found->second)
      return failure(); // reported where it is made
    return found->second;
  }

  void bindInputs(const Signature &signature, Block *entry) {
    llvm::DenseMap<unsigned, Storages::Tensor> ofArgument;
    for (auto [number, input] : llvm::enumerate(signature.inputs)) {
      StringRef name = program.inputs[number].name;
      if (input.argument) {
        BlockArgument argument = entry->getArgument(*input.argument);
        auto [place, added] = ofArgument.try_emplace(*input.argument, 0);
        if (added) {
          argument.setLoc(NameLoc::get(builder.getStringAttr(name)));
          place->second = storages.add(argument);
          const TensorMeta &meta = program.graph.tensors.at(std::string_view(name));
          for (auto [dim, size] : llvm::enumerate(meta.sizes))
            symbols->bind(argument, dim, size);
        }
        frame().tensors[name] = place->second;
      } else if (input.constant) {
        Location loc = NameLoc::get(builder.getStringAttr(name));
        frame().tensors[name] = storages.add(aten::ConstantOp::create(
            builder, loc, cast<RankedTensorType>(input.constant.getType()), input.constant));
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // Nodes
  //===--------------------------------------------------------------------===//

  // Errors at a node do not stop the import: its results are replaced by values of the recorded
  // types, so that all errors are reported at once.
  void importNodes() {
    for (const Node &node : frame().graph->nodes) {
      Location loc = locationOf(builder.getContext(), node);
      if (succeeded(importNode(node, loc)))
        continue;
      fail();
      forEachTensor(node, [&](unsigned, StringRef name, const TensorMeta &meta) {
        RankedTensorType type = convertType(builder.getContext(), meta);
        if (!type)
          type = RankedTensorType::get({}, builder.getF32Type());
        frame().tensors[name] = storages.add(
            UnrealizedConversionCastOp::create(builder, loc, type, ValueRange()).getResult(0));
      });
    }
  }

  template <typename F> void forEachTensor(const Node &node, F visit) {
    unsigned number = 0;
    auto one = [&](StringRef name) {
      auto found = frame().graph->tensors.find(std::string_view(name));
      if (found != frame().graph->tensors.end())
        visit(number, name, found->second);
      ++number;
    };
    for (const Argument &output : node.outputs) {
      if (auto *tensor = std::get_if<TensorArg>(&output))
        one(tensor->name);
      else if (auto *list = std::get_if<TensorListArg>(&output))
        for (const TensorArg &element : list->tensors)
          one(element.name);
      else
        ++number;
    }
  }

  LogicalResult importNode(const Node &node, Location loc) {
    Target target = classify(node, builder.getContext());
    switch (target.kind) {
    case Target::Unsupported:
      return emitError(loc) << "'" << shortTarget(node) << "' is not supported";
    case Target::Sizes:
      return importSizes(node, loc);
    case Target::Nested:
      return importNested(node, loc);
    case Target::Plain:
      return target.overload->dropped() ? success() : importPlain(node, target, loc);
    case Target::InPlace:
      return importInPlace(node, target, loc);
    }
    return failure();
  }

  LogicalResult importSizes(const Node &node, Location loc) {
    bool built = true;
    for (const Argument &output : node.outputs) {
      auto *number = std::get_if<SymIntArg>(&output);
      if (!number || number->constant())
        continue; // bools and floats come from checks that are dropped, or are missed at their use
      FailureOr<OpFoldResult> value = symbols->get(frame().graph->symInts.at(number->name), loc);
      frame().sizes[number->name] = succeeded(value) ? *value : OpFoldResult();
      built &= succeeded(value);
    }
    return success(built);
  }

  FailureOr<Results> build(const Node &node, const Target &target, Location loc) {
    SmallVector<const TensorMeta *> metas;
    for (const Argument &output : node.outputs)
      if (auto *list = std::get_if<TensorListArg>(&output))
        metas.append(list->tensors.size(), nullptr);
      else
        metas.push_back(nullptr);
    forEachTensor(
        node, [&](unsigned number, StringRef, const TensorMeta &meta) { metas[number] = &meta; });
    Call call(builder, loc, node, *target.schema, std::move(metas), *this, *symbols);
    for (const TensorMeta *meta : call.results)
      if (meta && !convertElementType(builder.getContext(), meta->type))
        return call.error() << "tensors of element type " << StringRef(elementTypeName(meta->type))
                            << " are not supported";
    for (const SchemaArgument &argument : target.schema->arguments)
      if (argument.otherwise.kind == Default::Required &&
          llvm::none_of(node.inputs,
                        [&](const NamedArgument &input) { return input.name == argument.name; }))
        return call.error() << "the argument '" << StringRef(argument.name) << "' is missing";
    FailureOr<Results> results = target.overload->build ? target.overload->build(call)
                                                        : buildByName(call, target.overload->op);
    if (failed(results) || failed(refineTypes(call, *results)))
      return failure();
    return results;
  }

  // Compares what was inferred with what PyTorch recorded, and keeps what is more precise.
  LogicalResult refineTypes(Call &call, Results &results) {
    for (auto [value, meta] : llvm::zip(results, call.results)) {
      if (!value || !meta)
        continue;
      RankedTensorType recorded = convertType(builder.getContext(), *meta);
      auto inferred = cast<RankedTensorType>(value.getType());
      if (!aten::areCompatibleTypes(TypeRange(inferred), TypeRange(recorded)))
        return call.error() << "its result is " << inferred << ", but PyTorch recorded "
                            << recorded;
      SmallVector<int64_t> shape(inferred.getShape());
      for (auto [size, known] : llvm::zip(shape, recorded.getShape()))
        if (ShapedType::isDynamic(size))
          size = known;
      if (value.getDefiningOp() && shape != inferred.getShape())
        value.setType(RankedTensorType::get(shape, inferred.getElementType()));
    }
    return success();
  }

  LogicalResult importPlain(const Node &node, const Target &target, Location loc) {
    FailureOr<Results> results = build(node, target, loc);
    if (failed(results))
      return failure();
    bool complete = true;
    std::optional<Storages::Tensor> source;
    if (sharesStorage(node, *target.schema, *frame().graph))
      source = firstTensor(node);
    forEachTensor(node, [&](unsigned number, StringRef name, const TensorMeta &) {
      if (number >= results->size()) {
        emitError(loc) << "'" << shortTarget(node) << "' makes " << results->size()
                       << " values, but the program names more";
        complete = false;
        return;
      }
      Value value = (*results)[number];
      if (!value)
        return; // not produced: an error if it is used
      frame().tensors[name] = source ? storages.addView(*source, value) : storages.add(value);
    });
    return success(complete);
  }

  std::optional<Storages::Tensor> firstTensor(const Node &node) {
    auto *tensor = node.inputs.empty() ? nullptr : std::get_if<TensorArg>(&node.inputs[0].value);
    auto found = tensor ? frame().tensors.find(tensor->name) : frame().tensors.end();
    if (found == frame().tensors.end())
      return std::nullopt;
    return found->second;
  }

  // The functional form computes the new value, which then takes the place of the first argument's.
  LogicalResult importInPlace(const Node &node, const Target &target, Location loc) {
    std::optional<Storages::Tensor> self = firstTensor(node);
    if (!self)
      return emitError(loc) << "'" << shortTarget(node) << "' has no tensor to update";
    FailureOr<Results> results = build(node, target, loc);
    if (failed(results))
      return failure();
    Value old = storages.read(*self, loc);
    if (!old)
      return failure();
    RankedTensorType type = aten::typeOf(old);
    FailureOr<Value> value = buildCast(builder, loc, results->front(), type.getElementType());
    if (failed(value))
      return failure();
    if (failed(verifyCompatibleShape(aten::shapeOf(*value), type.getShape())))
      return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc)
                            << " changes the shape of a tensor in place, which is not supported";
    if (failed(storages.write(*self, *value, loc)))
      return failure();
    Value now = storages.read(*self, loc);
    if (!now)
      return failure();
    forEachTensor(node, [&](unsigned, StringRef name, const TensorMeta &) {
      frame().tensors[name] = storages.addView(*self, now);
    });
    return success();
  }

  // wrap_with_set_grad_enabled(enabled, graph, inputs...): the graph, in place.
  LogicalResult importNested(const Node &node, Location loc) {
    const GraphArg *nested = nullptr;
    SmallVector<const Argument *> inputs;
    for (const NamedArgument &input : node.inputs) {
      if (nested)
        inputs.push_back(&input.value);
      else
        nested = std::get_if<GraphArg>(&input.value);
    }
    if (!nested || inputs.size() != nested->graph->inputs.size())
      return emitError(loc) << "'" << shortTarget(node) << "' does not fit the graph it runs";
    Frame inner{nested->graph.get(), {}, {}};
    if (failed(bindNames(nested->graph->inputs, inputs, frame(), inner, loc)))
      return failure();
    SmallVector<const Argument *> results;
    for (const Argument &output : nested->graph->outputs)
      results.push_back(&output);
    frames.push_back(std::move(inner));
    importNodes();
    Frame done = frames.pop_back_val();
    // A list of outputs may come as one argument.
    SmallVector<Argument> names;
    for (const Argument &output : node.outputs)
      if (auto *list = std::get_if<TensorListArg>(&output))
        llvm::append_range(names, list->tensors);
      else
        names.push_back(output);
    if (names.size() != results.size())
      return emitError(loc) << "'" << shortTarget(node) << "' has another number of results than "
                            << "the graph it runs";
    return bindNames(names, results, done, frame(), loc);
  }

  // Gives values of one frame names in another.
  LogicalResult bindNames(ArrayRef<Argument> names, ArrayRef<const Argument *> arguments,
                          Frame &from, Frame &to, Location loc) {
    for (auto [name, argument] : llvm::zip_equal(names, arguments)) {
      auto *tensorName = std::get_if<TensorArg>(&name);
      auto *sizeName = std::get_if<SymIntArg>(&name);
      if (tensorName) {
        auto *tensor = std::get_if<TensorArg>(argument);
        auto found = tensor ? from.tensors.find(tensor->name) : from.tensors.end();
        if (found == from.tensors.end())
          return emitError(loc) << "a nested graph uses a tensor that is not available";
        to.tensors[tensorName->name] = found->second;
      } else if (sizeName && !sizeName->constant()) {
        auto *value = std::get_if<SymIntArg>(argument);
        auto *constant = std::get_if<int64_t>(argument);
        if (constant || (value && value->constant()))
          to.sizes[sizeName->name] =
              OpFoldResult(builder.getIndexAttr(constant ? *constant : value->value));
        else if (value)
          to.sizes[sizeName->name] = from.sizes.lookup(value->name);
      }
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void finish(func::FuncOp function, const Signature &signature) {
    SmallVector<Value> values;
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attributes;
    auto add = [&](StringRef name, DictionaryAttr attribute) {
      Value value = tensor(name, file);
      if (!value)
        return fail();
      values.push_back(value);
      types.push_back(value.getType());
      attributes.push_back(attribute);
    };
    for (const SignatureOutput &output : signature.outputs)
      add(output.name, output.attributes);
    // What is updated in place without an output of its own (training IR).
    llvm::DenseSet<unsigned> done;
    for (auto [number, input] : llvm::enumerate(signature.inputs)) {
      StringRef name = program.inputs[number].name;
      if (!frame().tensors.contains(name) || !storages.updated(frame().tensors[name]))
        continue;
      if (input.constant) {
        emitError(file) << "the constant '" << StringRef(program.inputs[number].target)
                        << "' is updated in place: register it as a buffer";
        fail();
      } else if (done.insert(*input.argument).second) {
        add(name, makeMutation(builder.getContext(), program, number));
      }
    }
    func::ReturnOp::create(builder, file, values);
    function.setFunctionType(
        FunctionType::get(builder.getContext(), signature.argumentTypes, types));
    function.setAllResultAttrs(attributes);
    if (signature.symbols)
      function->setAttr(dist::kSymbolsAttr, signature.symbols);
  }

  const ExportedProgram &program;
  const TensorStore &store;
  Location file;
  OpBuilder builder;
  Storages storages;
  std::optional<Symbols> symbols;
  SmallVector<Frame, 1> frames;
  bool errors = false;
};

} // namespace

OwningOpRef<ModuleOp> importProgram(const ExportedProgram &program, const TensorStore &tensors,
                                    StringRef path, MLIRContext *context) {
  Location file = FileLineColLoc::get(context, path, 0, 0);
  if (!checkOperators(program, file))
    return {};
  return ProgramImporter(program, tensors, file).run();
}

} // namespace shardc::torch_export
