// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/FunctionRules.h"

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/OpInterfaces.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

/// The same op on some rows of its operands gives those rows of its result.
static bool runsOnPieces(Operation *op) {
  if (op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return false;
  if (std::optional<ViewKind> kind = viewKindOf(op))
    return *kind == ViewKind::Alias || *kind == ViewKind::Copy || *kind == ViewKind::Permutation ||
           *kind == ViewKind::Reshape;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel)
    return false;
  switch (kernel.getKernelForm()) {
  case KernelForm::Elementwise:
  case KernelForm::Rows:
  case KernelForm::Product:
    return true;
  default:
    return false;
  }
}

static bool isStaticTensor(Type type) {
  RankedTensorType tensor = getDeliveredType(type);
  return tensor && tensor.hasStaticShape();
}

FunctionRules::FunctionRules(func::FuncOp function, const ProgramGraph &program)
    : program(program), values(program.graph.numValues()) {
  const Graph &graph = program.graph;
  for (auto [id, argument] : llvm::zip(graph.graphInputs(), function.getArguments()))
    values[id] = argument;
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    Operation *op = program.opOf[node];
    std::span<const ValueId> results = graph.results(node);
    SmallVector<Value> tensors;
    for (Value result : op->getResults())
      if (getDeliveredType(result.getType()))
        tensors.push_back(result);
    // A wait for several collectives is several nodes, and none of them takes part.
    if (tensors.size() == results.size())
      for (auto [id, value] : llvm::zip_equal(results, tensors))
        values[id] = value;
  }
}

std::vector<int64_t> FunctionRules::shapeOf(ValueId value) const {
  if (!values[value] || !isStaticTensor(values[value].getType()))
    return {};
  return getDeliveredType(values[value].getType()).getShape().vec();
}

std::optional<ShardingRule> FunctionRules::ruleOf(NodeId node) const {
  Operation *op = program.opOf[node];
  auto rules = dyn_cast<ShardingRuleOpInterface>(op);
  if (!rules || !runsOnPieces(op) || !llvm::all_of(op->getOperandTypes(), isStaticTensor) ||
      !llvm::all_of(op->getResultTypes(), isStaticTensor))
    return std::nullopt;
  ShardingRule rule = rules.getShardingRule();
  // What a triangle keeps goes by the rows and columns of the whole.
  if (isa<aten::TrilOp, aten::TriuOp>(op))
    for (const DimFactors &factors : llvm::ArrayRef(rule.operands[0]).take_back(2))
      for (unsigned factor : factors)
        rule.factors[factor].inOnePiece = true;
  return rule;
}

std::optional<unsigned> FunctionRules::rowOperandOf(NodeId node) const {
  auto kernel = dyn_cast<KernelOpInterface>(program.opOf[node]);
  if (!kernel || kernel.getKernelForm() != KernelForm::Product)
    return std::nullopt;
  return isa<aten::AddmmOp, aten::BaddbmmOp>(kernel) ? 1 : 0;
}

bool FunctionRules::isDivisible(NodeId collective) const {
  auto op = cast<CollectiveOpInterface>(program.opOf[collective]);
  return op->getNumResults() == 1 && !op.isAsync() && whyWhole(op) == WholeReason::None;
}

std::optional<unsigned> FunctionRules::dimOf(NodeId collective) const {
  auto op = cast<CollectiveOpInterface>(program.opOf[collective]);
  if (!isDivisible(collective))
    return std::nullopt;
  int64_t dim = isa<AllGatherOp>(op) ? op.getConcatDim(0) : op.getSplitDim(0);
  return dim < 0 ? std::nullopt : std::optional<unsigned>(dim);
}

bool FunctionRules::mayAddInTurn(NodeId reduceScatter) const {
  return shardc::mayAddInTurn(cast<ReduceScatterOp>(program.opOf[reduceScatter]));
}

bool shardc::mayAddInTurn(ReduceScatterOp op) {
  CollectiveOpInterface collective = op;
  auto type = dyn_cast<FloatType>(collective.getOperandType(0).getElementType());
  return collective.getReductionOrNone() == Reduction::Sum &&
         addsInTurnAlike(type && type.getWidth() < 32, collective.getGroup().getGroupSize());
}

WholeReason shardc::whyWhole(CollectiveOpInterface op) {
  for (unsigned i = 0; i != op->getNumResults(); ++i) {
    bool gathers = isa<AllGatherOp>(op), scatters = isa<ReduceScatterOp>(op);
    RankedTensorType from = op.getOperandType(i), to = op.getResultTensorType(i);
    if (!from.hasStaticShape() || !to.hasStaticShape())
      return WholeReason::Symbolic;
    if (!gathers && !scatters)
      continue;
    int64_t dim = gathers ? op.getConcatDim(i) : op.getSplitDim(i);
    ArrayRef<int64_t> extents = gathers ? op.getConcatExtents(i) : op.getSplitExtents(i);
    int64_t part = (gathers ? from : to).getDimSize(dim);
    int64_t whole = (gathers ? to : from).getDimSize(dim);
    if (part * op.getGroup().getGroupSize() != whole ||
        llvm::any_of(extents, [&](int64_t extent) { return extent != part; }))
      return WholeReason::Uneven;
  }
  return WholeReason::None;
}
