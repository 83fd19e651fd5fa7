// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Graph.h"

#include "dialects/sharding/RuleBuilder.h"

#include <algorithm>

namespace shardc {

template <typename T>
static unsigned intern(std::vector<T> &values, std::unordered_multimap<size_t, unsigned> &ids,
                       size_t hash, T value) {
  auto [begin, end] = ids.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (values[it->second] == value)
      return it->second;
  unsigned id = static_cast<unsigned>(values.size());
  values.push_back(std::move(value));
  ids.emplace(hash, id);
  return id;
}

unsigned PropagationGraph::internRule(ShardingRule rule) {
  size_t hash = rule.hash();
  return intern(rules, ruleIds, hash, std::move(rule));
}

unsigned PropagationGraph::internShape(std::vector<int64_t> shape) {
  size_t hash = shape.size();
  for (int64_t size : shape)
    hash = hashCombine(hash, static_cast<size_t>(size));
  return intern(shapes, shapeIds, hash, std::move(shape));
}

TensorId PropagationGraph::addTensor(unsigned shape, int64_t elementSize, OpId producer) {
  tensors.push_back({shape, elementSize, producer});
  return static_cast<TensorId>(tensors.size() - 1);
}

TensorId PropagationGraph::addInput(std::vector<int64_t> shape, int64_t elementSize) {
  return addTensor(internShape(std::move(shape)), elementSize, kNone);
}

TensorId PropagationGraph::addOp(ShardingRule rule, std::span<const TensorId> operands,
                                 const std::vector<std::vector<int64_t>> &resultShapes,
                                 std::span<const int64_t> resultElementSizes) {
  std::vector<unsigned> shapeIds;
  for (const std::vector<int64_t> &shape : resultShapes)
    shapeIds.push_back(internShape(shape));
  return addOp(internRule(std::move(rule)), operands, shapeIds, resultElementSizes);
}

TensorId PropagationGraph::addOp(unsigned rule, std::span<const TensorId> operands,
                                 std::span<const unsigned> resultShapes,
                                 std::span<const int64_t> resultElementSizes) {
  OpId id = static_cast<OpId>(ops.size());
  Op op;
  op.rule = rule;
  op.firstOperand = static_cast<unsigned>(operandTensors.size());
  op.numOperands = static_cast<unsigned>(operands.size());
  op.firstResult = static_cast<unsigned>(resultTensors.size());
  op.numResults = static_cast<unsigned>(resultShapes.size());
  operandTensors.insert(operandTensors.end(), operands.begin(), operands.end());
  for (size_t i = 0; i < resultShapes.size(); ++i)
    resultTensors.push_back(addTensor(resultShapes[i], resultElementSizes[i], id));
  ops.push_back(op);
  return resultShapes.empty() ? kNone : resultTensors[op.firstResult];
}

TensorId PropagationGraph::addIdentity(TensorId tensor, bool isLinear) {
  std::vector<int64_t> dims = shape(tensor);
  int64_t elementSize = tensors[tensor].elementSize;
  RuleBuilder identity = RuleBuilder::ofShapes({dims}, {dims}).pointwise().movesDataOnly();
  if (isLinear)
    identity.linear(0);
  TensorId result =
      addOp(identity.build(), std::span(&tensor, 1), {dims}, std::span(&elementSize, 1));
  ops.back().isConstraint = true;
  return result;
}

TensorId PropagationGraph::addPlacedInput(std::vector<int64_t> shape, int64_t elementSize,
                                          Layout layout) {
  TensorId tensor = addInput(std::move(shape), elementSize);
  finalLayouts.emplace(tensor, std::move(layout));
  return tensor;
}

TensorId PropagationGraph::addRedistribution(TensorId tensor, std::optional<Layout> layout) {
  TensorId result = addIdentity(tensor, /*isLinear=*/true);
  if (layout)
    finalLayouts.emplace(result, std::move(*layout));
  return result;
}

TensorId PropagationGraph::addConstraint(TensorId tensor, Layout layout,
                                         std::vector<Strength> strengths,
                                         std::vector<std::string> origins) {
  TensorId result = addIdentity(tensor, /*isLinear=*/false);
  annotate({result, std::move(layout), std::move(strengths), std::move(origins)});
  return result;
}

std::vector<FactorPart> PropagationGraph::parts(OpId op) const {
  const std::vector<Factor> &factors = rule(op).factors;
  if (std::none_of(factors.begin(), factors.end(), [](const Factor &f) { return f.hasParts(); }))
    return {};
  std::vector<std::vector<int64_t>> of[2];
  forSlots(
      op, [&](TensorId tensor, bool isResult, unsigned) { of[isResult].push_back(shape(tensor)); });
  return partsOf(rule(op), of[false], of[true]);
}

void PropagationGraph::validateFinal(std::vector<std::string> &errors) const {
  for (auto &[tensor, layout] : finalLayouts) {
    std::string where = "layout " + layout.str() + " of tensor " + std::to_string(tensor);
    if (!(layout.mesh == mesh))
      errors.push_back(where + ": its mesh is not that of the graph");
    for (const std::string &error : layout.validate(shape(tensor)))
      errors.push_back(where + ": " + error);
  }
  for (const Wish &wish : wishes) {
    std::string where = "wish for tensor " + std::to_string(wish.tensor);
    if (!(wish.sharding.mesh == mesh))
      errors.push_back(where + ": its mesh is not that of the graph");
    if (finalLayout(wish.tensor))
      errors.push_back(where + ": the tensor has a layout already");
    for (const std::string &error : wish.sharding.validateShape(shape(wish.tensor)))
      errors.push_back(where + ": " + error);
  }
}

std::vector<std::string> PropagationGraph::validate() const {
  std::vector<std::string> errors = mesh.validate();
  std::vector<bool> annotated(tensors.size(), false);
  for (const Annotation &a : annotations) {
    if (a.tensor >= tensors.size()) {
      errors.push_back("an annotation names tensor " + std::to_string(a.tensor) +
                       ", which does not exist");
      continue;
    }
    std::string where = "annotation of tensor " + std::to_string(a.tensor);
    for (const std::string &origin : a.origins)
      if (!origin.empty()) {
        where += " (" + origin + ")";
        break;
      }
    if (!(a.layout.mesh == mesh))
      errors.push_back(where + ": its mesh is not that of the graph");
    for (const std::string &error : a.layout.validate(shape(a.tensor), /*allowOpen=*/true))
      errors.push_back(where + ": " + error);
    OpId producer = tensors[a.tensor].producer;
    if (producer != kNone && !ops[producer].isConstraint)
      errors.push_back(where + ": the tensor is made by an op; put a constraint on it instead");
    if (finalLayout(a.tensor))
      errors.push_back(where + ": the tensor has a layout already");
    if (annotated[a.tensor])
      errors.push_back(where + ": the tensor is annotated twice");
    annotated[a.tensor] = true;
  }
  validateFinal(errors);
  for (auto [output, input] : ties) {
    auto isInput = [&](TensorId t) { return t < tensors.size() && tensors[t].producer == kNone; };
    bool isOutput =
        output < tensors.size() && !isInput(output) && ops[tensors[output].producer].isConstraint;
    if (!isOutput || !isInput(input) || shape(output) != shape(input))
      errors.push_back("tensor " + std::to_string(output) + " is tied to tensor " +
                       std::to_string(input) +
                       ": a constraint's result and an input of its shape may be tied");
  }
  for (OpId id = 0; id < ops.size(); ++id) {
    const ShardingRule &r = rule(id);
    bool fits = r.operands.size() == ops[id].numOperands && r.results.size() == ops[id].numResults;
    for (size_t i = 0; fits && i < r.operands.size(); ++i)
      fits = r.operands[i].size() == shape(operands(id)[i]).size();
    for (size_t i = 0; fits && i < r.results.size(); ++i)
      fits = r.results[i].size() == shape(results(id)[i]).size();
    if (!fits)
      errors.push_back("op " + std::to_string(id) + ": its sharding rule " + r.str() +
                       " does not fit its operands and results");
  }
  return errors;
}

} // namespace shardc
