// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/ProgramGraph.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/GroupText.h"
#include "dialects/dist/InPlace.h"
#include "dialects/dist/StateArguments.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/collectives/analysis/LocalCosts.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

#include <set>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

/// Has no memory of its own.
static bool isView(Operation *op) {
  if (isa<LeaveMeshOp, EnterMeshOp>(op))
    return true;
  std::optional<ViewKind> kind = viewKindOf(op);
  return kind && *kind != ViewKind::Copy;
}

namespace {

class GraphBuilder {
public:
  GraphBuilder(func::FuncOp function, const LocalCosts &costs) : function(function), costs(costs) {}

  FailureOr<ProgramGraph> run() {
    findUpdates();
    for (Value argument : function.getArguments())
      program.graph.addInput(define(argument));
    for (Operation &op : function.getBody().front()) {
      if (op.getNumRegions() != 0)
        return op.emitOpError("is control flow: the order of collectives is decided in programs "
                              "without it, where it is the same on every rank");
      if (op.hasTrait<OpTrait::IsTerminator>())
        for (Value value : op.getOperands()) {
          if (getDeliveredType(value.getType())) // a number takes no memory to the end
            program.graph.addOutput(values.lookup(value));
        }
      else
        add(&op);
    }
    std::vector<std::string> errors;
    if (program.graph.finalize(errors))
      return std::move(program);
    for (const std::string &error : errors)
      function.emitOpError("cannot be optimised: ") << error;
    return failure();
  }

private:
  /// New values of parameters that are computed, or delivered, in the memory of the old ones.
  void findUpdates() {
    Operation *end = function.getBody().front().getTerminator();
    for (auto [result, argument] : llvm::enumerate(findStateArguments(function))) {
      Value update = end->getOperand(result);
      Operation *op = argument ? update.getDefiningOp() : nullptr;
      if (!op || isView(op))
        continue;
      updates.insert(update);
      if (auto wait = dyn_cast<WaitOp>(op))
        updates.insert(wait.getFutures()[cast<OpResult>(update).getResultNumber()]);
    }
  }

  /// The value that a Value is, or becomes once it has been waited for.
  ValueId define(Value value) {
    ValueId id = none;
    if (RankedTensorType type = getDeliveredType(value.getType()))
      id = program.graph.addTensor(updates.contains(value) ? 0 : costs.bytesOf(value),
                                   codeOf(type.getElementType()));
    else
      id = program.graph.addScalar();
    values[value] = id;
    return id;
  }

  uint32_t codeOf(Type elementType) {
    return elementTypes.try_emplace(elementType, elementTypes.size()).first->second;
  }

  std::vector<ValueId> defineAll(ValueRange results) {
    std::vector<ValueId> ids;
    for (Value result : results)
      ids.push_back(define(result));
    return ids;
  }

  std::vector<ValueId> useAll(ValueRange operands) {
    std::vector<ValueId> ids;
    for (Value operand : operands)
      ids.push_back(values.lookup(operand));
    return ids;
  }

  void record(NodeId node, Operation *op) {
    program.opOf.resize(node + 1);
    program.opOf[node] = op;
  }

  /// Plans and files with durations go by names: no two nodes have one.
  std::string nameOf(Operation *op) {
    StringRef known = getNodeName(op->getLoc());
    std::string name = (known.empty() ? op->getName().getStringRef() : known).str();
    for (unsigned *count = &timesNamed[name]; (*count)++ != 0; count = &timesNamed[name])
      name += "_" + std::to_string(*count - 1);
    return name;
  }

  void addNode(NodeClass nodeClass, Operation *op, std::span<const ValueId> operands,
               std::span<const ValueId> results) {
    double us =
        nodeClass == NodeClass::Compute || nodeClass == NodeClass::InPlace ? costs.kernelUs(op) : 0;
    record(program.graph.addNode(nodeClass, nameOf(op), operands, results, us), op);
  }

  void add(Operation *op) {
    if (auto wait = dyn_cast<WaitOp>(op))
      return addWait(wait);
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      return addCollective(collective);
    std::vector<ValueId> operands = useAll(op->getOperands());
    if (auto opaque = dyn_cast<aten::OpaqueOp>(op))
      return addOpaque(opaque, std::move(operands));
    NodeClass nodeClass = NodeClass::Compute;
    if (isView(op))
      nodeClass = NodeClass::Alias;
    else if (isa<aten::ConstantOp>(op))
      nodeClass = NodeClass::Empty;
    else if (llvm::none_of(op->getResultTypes(),
                           [](Type type) { return isa<RankedTensorType>(type); }) &&
             isMemoryEffectFree(op))
      nodeClass = NodeClass::Scalar;
    if (!isMemoryEffectFree(op))
      operands.push_back(effects());
    std::vector<ValueId> results = defineAll(op->getResults());
    if (!isMemoryEffectFree(op))
      results.push_back(lastEffect = program.graph.addScalar());
    addNode(nodeClass, op, operands, results);
  }

  /// Ops that may do more than their results say keep their order: each takes a scalar that the one
  /// before makes.
  ValueId effects() {
    if (lastEffect == none) {
      lastEffect = program.graph.addScalar();
      program.graph.addInput(lastEffect);
    }
    return lastEffect;
  }

  void addOpaque(aten::OpaqueOp op, std::vector<ValueId> operands) {
    NodeClass nodeClass = NodeClass::Compute;
    if (op->getNumResults() == 1 && op.getAliasedOperand(0)) {
      nodeClass = op.getInPlace() ? NodeClass::InPlace : NodeClass::Alias;
      // What is shared comes first.
      std::rotate(operands.begin(), operands.begin() + *op.getAliasedOperand(0),
                  operands.begin() + *op.getAliasedOperand(0) + 1);
    }
    operands.push_back(effects());
    std::vector<ValueId> results = defineAll(op->getResults());
    results.push_back(lastEffect = program.graph.addScalar());
    addNode(nodeClass, op, operands, results);
  }

  void addCollective(CollectiveOpInterface op) {
    std::vector<ValueId> operands = useAll(op->getOperands());
    // One of nothing sends nothing.
    if (op->getNumResults() == 0)
      return addNode(NodeClass::Scalar, op, operands, {});
    std::vector<ValueId> futures = defineAll(op->getResults());
    CollectiveInfo info;
    info.kind = op.getCollectiveKind();
    info.group = groupOf(op.getGroup());
    if (std::optional<Reduction> reduction = op.getReductionOrNone())
      info.reduction = reductionName(*reduction);
    info.inPlace.assign(op->getNumResults(), worksInPlace(op));
    // As an even all-to-all, of whose operand a rank keeps its part.
    uint64_t size = op.getGroup().getGroupSize();
    if (std::optional<uint64_t> moved = costs.exchangedBytes(op); moved && size > 1)
      info.fullBytes = (*moved * size + size - 2) / (size - 1);
    // What is delivered where it stays takes no memory, and has its price all the same.
    else if (llvm::any_of(op->getResults(), [&](Value result) { return updates.contains(result); }))
      info.fullBytes = deliveredBytes(op);
    record(program.graph.addCollective(info, nameOf(op), operands, futures), op);
    if (!op.isAsync())
      addNode(NodeClass::Wait, op, futures, defineAll(op->getResults()));
  }

  /// As Graph::fullBytes counts them, from the tensors' own sizes.
  uint64_t deliveredBytes(CollectiveOpInterface op) {
    bool isGather = op.getCollectiveKind() == CollectiveKind::AllGather;
    uint64_t bytes = 0;
    for (Value tensor : isGather ? ValueRange(op->getResults()) : ValueRange(op.getTensors()))
      bytes += costs.bytesOf(tensor);
    return bytes;
  }

  void addWait(WaitOp op) {
    llvm::MapVector<Operation *, SmallVector<unsigned>> ofCollective;
    for (auto [i, future] : llvm::enumerate(op.getFutures()))
      ofCollective[future.getDefiningOp()].push_back(i);
    for (auto &[collective, positions] : ofCollective) {
      std::vector<ValueId> operands, results;
      for (unsigned i : positions) {
        operands.push_back(values.lookup(op.getFutures()[i]));
        results.push_back(define(op.getResults()[i]));
      }
      program.waitedFor[program.graph.numNodes()].assign(positions.begin(), positions.end());
      addNode(NodeClass::Wait, op, operands, results);
    }
  }

  GroupId groupOf(GroupAttrInterface group) {
    Attribute canonical = group.getCanonicalGroup();
    auto [entry, added] = groups.try_emplace(canonical, 0);
    if (!added)
      return entry->second;
    Group made;
    made.size = static_cast<uint32_t>(group.getGroupSize());
    if (auto lists = group.getRankLists())
      for (const std::vector<int64_t> &list : *lists)
        made.ranks.insert(made.ranks.end(), list.begin(), list.end());
    made.name = describeGroup(group);
    while (!groupNames.insert(made.name).second)
      made.name += "'";
    return entry->second = program.graph.addGroup(std::move(made));
  }

  func::FuncOp function;
  const LocalCosts &costs;
  ProgramGraph program;
  llvm::DenseSet<Value> updates;
  llvm::DenseMap<Value, ValueId> values;
  llvm::DenseMap<Type, uint32_t> elementTypes;
  llvm::DenseMap<Attribute, GroupId> groups;
  std::set<std::string> groupNames;
  llvm::StringMap<unsigned> timesNamed;
  ValueId lastEffect = none;
};

} // namespace

FailureOr<ProgramGraph> shardc::buildProgramGraph(func::FuncOp function,
                                                  const cost::CostModel &model,
                                                  const SymbolValues &sizes) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has control flow: the order of collectives is decided in programs "
                                "without it, where it is the same on every rank");
  FailureOr<LocalCosts> costs = LocalCosts::compute(function, model, sizes);
  if (failed(costs))
    return failure();
  return GraphBuilder(function, *costs).run();
}

LogicalResult shardc::checkPrices(const ProgramGraph &program, const cost::CostModel &model) {
  const Graph &graph = program.graph;
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isCollective(node) && !model.supports(graph.kindOf(node)))
      return program.opOf[node]->emitOpError("has no price in the cost model '")
             << std::string(model.name()) << "': choose another topology";
  return success();
}
