// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torchscript/plugin/Interpreter.h"

#include "importers/torchscript/plugin/Operators.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>

namespace shardc::torchscript {
namespace {

using c10::IValue;
namespace attr = torch::jit::attr;
namespace prim = torch::jit::prim;

/// A model that takes more steps does not end, or unrolls to more than anybody can compile.
constexpr size_t maxSteps = 2'000'000;
constexpr size_t maxFrames = 200;

/// Module, source and line of where a node was written, innermost last; empty if nothing is known.
std::string lineOf(const torch::jit::Node &node, const std::string &function) {
  torch::jit::SourceRange range = node.sourceRange();
  if (std::optional<torch::jit::SourceRange> original = range.findSourceRangeThatGenerated())
    range = *original;
  auto where = range.file_line_col();
  if (!where || std::get<0>(*where).empty())
    return {};
  return "  File \"" + std::get<0>(*where) + "\", line " + std::to_string(std::get<1>(*where)) +
         ", in " + function + "\n";
}

/// Inside a `with` of this context; of others than PyTorch's what holds outside.
bool setsNoGrad(const IValue &context, bool outside) {
  auto name = context.isObject() ? context.toObject()->type()->name() : std::nullopt;
  if (!name)
    return outside;
  return name->name() == "no_grad" || (outside && name->name() != "enable_grad");
}

} // namespace

Place Interpreter::place() const {
  Place result;
  result.noGrad = !noGrad.empty() && noGrad.back();
  for (const Frame &frame : frames) {
    result.module = frame.module;
    if (frame.current)
      result.trace += lineOf(*frame.current, "forward");
  }
  if (!result.trace.empty())
    result.trace.pop_back();
  return result;
}

std::string Interpreter::describePlace() const {
  Place where = place();
  std::string op;
  if (!frames.empty() && frames.back().current)
    op = std::string("'") + frames.back().current->kind().toQualString() + "' of ";
  return op + where.describe();
}

IValue Interpreter::run(torch::jit::Function &function, Values arguments) {
  Values results = callFunction(function, std::move(arguments));
  TORCH_CHECK(results.size() == 1, "the function has no result");
  return results.front();
}

Interpreter::Values Interpreter::callFunction(torch::jit::Function &function, Values arguments) {
  TORCH_CHECK(frames.size() < maxFrames, "calls are nested too deeply");
  std::shared_ptr<torch::jit::Graph> graph = torch::jit::toGraphFunction(function).graph();
  TORCH_CHECK(arguments.size() == graph->inputs().size(), "'", function.name(), "' takes ",
              graph->inputs().size(), " arguments, not ", arguments.size());
  Frame frame;
  if (!frames.empty())
    frame.module = frames.back().module;
  if (!arguments.empty() && arguments[0].isObject())
    if (auto path = paths.find(arguments[0].toObject().get()); path != paths.end())
      frame.module = path->second;
  frames.push_back(std::move(frame));
  Environment values;
  for (size_t i = 0; i < arguments.size(); ++i)
    values[graph->inputs()[i]] = std::move(arguments[i]);
  Values results = runBlock(*graph->block(), values);
  frames.pop_back();
  return results;
}

Interpreter::Values Interpreter::runBlock(const torch::jit::Block &block, Environment &values) {
  for (const Node *node : block.nodes())
    runNode(*node, values);
  Values results;
  for (const Value *output : block.outputs())
    results.push_back(values.at(output));
  return results;
}

void Interpreter::runNode(const Node &node, Environment &values) {
  TORCH_CHECK(++steps <= maxSteps, "the model takes more than ", maxSteps, " steps");
  Values arguments;
  for (const Value *input : node.inputs())
    arguments.push_back(values.at(input));
  const Node *outer = frames.back().current;
  frames.back().current = &node;
  Values results = evaluate(node, arguments, values);
  frames.back().current = outer;
  TORCH_CHECK(results.size() == node.outputs().size(), node.kind().toQualString(), " makes ",
              results.size(), " values, not ", node.outputs().size());
  for (size_t i = 0; i < results.size(); ++i)
    values[node.outputs()[i]] = std::move(results[i]);
}

IValue Interpreter::attributeOf(const IValue &object, const std::string &name) {
  c10::intrusive_ptr<c10::ivalue::Object> owner = object.toObject();
  if (std::optional<size_t> slot = owner->type()->findAttributeSlot(name))
    return owner->getSlot(*slot);
  return owner->type()->getConstant(name);
}

Interpreter::Values Interpreter::runIf(const Node &node, Environment &values) {
  const IValue &condition = values.at(node.input());
  return runBlock(*node.blocks()[condition.toBool() ? 0 : 1], values);
}

Interpreter::Values Interpreter::runLoop(const Node &node, Environment &values) {
  // Inputs: most iterations, first condition, carried values. The body's outputs: condition,
  // carried.
  int64_t most = values.at(node.inputs()[0]).toInt();
  bool goesOn = values.at(node.inputs()[1]).toBool();
  Values carried;
  for (const Value *input : node.inputs().slice(2))
    carried.push_back(values.at(input));
  const torch::jit::Block &body = *node.blocks()[0];
  for (int64_t i = 0; i < most && goesOn; ++i) {
    TORCH_CHECK(++steps <= maxSteps, "the model takes more than ", maxSteps, " steps");
    values[body.inputs()[0]] = i;
    for (size_t k = 0; k < carried.size(); ++k)
      values[body.inputs()[k + 1]] = carried[k];
    Values results = runBlock(body, values);
    goesOn = results.front().toBool();
    carried.assign(results.begin() + 1, results.end());
  }
  return carried;
}

Interpreter::Values Interpreter::evaluate(const Node &node, const Values &arguments,
                                          Environment &values) {
  static const c10::Symbol data = c10::Symbol::prim("data"); // without gradient
  if (node.kind() == data)
    return {arguments[0]};
  switch (node.kind()) {
  case prim::Constant: {
    if (node.output()->type()->kind() == c10::TypeKind::FunctionType)
      return {IValue()}; // called by its type
    std::optional<IValue> value = torch::jit::toIValue(node.output());
    TORCH_CHECK(value, "a constant of type ", node.output()->type()->str(), " has no value");
    if (value->isTensor() && value->toTensor().numel() > maxKnownElements)
      return {program.constant(value->toTensor())};
    return {*value};
  }
  case prim::GetAttr:
    return {attributeOf(arguments[0], node.s(attr::name))};
  case prim::SetAttr: {
    c10::intrusive_ptr<c10::ivalue::Object> owner = arguments[0].toObject();
    owner->setSlot(owner->type()->getAttributeSlot(node.s(attr::name)), arguments[1]);
    return {};
  }
  case prim::CallMethod: {
    torch::jit::Function &method = arguments[0].toObject()->type()->getMethod(node.s(attr::name));
    return callFunction(method, arguments);
  }
  case prim::CallFunction: {
    auto type = node.inputs()[0]->type()->expect<c10::FunctionType>();
    return callFunction(*type->function(), Values(arguments.begin() + 1, arguments.end()));
  }
  case prim::If:
    return runIf(node, values);
  case prim::Loop:
    return runLoop(node, values);
  case prim::ListConstruct: {
    auto type = node.output()->type()->expect<c10::ListType>();
    c10::impl::GenericList list(type->getElementType());
    for (const IValue &item : arguments)
      list.push_back(item);
    return {list};
  }
  case prim::TupleConstruct: {
    auto type = node.output()->type()->expect<c10::TupleType>();
    if (type->name())
      return {c10::ivalue::Tuple::createNamed(arguments, type)};
    return {c10::ivalue::Tuple::create(arguments)};
  }
  case prim::DictConstruct: {
    auto type = node.output()->type()->expect<c10::DictType>();
    c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
    for (size_t i = 0; i + 1 < arguments.size(); i += 2)
      dict.insert_or_assign(arguments[i], arguments[i + 1]);
    return {dict};
  }
  case prim::ListUnpack: {
    Values items = arguments[0].toListRef().vec();
    TORCH_CHECK(items.size() == node.outputs().size(), "a list of ", items.size(),
                " values is unpacked into ", node.outputs().size());
    return items;
  }
  case prim::TupleUnpack:
    return arguments[0].toTuple()->elements().vec();
  case prim::TupleIndex: {
    const auto &items = arguments[0].toTuple()->elements();
    int64_t at = arguments[1].toInt();
    at += at < 0 ? static_cast<int64_t>(items.size()) : 0;
    TORCH_CHECK(at >= 0 && at < static_cast<int64_t>(items.size()), "a tuple has no element ", at);
    return {items[static_cast<size_t>(at)]};
  }
  case prim::TupleSlice: {
    const auto &items = arguments[0].toTuple()->elements();
    int64_t begin = node.i(attr::beg), end = node.i(attr::end);
    TORCH_CHECK(begin >= 0 && begin <= end && end <= static_cast<int64_t>(items.size()),
                "a tuple is sliced outside of its elements");
    Values part;
    for (int64_t i = begin; i < end; ++i)
      part.push_back(items[static_cast<size_t>(i)]);
    return {c10::ivalue::Tuple::create(std::move(part))};
  }
  case prim::CreateObject: {
    auto type = node.output()->type()->expect<c10::ClassType>();
    return {c10::ivalue::Object::create(c10::StrongTypePtr(type->compilation_unit(), type),
                                        type->numAttributes())};
  }
  case prim::RaiseException:
    TORCH_CHECK(false, "the model raises an error for these inputs: ", arguments[0]);
  case prim::Print:
  case torch::jit::aten::warn:
    return {};
  case prim::Uninitialized:
    return {IValue()};
  case prim::unchecked_cast:
  case prim::unchecked_unwrap_optional:
    return {arguments[0]};
  case prim::Enter:
    noGrad.push_back(setsNoGrad(arguments[0], !noGrad.empty() && noGrad.back()));
    return {IValue()};
  case prim::Exit:
    noGrad.pop_back();
    return Values(node.outputs().size());
  default:
    break;
  }
  return runOperator(node, arguments, program, place());
}

} // namespace shardc::torchscript
