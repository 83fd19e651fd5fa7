// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/ProgramImporter.h"

#include "importers/torch_export/import/ControlFlow.h"
#include "importers/torch_export/import/CustomOps.h"
#include "importers/torch_export/import/GroupRanks.h"
#include "importers/torch_export/import/JointGraph.h"
#include "importers/torch_export/import/NodeTarget.h"
#include "importers/torch_export/import/OpaqueOps.h"
#include "importers/torch_export/import/Signature.h"
#include "importers/torch_export/import/SizeAttributes.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Constraints.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

class ProgramImporter {
public:
  ProgramImporter(const ExportedProgram &program, const TensorStore &store, const Groups &groups,
                  Location file, ArrayRef<CustomOp> ops)
      : program(program), store(store), groups(groups), file(file), ops(ops),
        builder(file.getContext()), environment(builder, /*isLocal=*/hasCollectives()) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(file);
    FailureOr<Signature> signature = makeSignature(program, store, file, hasCollectives());
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
    environment.frames.push_back({&program.graph});
    bindInputs(*signature, entry);
    importNodes();
    finish(function, *signature);
    if (errors || failed(verify(*module)))
      return {};
    return module;
  }

private:
  Frame &frame() { return environment.frame(); }
  void fail() { errors = true; }

  /// In a graph with collectives the arithmetic need not be known: what is not becomes opaque.
  bool hasCollectives() const { return !groups.empty(); }

  void bindInputs(const Signature &signature, Block *entry) {
    llvm::DenseMap<unsigned, Storages::Tensor> ofArgument;
    for (auto [number, input] : llvm::enumerate(signature.inputs)) {
      StringRef name = program.inputs[number].name;
      if (input.argument) {
        BlockArgument argument = entry->getArgument(*input.argument);
        auto [place, added] = ofArgument.try_emplace(*input.argument, 0);
        if (added) {
          argument.setLoc(NameLoc::get(builder.getStringAttr(name)));
          place->second = environment.storages.add(argument);
          const TensorMeta &meta = program.graph.tensors.at(std::string_view(name));
          for (auto [dim, size] : llvm::enumerate(meta.pairSizes()))
            symbols->bind(argument, dim, size);
        }
        bool isDetached = input.isDetached && environment.isUsed(name);
        frame().tensors[name] =
            isDetached ? environment.addDetached(place->second, builder.getUnknownLoc())
                       : place->second;
      } else if (input.constant) {
        Location loc = NameLoc::get(builder.getStringAttr(name));
        frame().tensors[name] = environment.storages.add(aten::ConstantOp::create(
            builder, loc, cast<RankedTensorType>(input.constant.getType()), input.constant));
      }
    }
  }

  // Errors at a node do not stop the import: its results are replaced by values of the recorded
  // types, so that all errors are reported at once.
  void importNodes() {
    Block *block = builder.getInsertionBlock();
    llvm::SaveAndRestore outer(environment.nodeIsNoGrad);
    for (const Node &node : frame().graph->nodes) {
      Location loc = locationOf(builder.getContext(), node);
      Operation *before = block->empty() ? nullptr : &block->back();
      environment.nodeIsNoGrad = node.noGrad;
      if (succeeded(importNode(node, loc))) {
        dropNames(node, before ? before->getNextNode() : &block->front());
        continue;
      }
      fail();
      forEachTensor(node, *frame().graph, [&](unsigned, StringRef name, const TensorMeta &meta) {
        RankedTensorType type = convertType(builder.getContext(), meta);
        if (!type)
          type = RankedTensorType::get({}, builder.getF32Type());
        frame().tensors[name] = environment.storages.add(
            UnrealizedConversionCastOp::create(builder, loc, type, ValueRange()).getResult(0));
      });
    }
  }

  /// Only the op that makes a node's results keeps the node's name: constants and sizes beside it
  /// are no nodes of the program.
  void dropNames(const Node &node, Operation *first) {
    if (!first || !first->getNextNode())
      return;
    llvm::SmallPtrSet<Operation *, 2> named;
    forEachTensor(node, *frame().graph, [&](unsigned, StringRef name, const TensorMeta &) {
      if (auto future = frame().futures.find(name); future != frame().futures.end())
        named.insert(future->second.value.getDefiningOp());
      else if (std::optional<Storages::Tensor> tensor = environment.find(name))
        named.insert(environment.storages.lastValue(*tensor).getDefiningOp());
    });
    if (!llvm::any_of(named, [](Operation *op) { return op; }))
      return;
    for (Operation *op = first; op; op = op->getNextNode())
      if (!named.contains(op) && getNodeName(op->getLoc()) == StringRef(node.name))
        op->setLoc(locationOf(builder.getContext(), node, /*withName=*/false));
  }

  LogicalResult importNode(const Node &node, Location loc) {
    Target target = classify(node, builder.getContext());
    if (StringRef pending = environment.findPending(node);
        !pending.empty() && target.kind != Target::Wait)
      return postpone(node, target, pending, loc);
    if (const CustomOp *op = findCustomOp(ops, node))
      return importCustomOp(builder, environment, *op, node, loc);
    switch (target.kind) {
    case Target::ControlFlow:
      if (!hasCollectives())
        return importControlFlow(node, loc);
      [[fallthrough]];
    case Target::Unsupported:
      if (hasCollectives())
        return importOpaque(builder, environment, node, loc);
      return emitError(loc) << "'" << shortTarget(node) << "' is not supported";
    case Target::Sizes:
      return importSizes(node, loc);
    case Target::Nested:
      if (hasCollectives() && isStillToCast(node))
        return importOpaque(builder, environment, node, loc);
      return importNested(node, loc);
    case Target::Dropped:
      return success();
    case Target::Plain:
    case Target::InPlace:
      return hasCollectives() ? importKnownOrOpaque(node, target, loc)
                              : importKnown(node, target, loc);
    case Target::Collective:
      return importCollective(node, target, loc);
    case Target::Wait:
      return importWait(node, loc);
    }
    return failure();
  }

  LogicalResult importKnown(const Node &node, const Target &target, Location loc) {
    return target.kind == Target::InPlace ? importInPlace(node, target, loc)
                                          : importPlain(node, target, loc);
  }

  /// An op that the dialect knows, but not in this use (an argument without a place), is opaque in
  /// this use.
  LogicalResult importKnownOrOpaque(const Node &node, const Target &target, Location loc) {
    // Reading arguments may build views again; those stay.
    for (const NamedArgument &input : node.inputs)
      if (auto *tensor = std::get_if<TensorArg>(&input.value); tensor && !tensor->name.empty())
        if (!environment.tensor(tensor->name, loc))
          return failure();
    Block *block = builder.getInsertionBlock();
    Operation *before = block->empty() ? nullptr : &block->back();
    {
      ScopedDiagnosticHandler silent(builder.getContext(), [](Diagnostic &) { return success(); });
      if (succeeded(importKnown(node, target, loc)))
        return success();
    }
    while (!block->empty() && &block->back() != before)
      block->back().erase();
    return importOpaque(builder, environment, node, loc);
  }

  LogicalResult importSizes(const Node &node, Location loc) {
    bool built = true;
    for (const Argument &output : node.outputs) {
      auto *number = std::get_if<SymIntArg>(&output);
      if (!number || number->constant())
        continue; // bools and floats come from checks that are dropped, or are missed at their use
      if (readsElement(node)) {
        StringRef tensor = tensorArgument(node);
        Value element = tensor.empty() ? Value() : environment.tensor(tensor, loc);
        if (!element)
          return failure();
        frame().items[number->name] = element;
        continue; // an error where it is used as a size
      }
      const SymInt &size = frame().graph->symInts.at(number->name);
      if (!symbols->canGet(size) && !isNumberUsed(*frame().graph, number->name))
        continue;
      FailureOr<OpFoldResult> value = symbols->get(size, loc);
      frame().sizes[number->name] = succeeded(value) ? *value : OpFoldResult();
      built &= succeeded(value);
    }
    return success(built);
  }

  /// `keepGradient`: of the first tensor, if the node is inside `no_grad`.
  FailureOr<Results> build(const Node &node, const Target &target, Location loc,
                           bool keepGradient = false) {
    environment.keepGradientOf(keepGradient ? tensorArgument(node) : StringRef());
    auto done = llvm::scope_exit([&] { environment.keepGradientOf({}); });
    SmallVector<const TensorMeta *> metas;
    SmallVector<StringRef> names;
    forEachTensor(node, *frame().graph, [&](unsigned, StringRef name, const TensorMeta &meta) {
      metas.push_back(&meta);
      names.push_back(name);
    });
    Call call(builder, loc, node, *target.schema, std::move(metas), std::move(names), environment,
              *symbols, &groups);
    for (const TensorMeta *meta : call.results)
      if (!isSupported(meta->type))
        return call.error() << "tensors of element type " << StringRef(elementTypeName(meta->type))
                            << " are not supported";
    for (const SchemaArgument &argument : target.schema->arguments)
      if (argument.otherwise.kind == Default::Required &&
          llvm::none_of(node.inputs,
                        [&](const NamedArgument &input) { return input.name == argument.name; }))
        return call.error() << "the argument '" << StringRef(argument.name) << "' is missing";
    FailureOr<Results> results = buildCall(call, target.overload, target.complex);
    if (failed(results) || failed(refineTypes(call, *results)))
      return failure();
    for (auto [argument, value] : call.getWrites())
      environment.writeStatistic(call.find(argument), value, loc);
    return results;
  }

  /// Gives the results of a node their names by `add(name, value)`.
  LogicalResult nameResults(const Node &node, ArrayRef<Value> results, Location loc,
                            function_ref<void(StringRef, Value, unsigned)> add) {
    bool complete = true;
    forEachTensor(node, *frame().graph, [&](unsigned number, StringRef name, const TensorMeta &) {
      if (number >= results.size())
        complete = false;
      else if (results[number]) // else not produced: an error if it is used
        add(name, results[number], number);
    });
    if (!complete)
      emitError(loc) << "'" << shortTarget(node) << "' makes " << results.size()
                     << " values, but the program names more";
    return success(complete);
  }

  LogicalResult importPlain(const Node &node, const Target &target, Location loc) {
    std::optional<Storages::Tensor> source;
    if (sharesStorage(node, *target.schema, *frame().graph))
      source = environment.find(tensorArgument(node));
    FailureOr<Results> results = build(node, target, loc, /*keepGradient=*/source.has_value());
    if (failed(results))
      return failure();
    return nameResults(node, *results, loc, [&](StringRef name, Value value, unsigned) {
      if (!source)
        frame().tensors[name] = environment.storages.add(value);
      else if (environment.isNoGrad() && returnsOperand(node))
        frame().tensors[name] = *source;
      else
        frame().tensors[name] = environment.addView(*source, value, loc);
    });
  }

  // The functional form computes the new value, which then takes the place of the argument's.
  LogicalResult importInPlace(const Node &node, const Target &target, Location loc) {
    std::optional<Storages::Tensor> self =
        environment.find(tensorArgument(node, target.hasOut ? "out" : ""));
    if (!self)
      return emitError(loc) << "'" << shortTarget(node) << "' has no tensor to update";
    Value old = environment.storages.read(*self, loc);
    if (old && isDetach(node))
      return nameResults(node, old, loc, [&](StringRef name, Value, unsigned) {
        environment.detachInPlace(*self, name, loc);
      });
    FailureOr<Results> results = target.hasOut ? build(withoutOut(node), target, loc)
                                               : build(node, target, loc, /*keepGradient=*/true);
    if (failed(results) || !old)
      return failure();
    if (target.schema->isView && !target.hasOut) // `squeeze_`: the tensor looks at its storage anew
      return nameResults(node, *results, loc, [&](StringRef name, Value value, unsigned) {
        environment.viewInPlace(*self, value, name, loc);
      });
    RankedTensorType type = aten::typeOf(old);
    FailureOr<Value> value = buildCast(builder, loc, results->front(), type.getElementType());
    if (failed(value))
      return failure();
    if (failed(verifyCompatibleShape(aten::shapeOf(*value), type.getShape())))
      return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc)
                            << " changes the shape of a tensor in place, which is not supported";
    environment.write(*self, *value, loc);
    Value now = environment.storages.lastValue(*self);
    return nameResults(node, now, loc, [&](StringRef name, Value, unsigned) {
      frame().tensors[name] = environment.storages.addView(*self, now);
    });
  }

  /// Its graph, in place.
  LogicalResult importNested(const Node &node, Location loc) {
    FailureOr<NestedCall> call = nestedCall(node, loc);
    if (failed(call))
      return failure();
    Frame inner{call->graph, call->noGrad.value_or(environment.isNoGrad())};
    if (failed(environment.bindNames(call->graph->inputs, call->inputs, frame(), inner, loc)))
      return failure();
    auto results =
        llvm::map_to_vector(call->graph->outputs, [](const Argument &output) { return &output; });
    environment.frames.push_back(std::move(inner));
    importNodes();
    Frame done = environment.frames.pop_back_val();
    if (SmallVector<Argument> names = outputNames(node); names.size() == results.size())
      return environment.bindNames(names, results, done, frame(), loc);
    return emitError(loc) << "'" << shortTarget(node) << "' has another number of results than the "
                          << "graph it runs";
  }

  LogicalResult importControlFlow(const Node &node, Location loc) {
    auto run = [&](const Graph &graph, ArrayRef<Value> inputs) -> FailureOr<SmallVector<Value>> {
      environment.frames.push_back(nestedFrame(environment, graph, inputs));
      auto done = llvm::scope_exit([&] { environment.frames.pop_back(); });
      importNodes();
      return nestedResults(environment, node, loc);
    };
    auto results = torch_export::importControlFlow(builder, environment, node, loc, run);
    if (failed(results))
      return failure();
    return nameResults(node, *results, loc, [&](StringRef name, Value value, unsigned) {
      frame().tensors[name] = environment.storages.add(value);
    });
  }

  //===--------------------------------------------------------------------===//
  // Collectives
  //===--------------------------------------------------------------------===//

  LogicalResult importCollective(const Node &node, const Target &target, Location loc) {
    FailureOr<Results> results = build(node, target, loc);
    if (failed(results))
      return failure();
    // The tensors that it writes into, if it does.
    SmallVector<std::optional<Storages::Tensor>> targets;
    for (const NamedArgument &input : node.inputs) {
      const SchemaArgument *argument = target.schema->find(input.name);
      if (!argument || !argument->written)
        continue;
      if (auto *tensor = std::get_if<TensorArg>(&input.value))
        targets.push_back(environment.find(tensor->name));
      else if (auto *list = std::get_if<TensorListArg>(&input.value))
        for (const TensorArg &element : list->tensors)
          targets.push_back(environment.find(element.name));
    }
    targets.resize(results->size());
    return nameResults(node, *results, loc, [&](StringRef name, Value future, unsigned number) {
      frame().futures[name] = {future, targets[number]};
    });
  }

  // Waits of what is no collective in flight (inputs, results of other waits) do nothing.
  LogicalResult importWait(const Node &node, Location loc) {
    auto *tensor = node.inputs.empty() ? nullptr : std::get_if<TensorArg>(&node.inputs[0].value);
    if (!tensor)
      return emitError(loc) << "'" << shortTarget(node) << "' has no tensor to wait for";
    if (failed(force(tensor->name, loc)))
      return failure();
    std::optional<Storages::Tensor> source = environment.find(tensor->name);
    Value value = environment.tensor(tensor->name, loc);
    if (!value)
      return failure();
    return nameResults(node, value, loc, [&](StringRef name, Value now, unsigned) {
      frame().tensors[name] = environment.storages.addView(*source, now);
    });
  }

  // A view of what is in flight is built when that has been waited for.
  LogicalResult postpone(const Node &node, const Target &target, StringRef pending, Location loc) {
    if (!target.schema || !sharesStorage(node, *target.schema, *frame().graph))
      return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc)
                            << " reads '" << pending << "' before its collective is waited for";
    forEachTensor(node, *frame().graph, [&](unsigned, StringRef name, const TensorMeta &) {
      frame().postponed[name] = &node;
    });
    return success();
  }

  // Waits for the collective behind a name, and builds the views between the two.
  LogicalResult force(StringRef name, Location loc) {
    SmallVector<const Node *> views;
    while (const Node *view = frame().postponed.lookup(name)) {
      views.push_back(view);
      name = environment.findPending(*view);
    }
    if (frame().futures.contains(name))
      environment.wait(name, loc);
    for (const Node *view : llvm::reverse(views)) {
      forEachTensor(*view, *frame().graph, [&](unsigned, StringRef made, const TensorMeta &) {
        frame().postponed.erase(made);
      });
      if (failed(importNode(*view, locationOf(builder.getContext(), *view))))
        return failure();
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
    auto add = [&](Value value, DictionaryAttr attribute) {
      if (!value)
        return fail();
      values.push_back(value);
      types.push_back(value.getType());
      attributes.push_back(attribute);
    };
    llvm::StringSet<> returned;
    for (const SignatureOutput &output : signature.outputs)
      if (auto future = frame().futures.find(output.name); future != frame().futures.end() &&
                                                           !future->second.target &&
                                                           returned.insert(output.name).second)
        add(future->second.value, output.attributes); // returned in flight
      else if (failed(force(output.name, file)))
        fail();
      else
        add(environment.tensor(output.name, file), output.attributes);
    // What is updated in place without an output of its own (training IR).
    llvm::DenseSet<unsigned> done;
    for (auto [number, input] : llvm::enumerate(signature.inputs)) {
      StringRef name = program.inputs[number].name;
      std::optional<Storages::Tensor> tensor = environment.find(name);
      if (!tensor || !environment.storages.updated(*tensor))
        continue;
      if (input.constant) {
        emitError(file) << "the constant '" << StringRef(program.inputs[number].target)
                        << "' is updated in place: register it as a buffer";
        fail();
      } else if (done.insert(*input.argument).second) {
        DictionaryAttr mutation = makeMutation(builder.getContext(), program, number);
        renameOutputs(attributes, mutation.getAs<StringAttr>(dist::kNameAttr).getValue());
        add(environment.tensor(name, file), mutation);
      }
    }
    environment.random.writeBack(file, add);
    markBackward(function.getBody().front(), values, attributes);
    func::ReturnOp::create(builder, file, values);
    function.setFunctionType(
        FunctionType::get(builder.getContext(), function.getBody().getArgumentTypes(), types));
    errors |= failed(environment.random.describeArguments(function));
    function.setAllResultAttrs(attributes);
    if (signature.symbols)
      function->setAttr(dist::kSymbolsAttr, signature.symbols);
    if (ArrayAttr constraints = makeConstraints(file, program); constraints && signature.symbols)
      function->setAttr(dist::kConstraintsAttr, constraints);
  }

  const ExportedProgram &program;
  const TensorStore &store;
  const Groups &groups;
  Location file;
  ArrayRef<CustomOp> ops;
  OpBuilder builder;
  Environment environment;
  std::optional<Symbols> symbols;
  bool errors = false;
};

} // namespace

OwningOpRef<ModuleOp> importProgram(const ExportedProgram &program, const TensorStore &tensors,
                                    const ImportOptions &options, MLIRContext *context) {
  Location file = FileLineColLoc::get(context, options.path, 0, 0);
  FailureOr<Groups> groups =
      Groups::find(program, options.groups, llvm::sys::path::stem(options.path), file);
  if (failed(groups) || (groups->empty() && !checkOperators(program, file, options)))
    return {};
  return ProgramImporter(program, tensors, *groups, file, options.ops).run();
}

} // namespace shardc::torch_export
