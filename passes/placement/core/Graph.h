// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What propagation and placement need to know of a program: tensors, ops with sharding rules, and
// annotations. Plain values; a pass fills a graph from the IR and applies the result.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_GRAPH_H
#define SHARDC_PASSES_PLACEMENT_CORE_GRAPH_H

#include "dialects/sharding/Sharding.h"
#include "dialects/sharding/ShardingRule.h"

#include <unordered_map>
#include <unordered_set>

namespace shardc {

using TensorId = unsigned;
using OpId = unsigned;
inline constexpr unsigned kNone = ~0u;

/// What is asked of one tensor. Axes that are open in `layout` are left to propagation. A shard
/// without sizes, blocks and granule has open extents (L3c): propagation may make them coarser.
struct Annotation {
  TensorId tensor = kNone;
  Layout layout;
  std::vector<Strength> strengths;  ///< one per mesh axis, or empty: all Normal
  std::vector<std::string> origins; ///< one per mesh axis, for messages; or empty
};

/// What a tensor is to become if that is cheap; `given` axes bind. Propagation starts from wishes
/// as it does from annotations, which they give way to.
struct Wish {
  TensorId tensor = kNone;
  Sharding sharding;
};

class PropagationGraph {
public:
  explicit PropagationGraph(Mesh mesh) : mesh(std::move(mesh)) {}

  struct Tensor {
    unsigned shape; ///< index into shapes
    int64_t elementSize;
    OpId producer = kNone; ///< none for an input of the graph
  };
  struct Op {
    unsigned rule;                      ///< index into rules
    unsigned firstOperand, firstResult; ///< into operandTensors, resultTensors
    unsigned numOperands, numResults;
    bool isConstraint = false;
  };

  /// An input (argument, parameter, constant) of the graph.
  TensorId addInput(std::vector<int64_t> shape, int64_t elementSize);
  /// An op whose operands exist already: ops are added in an order of execution. Results are new
  /// tensors; their ids are consecutive from the one returned (kNone where there are none).
  /// `resultElementSizes` has one entry per result.
  TensorId addOp(ShardingRule rule, std::span<const TensorId> operands,
                 const std::vector<std::vector<int64_t>> &resultShapes,
                 std::span<const int64_t> resultElementSizes);
  /// The same with what was interned before: ops that are repeated cost no copies.
  TensorId addOp(unsigned rule, std::span<const TensorId> operands,
                 std::span<const unsigned> resultShapes,
                 std::span<const int64_t> resultElementSizes);
  /// Numbers of equal rules and shapes: indices into `rules` and `shapes`.
  unsigned internRule(ShardingRule rule);
  unsigned internShape(std::vector<int64_t> shape);
  /// The identity on a tensor, whose result has exactly the layout that an annotation asks for
  /// (open axes are decided as for any tensor, never partial). Also for outputs of the graph.
  TensorId addConstraint(TensorId tensor, Layout layout, std::vector<Strength> strengths = {},
                         std::vector<std::string> origins = {});
  /// A tensor that the graph's ops use and that has a layout already, which is final: partial
  /// placements and extents included.
  TensorId addPlacedInput(std::vector<int64_t> shape, int64_t elementSize, Layout layout);
  /// A redistribution that the program has: the identity on a tensor. Where a layout is given, the
  /// result has exactly that already; else it is decided as any tensor's, partial included.
  TensorId addRedistribution(TensorId tensor, std::optional<Layout> layout);
  /// Null where the tensor is still to be placed.
  const Layout *finalLayout(TensorId tensor) const {
    auto found = finalLayouts.find(tensor);
    return found == finalLayouts.end() ? nullptr : &found->second;
  }
  /// Whether the op is a redistribution to a layout that is final.
  bool isFinalRedistribution(OpId op) const {
    return ops[op].isConstraint && finalLayout(results(op)[0]);
  }
  /// `output`, made by addConstraint, is the new value of `input`, an input of the same shape: both
  /// get one layout.
  void tie(TensorId output, TensorId input) { ties.emplace(output, input); }
  /// The input that a tensor is tied to; kNone for others.
  TensorId tiedInput(TensorId output) const {
    auto found = ties.find(output);
    return found == ties.end() ? kNone : found->second;
  }
  /// Asks for the layout of an input of the graph.
  void annotate(Annotation annotation) { annotations.push_back(std::move(annotation)); }
  /// Where the tensor is partial and is asked for whole, nothing needs to be reduced: each rank
  /// reads only what is complete in its part.
  void markOwnRows(TensorId tensor) { ownRows.insert(tensor); }
  bool hasOwnRows(TensorId tensor) const { return ownRows.contains(tensor); }
  void wish(TensorId tensor, Sharding sharding) { wishes.push_back({tensor, std::move(sharding)}); }

  std::span<const TensorId> operands(OpId op) const {
    return std::span(operandTensors).subspan(ops[op].firstOperand, ops[op].numOperands);
  }
  std::span<const TensorId> results(OpId op) const {
    return std::span(resultTensors).subspan(ops[op].firstResult, ops[op].numResults);
  }
  const ShardingRule &rule(OpId op) const { return rules[ops[op].rule]; }
  /// Calls `use(tensor, isResult, slot)` for each operand, then for each result.
  template <typename F> void forSlots(OpId op, F &&use) const {
    for (unsigned i = 0; i < ops[op].numOperands; ++i)
      use(operands(op)[i], false, i);
    for (unsigned i = 0; i < ops[op].numResults; ++i)
      use(results(op)[i], true, i);
  }
  /// Calls `use(tensor, factors of its dims, isResult)`, likewise.
  template <typename F> void forTensors(OpId op, F &&use) const {
    forSlots(op, [&](TensorId tensor, bool isResult, unsigned slot) {
      use(tensor, isResult ? rule(op).results[slot] : rule(op).operands[slot], isResult);
    });
  }
  const std::vector<int64_t> &shape(TensorId tensor) const { return shapes[tensors[tensor].shape]; }
  /// See partsOf (ShardingRule.h).
  std::vector<FactorPart> parts(OpId op) const;
  unsigned numAxes() const { return mesh.numAxes(); }

  /// All that is wrong with the graph: rules that do not fit, annotations that are not valid for
  /// their tensor. Names tensors and ops by id and origin.
  std::vector<std::string> validate() const;

  Mesh mesh;
  std::vector<Tensor> tensors;
  std::vector<Op> ops;
  std::vector<TensorId> operandTensors, resultTensors;
  std::vector<ShardingRule> rules;          ///< distinct
  std::vector<std::vector<int64_t>> shapes; ///< distinct
  std::vector<Annotation> annotations;
  std::vector<Wish> wishes;
  std::unordered_map<TensorId, Layout> finalLayouts;
  std::unordered_map<TensorId, TensorId> ties; ///< output of a constraint -> input
  std::unordered_set<TensorId> ownRows;

private:
  void validateFinal(std::vector<std::string> &errors) const;
  TensorId addIdentity(TensorId tensor, bool isLinear);
  TensorId addTensor(unsigned shape, int64_t elementSize, OpId producer);

  std::unordered_multimap<size_t, unsigned> ruleIds, shapeIds; ///< by hash
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_GRAPH_H
