// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/NodeTarget.h"

#include "importers/torch_export/import/ControlFlow.h"
#include "importers/torch_export/import/CustomOps.h"
#include "importers/torch_export/import/ProgramImporter.h"
#include "importers/torch_export/program/Metadata.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

bool makesNumbersOnly(const Node &node) {
  return !node.outputs.empty() && llvm::all_of(node.outputs, [](const Argument &output) {
    return std::holds_alternative<SymIntArg>(output) ||
           std::holds_alternative<SymBoolArg>(output) ||
           std::holds_alternative<SymFloatArg>(output);
  });
}

bool isContiguous(const TensorMeta &meta) {
  int64_t expected = 1;
  if (meta.strides.size() != meta.sizes.size())
    return false;
  // Of symbolic sizes the values in the example decide: PyTorch guards on layouts.
  for (size_t d = meta.sizes.size(); d-- > 0;) {
    if (meta.sizes[d].value != 1 && meta.strides[d].value != expected)
      return false;
    expected *= std::max<int64_t>(meta.sizes[d].value, 1);
  }
  return true;
}

const TensorMeta *firstMeta(ArrayRef<Argument> arguments, const Graph &graph) {
  for (const Argument &argument : arguments) {
    StringRef name;
    if (auto *tensor = std::get_if<TensorArg>(&argument))
      name = tensor->name;
    else if (auto *list = std::get_if<TensorListArg>(&argument); list && !list->tensors.empty())
      name = list->tensors.front().name;
    auto found = graph.tensors.find(name);
    if (found != graph.tensors.end())
      return &found->second;
  }
  return nullptr;
}

/// Whether a node that is a dropout drops anything; else it returns its input.
bool drops(const Node &node) {
  for (const NamedArgument &input : node.inputs) {
    auto *train = std::get_if<bool>(&input.value);
    if (input.name == "train" && train && !*train)
      return false;
    auto *p = std::get_if<double>(&input.value);
    if (input.name == "p" && p && *p == 0)
      return false;
  }
  return true;
}

bool isTensor(const Argument &argument) {
  return std::holds_alternative<TensorArg>(argument) ||
         std::holds_alternative<TensorListArg>(argument);
}

/// Whether an overload takes what the node has, besides the argument `out` if it `hasOut`.
bool takesArguments(const Schema &schema, const Node &node, bool hasOut) {
  size_t taken = 0;
  for (const SchemaArgument &argument : schema.arguments) {
    auto given = llvm::find_if(
        node.inputs, [&](const NamedArgument &input) { return input.name == argument.name; });
    if (given == node.inputs.end()) {
      if (argument.otherwise.kind == Default::Required)
        return false;
      continue;
    }
    ++taken;
    bool wantsTensor =
        argument.type == ArgumentType::Tensor || argument.type == ArgumentType::TensorList;
    bool isNone = argument.optional && std::holds_alternative<NoneArg>(given->value);
    if (!isNone && wantsTensor != isTensor(given->value))
      return false;
  }
  return taken + (hasOut ? 1 : 0) == node.inputs.size();
}

/// "div.Tensor" for a node of div.out, "floor_divide.default" for one of floor_divide_.Tensor: the
/// overload of the packet that returns what the node writes. Empty if there is none.
std::string functionalForm(const Node &node, StringRef packet, bool hasOut) {
  for (const Schema &schema : allSchemas())
    if (StringRef(schema.overload).split('.').first == packet &&
        takesArguments(schema, node, hasOut))
      return std::string(schema.overload);
  return "";
}

} // namespace

bool readsElement(const Node &node) {
  StringRef name = shortTarget(node);
  return (name == "aten.item.default" || name == "aten._local_scalar_dense.default") &&
         !node.inputs.empty();
}

bool isNumberUsed(const Graph &graph, StringRef name) {
  auto names = [&](const Argument &argument) {
    auto isIt = [&](const SymIntArg &number) { return StringRef(number.name) == name; };
    if (auto *number = std::get_if<SymIntArg>(&argument))
      return isIt(*number);
    auto *list = std::get_if<SymIntListArg>(&argument);
    return list && llvm::any_of(list->values, isIt);
  };
  return llvm::any_of(graph.outputs, names) || llvm::any_of(graph.nodes, [&](const Node &node) {
           StringRef target = shortTarget(node);
           bool isCheck = target.starts_with("aten._assert_") ||
                          target.starts_with("aten.sym_constrain_range");
           return !makesNumbersOnly(node) && !isCheck &&
                  llvm::any_of(node.inputs,
                               [&](const NamedArgument &input) { return names(input.value); });
         });
}

StringRef shortTarget(const Node &node) {
  StringRef target = node.target;
  target.consume_front("torch.ops.");
  return target;
}

StringRef tensorArgument(const Node &node, StringRef argument) {
  for (const NamedArgument &input : node.inputs)
    if (argument.empty() || argument == StringRef(input.name)) {
      auto *tensor = std::get_if<TensorArg>(&input.value);
      return tensor ? StringRef(tensor->name) : StringRef();
    }
  return {};
}

Node withoutOut(const Node &node) {
  Node functional = node;
  llvm::erase_if(functional.inputs, [](const NamedArgument &input) { return input.name == "out"; });
  return functional;
}

Target classify(const Node &node, MLIRContext *context) {
  Target target;
  StringRef name = shortTarget(node);
  if (makesNumbersOnly(node)) {
    target.kind = Target::Sizes;
    return target;
  }
  if (isNestedCall(name) || isControlFlow(name)) {
    target.kind = isNestedCall(name) ? Target::Nested : Target::ControlFlow;
    return target;
  }
  bool isAten = name.consume_front("aten.");
  auto [packet, overload] = name.rsplit('.');
  bool inPlace = isAten && packet.ends_with("_") && !packet.ends_with("__");
  std::string functional = (packet.drop_back(inPlace) + "." + overload).str();
  // x <<= 1 is __ilshift__ of __lshift__.
  if (isAten && packet.starts_with("__i") && packet.ends_with("__")) {
    std::string plain = ("__" + packet.drop_front(3) + "." + overload).str();
    if (findOverload(plain)) {
      inPlace = true;
      functional = plain;
    }
  }
  bool hasOut = isAten && overload.ends_with("out") && !tensorArgument(node, "out").empty();
  inPlace |= hasOut;
  if (hasOut || (inPlace && !findOverload(functional) && !findComplexOverload(functional)))
    functional = functionalForm(node, packet.drop_back(packet.ends_with("_")), hasOut);
  // Some in-place overloads have no functional form of their name and arguments, and are listed.
  if (findOverload(name))
    functional = name.str();
  target.overload = findOverload(functional);
  target.complex = findComplexOverload(functional);
  target.schema = findSchema(functional);
  target.hasOut = hasOut;
  if ((!target.overload && !target.complex) || !target.schema)
    return {};
  if (!target.overload) {
    target.kind = inPlace ? Target::InPlace : Target::Plain;
    return target;
  }
  switch (target.overload->kind) {
  case Overload::ByName:
  case Overload::Backward:
    if (!RegisteredOperationName::lookup(target.overload->op, context))
      return {};
    target.kind = inPlace ? Target::InPlace : Target::Plain;
    break;
  case Overload::Special:
  case Overload::Parts:
    target.kind = inPlace ? Target::InPlace : Target::Plain;
    break;
  case Overload::Dropped:
    target.kind = Target::Dropped;
    break;
  case Overload::View:
    break; // stays unsupported, but is known to be a view
  case Overload::Collective:
    target.kind = Target::Collective;
    break;
  case Overload::Wait:
    target.kind = Target::Wait;
    break;
  }
  return target;
}

Location locationOf(MLIRContext *context, const Node &node, bool withName) {
  SourceLine source = sourceLine(node.stackTrace);
  return makeModelLocation(context, withName ? StringRef(node.name) : StringRef(),
                           modulePath(node.moduleStack), source.file, source.line);
}

/// `to` with copy=True.
static bool asksForCopy(const Node &node) {
  return llvm::any_of(node.inputs, [](const NamedArgument &input) {
    auto *flag = std::get_if<bool>(&input.value);
    return input.name == "copy" && flag && *flag;
  });
}

bool sharesStorage(const Node &node, const Schema &schema, const Graph &graph) {
  StringRef packet = StringRef(schema.overload).split('.').first;
  if (packet.ends_with("dropout") && node.outputs.size() == 1)
    return !drops(node);
  // Views of which the schema says nothing.
  bool isAtLeast = packet.starts_with("atleast_") && schema.find("self");
  if (!(schema.isView || isAtLeast || packet == "type_as") || node.inputs.empty())
    return false;
  const TensorMeta *source = firstMeta(node.inputs.front().value, graph);
  const TensorMeta *result = firstMeta(node.outputs, graph);
  if (!source || !result)
    return true;
  // These copy only where they must.
  if (packet == "type_as")
    return source->type == result->type;
  if (packet == "to" || packet == "contiguous")
    return !asksForCopy(node) && source->type == result->type && source->strides == result->strides;
  if (packet.starts_with("reshape") || packet == "flatten" || packet == "ravel")
    return isContiguous(*source) || !isContiguous(*result);
  return true;
}

bool isDetach(const Node &node) { return shortTarget(node) == "aten.detach_.default"; }

bool returnsOperand(const Node &node) {
  StringRef target = shortTarget(node);
  target.consume_front("aten.");
  StringRef packet = target.split('.').first;
  return (packet == "to" && !asksForCopy(node)) || packet == "contiguous" || packet == "type_as" ||
         (packet.ends_with("dropout") && !drops(node));
}

bool checkOperators(const ExportedProgram &program, Location file, const ImportOptions &options) {
  struct Uses {
    size_t count = 0;
    SmallVector<std::string, 3> places;
  };
  llvm::MapVector<StringRef, Uses> unsupported;
  size_t total = 0;
  auto visit = [&](auto &visit, const Graph &graph) -> void {
    for (const Node &node : graph.nodes) {
      Target target = classify(node, file.getContext());
      if (target.kind == Target::Nested || target.kind == Target::ControlFlow)
        for (const NamedArgument &input : node.inputs)
          if (auto *nested = std::get_if<GraphArg>(&input.value))
            visit(visit, *nested->graph);
      if (target.kind != Target::Unsupported || findCustomOp(options.ops, node))
        continue;
      Uses &uses = unsupported[shortTarget(node)];
      ++uses.count;
      ++total;
      if (uses.places.size() < 3)
        uses.places.push_back(describePlace(locationOf(file.getContext(), node)));
    }
  };
  visit(visit, program.graph);
  if (unsupported.empty())
    return true;
  InFlightDiagnostic error =
      emitError(file) << "operators that are not supported: " << unsupported.size()
                      << ", uses: " << total
                      << (options.isDecomposed ? ". Write the model without them, "
                                               : ". Export the model with `shardc export`, which "
                                                 "decomposes most, ")
                      << "register functions for them as docs/custom-ops.md says, or add them as "
                         "docs/adding-an-op.md does:";
  for (auto &[name, uses] : unsupported) {
    error << "\n  " << name << ", " << uses.count << (uses.count == 1 ? " use: " : " uses: ");
    llvm::interleaveComma(uses.places, error);
    if (uses.count > uses.places.size())
      error << ", ...";
  }
  return false;
}

} // namespace shardc::torch_export
