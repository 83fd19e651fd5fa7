// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/ControlFlow.h"

#include "importers/torch_export/import/NodeTarget.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Expr.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// Of a map or scan.
constexpr int64_t kMaxSlices = 1 << 14;

constexpr StringLiteral kAutocast = "higher_order.wrap_with_autocast";

/// The arguments of a node that runs graphs: a tensor counts as a list of one.
struct GraphsAndTensors {
  SmallVector<const Graph *> graphs;
  SmallVector<SmallVector<Value>> lists;
};

class ControlFlow {
public:
  ControlFlow(OpBuilder &builder, Environment &environment, const Node &node, Location loc,
              RunGraph run)
      : builder(builder), environment(environment), node(node), loc(loc), run(run),
        emit(builder, loc) {}

  FailureOr<Results> import() {
    StringRef name = shortTarget(node);
    bool isCond = name.ends_with(".cond");
    if (failed(read()))
      return failure();
    size_t lists = name.ends_with(".scan") ? 3 : 2;
    if (parts.graphs.size() != (isCond ? 2 : 1) || parts.lists.size() != lists ||
        (isCond && parts.lists[0].size() != 1))
      return error() << "has other arguments than this operator has";
    return isCond ? cond() : repeated(lists == 3);
  }

private:
  InFlightDiagnostic error() {
    return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc) << " ";
  }

  LogicalResult read() {
    for (const NamedArgument &input : node.inputs) {
      SmallVector<TensorArg> names;
      if (auto *graph = std::get_if<GraphArg>(&input.value)) {
        parts.graphs.push_back(graph->graph.get());
        continue;
      }
      if (auto *list = std::get_if<TensorListArg>(&input.value))
        names.assign(list->tensors.begin(), list->tensors.end());
      else if (auto *tensor = std::get_if<TensorArg>(&input.value))
        names.push_back(*tensor);
      else
        return error() << "has an argument that is no tensor, which is not supported";
      auto &values = parts.lists.emplace_back();
      for (const TensorArg &name : names) {
        values.push_back(environment.tensor(name.name, loc));
        if (!values.back())
          return failure();
      }
    }
    return success();
  }

  FailureOr<SmallVector<Value>> runOn(const Graph &graph, ArrayRef<Value> inputs) {
    if (graph.inputs.size() != inputs.size())
      return error() << "gives a graph of " << graph.inputs.size() << " inputs " << inputs.size()
                     << " tensors";
    for (auto [input, value] : llvm::zip_equal(graph.inputs, inputs)) {
      auto *name = std::get_if<TensorArg>(&input);
      auto meta = name ? graph.tensors.find(name->name) : graph.tensors.end();
      if (meta == graph.tensors.end())
        return error() << "runs a graph with an input that is no tensor, which is not supported";
      if (!haveOneType(convertType(builder.getContext(), meta->second), value.getType()))
        return error() << "gives its graph a tensor " << value.getType() << " as '"
                       << StringRef(name->name) << "', which is of another type there";
    }
    return run(graph, inputs);
  }

  static bool haveOneType(Type a, Type b) {
    return a && b && getElementTypeOrSelf(a) == getElementTypeOrSelf(b) &&
           succeeded(verifyCompatibleShape(a, b));
  }

  /// The operand where a branch is chosen. Elsewhere floats have the same value and no gradient, so
  /// that derivatives there that are no numbers do not count, and integers are zero.
  Value gated(Value chosen, Value operand, bool isElse) {
    Type type = aten::typeOf(operand).getElementType();
    Value apart;
    if (isa<FloatType>(type) && !environment.isNoGrad()) {
      auto alias = aten::AliasOp::create(builder, loc, operand);
      alias.setDetached(true);
      apart = alias;
    } else if (isa<IntegerType>(type) && !type.isInteger(1)) {
      apart = emit.zeros(sizesOf(builder, loc, operand), type);
    } else {
      return operand;
    }
    return isElse ? emit.where(chosen, apart, operand) : emit.where(chosen, operand, apart);
  }

  FailureOr<Results> cond() {
    Value chosen = parts.lists[0].front();
    if (!llvm::all_of(aten::shapeOf(chosen), [](int64_t size) { return size == 1; }))
      return error() << "has a condition " << chosen.getType() << ", which is not one element";
    if (aten::typeOf(chosen).getRank() != 0)
      chosen = emit.view(chosen, {});
    chosen = emit.cast(chosen, builder.getI1Type());
    SmallVector<SmallVector<Value>> found;
    for (bool isElse : {false, true}) {
      SmallVector<Value> inputs;
      for (Value operand : parts.lists[1])
        inputs.push_back(gated(chosen, operand, isElse));
      FailureOr<SmallVector<Value>> results = runOn(*parts.graphs[isElse], inputs);
      if (failed(results))
        return failure();
      found.push_back(std::move(*results));
    }
    if (found[0].size() != found[1].size())
      return error() << "has branches of " << found[0].size() << " and " << found[1].size()
                     << " results";
    Results results;
    for (auto [ifTrue, ifFalse] : llvm::zip_equal(found[0], found[1])) {
      if (ifTrue.getType() != ifFalse.getType())
        return error() << "has branches with results of types " << ifTrue.getType() << " and "
                       << ifFalse.getType() << ", which is not supported";
      results.push_back(emit.where(chosen, ifTrue, ifFalse));
    }
    return results;
  }

  /// scan(graph, init, slices, rest): the graph takes states, a slice of each tensor and the rest,
  /// and gives new states and a slice of each result. map has no states.
  FailureOr<Results> repeated(bool isScan) {
    SmallVector<Value> states = isScan ? parts.lists[0] : SmallVector<Value>();
    ArrayRef<Value> tensors = parts.lists[isScan], rest = parts.lists[isScan + 1];
    std::optional<int64_t> count;
    for (Value tensor : tensors) {
      ArrayRef<int64_t> shape = aten::shapeOf(tensor);
      if (shape.empty() || ShapedType::isDynamic(shape[0]) || count.value_or(shape[0]) != shape[0])
        return error() << "runs over a dim of unknown size, which is not supported: export the "
                       << "model with a size there";
      count = shape[0];
    }
    if (!count || *count == 0)
      return error() << "runs over no slices, which is not supported";
    if (*count > kMaxSlices)
      return error() << "runs over " << *count << " slices, of which each has ops of its own; more "
                     << "than " << kMaxSlices << " are not supported";
    SmallVector<SmallVector<Value>> rows;
    size_t numStates = states.size();
    for (int64_t i = 0; i != *count; ++i) {
      SmallVector<Value> inputs = states;
      for (Value tensor : tensors)
        inputs.push_back(sliceAt(tensor, i));
      llvm::append_range(inputs, rest);
      FailureOr<SmallVector<Value>> made = runOn(*parts.graphs[0], inputs);
      if (failed(made))
        return failure();
      if (made->size() < numStates)
        return error() << "runs a graph of fewer results than states";
      for (auto [before, after] : llvm::zip(states, *made))
        if (!haveOneType(before.getType(), after.getType()))
          return error() << "makes of a state " << before.getType() << " another of type "
                         << after.getType();
      states.assign(made->begin(), made->begin() + numStates);
      rows.resize(made->size() - numStates);
      for (auto [row, value] : llvm::zip_equal(rows, ArrayRef(*made).drop_front(numStates)))
        if (row.push_back(value); !haveOneType(row.front().getType(), value.getType()))
          return error() << "makes slices " << row.front().getType() << " and " << value.getType()
                         << " of one result";
    }
    Results results(states.begin(), states.end());
    for (ArrayRef<Value> row : rows)
      results.push_back(aten::StackOp::create(builder, loc, row, /*dim=*/0));
    return results;
  }

  Value sliceAt(Value tensor, int64_t i) {
    Value slice = emit.slice(tensor, 0, builder.getIndexAttr(i), builder.getIndexAttr(i + 1));
    return emit.view(slice, ArrayRef(sizesOf(builder, loc, tensor)).drop_front());
  }

  OpBuilder &builder;
  Environment &environment;
  const Node &node;
  Location loc;
  RunGraph run;
  Emitter emit;
  GraphsAndTensors parts;
};

} // namespace

bool isNestedCall(StringRef target) {
  return target == "higher_order.wrap_with_set_grad_enabled" || target == kAutocast ||
         target == "higher_order.invoke_subgraph";
}

static const bool *flag(const Node &node, size_t i) {
  return i < node.inputs.size() ? std::get_if<bool>(&node.inputs[i].value) : nullptr;
}

bool isStillToCast(const Node &node) {
  const bool *enabled = flag(node, 2);
  return shortTarget(node) == kAutocast && (!enabled || *enabled);
}

// (enabled, graph, inputs...), (device, type, enabled, cached, graph, inputs...) and
// (graph, name, inputs...).
FailureOr<NestedCall> nestedCall(const Node &node, Location loc) {
  NestedCall call{nullptr, {}};
  StringRef name = shortTarget(node);
  for (const NamedArgument &input : node.inputs) {
    bool isGraph = std::holds_alternative<GraphArg>(input.value);
    bool isName = std::holds_alternative<std::string_view>(input.value);
    if (call.graph && !isGraph && !isName)
      call.inputs.push_back(&input.value);
    else if (isGraph)
      call.graph = std::get<GraphArg>(input.value).graph.get();
  }
  if (!call.graph || call.inputs.size() != call.graph->inputs.size())
    return emitError(loc) << "'" << name << "' does not fit the graph it runs";
  if (isStillToCast(node))
    return emitError(loc) << "the types of the ops in " << describePlace(loc)
                          << " are still to be chosen by torch.autocast: export the model with "
                          << "`shardc export`, or after `run_decompositions()`, which write the "
                          << "casts into the program";
  if (const bool *enabled = flag(node, 0))
    call.noGrad = !*enabled;
  return call;
}

SmallVector<Argument> outputNames(const Node &node) {
  SmallVector<Argument> names;
  for (const Argument &output : node.outputs)
    if (auto *list = std::get_if<TensorListArg>(&output))
      llvm::append_range(names, list->tensors);
    else
      names.push_back(output);
  return names;
}

bool isControlFlow(StringRef target) {
  return target == "higher_order.cond" || target == "higher_order.map_impl" ||
         target == "higher_order.scan";
}

Frame nestedFrame(Environment &environment, const Graph &graph, ArrayRef<Value> inputs) {
  Frame frame{&graph, environment.isNoGrad()};
  for (auto [input, value] : llvm::zip_equal(graph.inputs, inputs))
    if (auto *name = std::get_if<TensorArg>(&input))
      frame.copied.push_back(frame.tensors[name->name] = environment.storages.add(value));
  return frame;
}

FailureOr<SmallVector<Value>> nestedResults(Environment &environment, const Node &node,
                                            Location loc) {
  SmallVector<Value> results;
  auto isUpdated = [&](auto operand) { return environment.storages.updated(operand); };
  if (llvm::any_of(environment.frame().copied, isUpdated))
    return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc)
                          << " updates an operand in place, which is not supported: return the "
                          << "new value";
  for (const Argument &output : environment.frame().graph->outputs) {
    auto *name = std::get_if<TensorArg>(&output);
    if (!name)
      return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc)
                            << " runs a graph with a result that is no tensor, which is not "
                            << "supported";
    results.push_back(environment.tensor(name->name, loc));
    if (!results.back())
      return failure();
  }
  return results;
}

FailureOr<Results> importControlFlow(OpBuilder &builder, Environment &environment, const Node &node,
                                     Location loc, RunGraph run) {
  return ControlFlow(builder, environment, node, loc, run).import();
}

} // namespace shardc::torch_export
