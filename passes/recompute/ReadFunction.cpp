// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/recompute/FunctionProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/InPlace.h"
#include "dialects/interfaces/ModelLocation.h"
#include "importers/plan/Plan.h"
#include "passes/collectives/analysis/LocalCosts.h"
#include "passes/collectives/analysis/TensorNames.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::recompute;

static bool hasTensors(TypeRange types) {
  return llvm::any_of(types, llvm::IsaPred<RankedTensorType>);
}

std::optional<size_t> shardc::findBackward(func::FuncOp function) {
  for (auto [i, op] : llvm::enumerate(function.getBody().front().without_terminator()))
    // Constants of the backward may stand anywhere.
    if (hasTensors(op.getOperandTypes()) && isBackward(op.getLoc()))
      return i;
  return std::nullopt;
}

bool shardc::isWeightGather(Operation *op) {
  if (!isa<AllGatherOp>(op) || op->getNumResults() != 1)
    return false;
  Value stored = behindViews(op->getOperand(0));
  // Cast before it was gathered, where a step computes in a shorter type.
  if (auto cast = stored.getDefiningOp<aten::ToCopyOp>())
    stored = behindViews(cast.getSelf());
  auto argument = dyn_cast<BlockArgument>(stored);
  if (!argument)
    return false;
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  auto kind = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kKindAttr)
                       : StringAttr();
  return kind && kind.getValue() == "parameter";
}

namespace {

class Reader {
public:
  Reader(func::FuncOp function, size_t backward, const cost::CostModel &model,
         const LocalCosts &costs, const RecomputeChoices &choices)
      : function(function), backward(backward), model(model), costs(costs), choices(choices) {}

  FailureOr<FunctionProgram> run() {
    findMutated();
    for (Value argument : function.getArguments())
      if (isa<RankedTensorType>(argument.getType()))
        result.program.constantBytes += costs.bytesOf(argument);
    for (Operation &op : function.getBody().front().without_terminator()) {
      auto collective = dyn_cast<CollectiveOpInterface>(op);
      if (op.getNumRegions() != 0 || (collective && collective.isAsync()))
        return op.emitOpError("is no op of the stage \"local\": what is kept for the backward is "
                              "chosen before collectives are scheduled");
      if (collective && !model.supports(collective.getCollectiveKind()))
        return op.emitOpError("has no price in the cost model '")
               << std::string(model.name()) << "': choose another topology";
      add(&op);
    }
    for (Value value : function.getBody().front().getTerminator()->getOperands()) {
      if (!isa<RankedTensorType>(value.getType()))
        continue;
      result.program.constantBytes += costs.bytesOf(value);
      if (StorageId storage = storageIn(value); storage != none)
        result.program.pin(storage);
    }
    return std::move(result);
  }

private:
  /// Arguments that the forward itself writes over: whoever reads one later keeps the new value
  /// apart until then. What the backward updates, as a training step does its parameters, is
  /// written behind all that reads it, and so is a number.
  void findMutated() {
    Block &block = function.getBody().front();
    Operation *first = &*std::next(block.begin(), static_cast<ptrdiff_t>(backward));
    llvm::StringSet<> names;
    for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
      auto kind = function.getResultAttrOfType<StringAttr>(i, kKindAttr);
      auto type = dyn_cast<RankedTensorType>(value.getType());
      Operation *made = value.getDefiningOp();
      bool isLate = made && !made->isBeforeInBlock(first);
      if (!kind || !kind.getValue().ends_with("_mutation") || isLate ||
          (type && type.getRank() == 0))
        continue;
      for (StringRef name : getNames(function.getResultAttrDict(i)))
        names.insert(name);
    }
    for (BlockArgument argument : function.getArguments()) {
      DictionaryAttr attributes = function.getArgAttrDict(argument.getArgNumber());
      if (attributes &&
          llvm::any_of(getNames(attributes), [&](StringRef name) { return names.contains(name); }))
        mutated.insert(argument);
    }
  }

  StorageId storageIn(Value value) const {
    auto it = storageOf.find(value);
    return it == storageOf.end() ? none : it->second;
  }

  static bool isView(Operation *op) {
    std::optional<ViewKind> kind = viewKindOf(op);
    return kind && *kind != ViewKind::Copy;
  }

  void add(Operation *op) {
    OpInfo info;
    info.late = result.ops.size() >= backward;
    SmallVector<StorageId> reads, makes;
    for (Value operand : op->getOperands()) {
      if (StorageId storage = storageIn(operand);
          storage != none && !llvm::is_contained(reads, storage))
        reads.push_back(storage);
    }
    if (isView(op)) {
      StorageId viewed = storageIn(op->getOperand(0));
      for (Value view : op->getResults()) {
        if (viewed != none)
          storageOf[view] = viewed;
        if (mutated.contains(op->getOperand(0)))
          mutated.insert(view);
      }
      // A view reads nothing, but a late one has to find what it looks at.
      if (!info.late)
        reads.clear();
    } else if (!isa<aten::ConstantOp>(op)) { // whose numbers are in the program
      for (OpResult made : op->getResults()) {
        if (!isa<RankedTensorType>(made.getType()))
          continue;
        StorageId reduced = info.late ? reducedInPlace(op, made.getResultNumber()) : none;
        if (reduced == none)
          makes.push_back(reduced = result.program.addStorage(costs.bytesOf(made)));
        storageOf[made] = reduced;
      }
    }
    if (!makes.empty() && !info.late) {
      info.us = timeOf(op);
      info.choice = choiceOf(op, info.region);
    }
    result.program.addOp(info, reads, makes);
    result.ops.push_back(op);
  }

  /// The storage of an operand that a collective overwrites. Only in the backward: what is computed
  /// again has to make memory of its own.
  StorageId reducedInPlace(Operation *op, unsigned index) const {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective || !worksInPlace(collective))
      return none;
    return storageIn(collective.getTensors()[index]);
  }

  double timeOf(Operation *op) const {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (!collective)
      return costs.kernelUs(op);
    uint64_t bytes = 0;
    bool isGather = collective.getCollectiveKind() == CollectiveKind::AllGather;
    for (auto [i, tensor] : llvm::enumerate(collective.getTensors()))
      bytes += costs.bytesOf(isGather ? op->getResult(i) : tensor);
    cost::Group group{static_cast<uint32_t>(collective.getGroup().getGroupSize()), {}};
    std::vector<int64_t> ranks;
    if (auto lists = collective.getGroup().getRankLists(); lists && !lists->empty()) {
      ranks = lists->front();
      group.ranks = ranks;
    }
    return model.launchUs() + model.collectiveUs(collective.getCollectiveKind(), group, bytes);
  }

  Choice choiceOf(Operation *op, uint32_t &region) {
    bool mayRepeat =
        isMemoryEffectFree(op) && !isa<aten::OpaqueOp>(op) &&
        llvm::none_of(op->getOperands(), [&](Value operand) { return mutated.contains(operand); });
    if (!mayRepeat)
      return Choice::Never;
    if (isWeightGather(op)) {
      if (choices.reshard == ReshardAfterForward::Auto)
        return Choice::IfCheap;
      return choices.reshard == ReshardAfterForward::True ? Choice::Required : Choice::Never;
    }
    region = regionOf(getModulePath(op->getLoc()));
    return region == none ? Choice::IfCheap : Choice::Required;
  }

  /// The outermost module around an op that a pattern names.
  uint32_t regionOf(StringRef path) {
    auto [known, added] = regionOfPath.try_emplace(path, none);
    if (!added)
      return known->second;
    uint32_t region = none;
    for (size_t end = path.find('.'); region == none && !path.empty();
         end = path.find('.', end + 1)) {
      StringRef module = path.take_front(end);
      if (llvm::any_of(choices.modules, [&](const std::string &pattern) {
            return plan::matchesPattern(pattern, module);
          })) {
        auto [it, isNew] = regionOfModule.try_emplace(module, result.regions.size());
        if (isNew)
          result.regions.push_back(module.str());
        region = it->second;
      }
      if (end == StringRef::npos)
        break;
    }
    return regionOfPath[path] = region;
  }

  func::FuncOp function;
  size_t backward;
  const cost::CostModel &model;
  const LocalCosts &costs;
  const RecomputeChoices &choices;
  FunctionProgram result;
  llvm::DenseMap<Value, StorageId> storageOf;
  llvm::DenseSet<Value> mutated;
  llvm::StringMap<uint32_t> regionOfPath, regionOfModule;
};

} // namespace

FailureOr<FunctionProgram> shardc::readFunction(func::FuncOp function, size_t backward,
                                                const cost::CostModel &model,
                                                const SymbolValues &sizes,
                                                const RecomputeChoices &choices) {
  FailureOr<LocalCosts> costs = LocalCosts::compute(function, model, sizes);
  if (failed(costs))
    return failure();
  return Reader(function, backward, model, *costs, choices).run();
}
