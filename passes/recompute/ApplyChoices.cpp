// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/recompute/FunctionProgram.h"

#include "dialects/dist/Ordering.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::recompute;

static bool isView(Operation *op) {
  std::optional<ViewKind> kind = viewKindOf(op);
  return kind && *kind != ViewKind::Copy;
}

/// Whether the results of an op are in memory whatever kernels are formed.
static bool isInMemory(Operation *op) {
  if (isa<CollectiveOpInterface>(op))
    return true;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel)
    return false;
  KernelForm form = kernel.getKernelForm();
  return form == KernelForm::Product || form == KernelForm::Attention ||
         form == KernelForm::Concatenation || form == KernelForm::Scatter ||
         form == KernelForm::Call;
}

namespace {

class Applier {
public:
  Applier(const FunctionProgram &program, const Result &result)
      : program(program), result(result), builder(program.ops.front()->getContext()) {
    for (auto [i, op] : llvm::enumerate(program.ops))
      position[op] = i;
  }

  void run() {
    for (size_t i = 0, end = result.again.size(); i != end;) {
      // Those of one owner come one after the other, each after what it reads.
      const Again &again = result.again[i];
      builder.setInsertionPoint(program.ops[again.before]);
      for (; i != end && result.again[i].before == again.before; ++i)
        clone(result.again[i]);
    }
    replaceUses();
  }

private:
  /// What is computed again for one owner alone.
  using Chain = llvm::SmallDenseMap<Value, Value>;

  void clone(const Again &again) {
    Operation *op = program.ops[again.op];
    Chain &chain = chains[again.owner];
    bool isChain = again.op != again.owner;
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, read(operand, again.before, chain,
                                /*anchored=*/!isOfWeightGather(again)));
    Operation *made = builder.clone(*op, mapping);
    made->setLoc(makeBackwardLocation(op->getLoc()));
    for (auto [old, copy] : llvm::zip_equal(op->getResults(), made->getResults()))
      (isChain ? chain[old] : shared[old]) = copy;
  }

  /// Gathers of parameters, and what is computed for them alone.
  bool isOfWeightGather(const Again &again) const {
    return isWeightGather(program.ops[again.owner]);
  }

  /// The value that a clone before `step` reads for `value`.
  Value read(Value value, OpId step, Chain &chain, bool anchored) {
    if (!isa<RankedTensorType>(value.getType()))
      return value;
    if (Value late = find(value, chain))
      return late;
    Operation *definition = value.getDefiningOp();
    if (definition && isView(definition))
      if (Value viewed = lookThrough(definition, value, chain))
        return viewed;
    return anchored ? anchor(value, step) : value;
  }

  Value find(Value value, const Chain &chain) const {
    if (auto it = chain.find(value); it != chain.end())
      return it->second;
    return shared.lookup(value);
  }

  /// The view again, of what is computed again; null where that is not.
  Value lookThrough(Operation *view, Value value, Chain &chain) {
    SmallVector<Operation *> views;
    Value source = value;
    while (!find(source, chain)) {
      Operation *definition = source.getDefiningOp();
      if (!definition || !isView(definition))
        return {};
      views.push_back(definition);
      source = definition->getOperand(0);
    }
    bool inChain = chain.contains(source);
    for (Operation *next : llvm::reverse(views)) {
      OpBuilder::InsertionGuard guard(builder);
      Value late = find(next->getOperand(0), chain);
      builder.setInsertionPointAfterValue(late);
      IRMapping mapping;
      mapping.map(next->getOperand(0), late);
      Operation *made = builder.clone(*next, mapping);
      made->setLoc(makeBackwardLocation(next->getLoc()));
      for (auto [old, copy] : llvm::zip_equal(next->getResults(), made->getResults()))
        (inChain ? chain[old] : shared[old]) = copy;
    }
    return find(value, chain);
  }

  /// What makes a value again from nothing needs no memory.
  static bool isGenerator(Value value) {
    Operation *op = value.getDefiningOp();
    auto kernel = op ? dyn_cast<KernelOpInterface>(op) : KernelOpInterface();
    return kernel && (kernel.getKernelForm() == KernelForm::Generator ||
                      kernel.getKernelForm() == KernelForm::Table);
  }

  Value anchor(Value value, OpId step) {
    if (isGenerator(value))
      return value;
    Value &anchored = anchors[{value, step}];
    if (!anchored)
      if (Value other = precedingValue(step); other && other != value)
        anchored = AfterOp::create(builder, value.getLoc(), value, other);
    return anchored ? anchored : value;
  }

  /// What a clone before `step` comes after: the last value in memory that the op there depends on
  /// and the backward makes, else the last before it at all.
  Value precedingValue(OpId step) {
    auto [known, added] = preceding.try_emplace(step);
    if (!added)
      return known->second;
    Value found;
    Operation *at = program.ops[step];
    constexpr unsigned mostSteps = 64;
    for (unsigned i = 0; i != mostSteps && at; ++i) {
      Operation *last = nullptr;
      for (Value operand : at->getOperands()) {
        Operation *definition = operand.getDefiningOp();
        auto it = definition ? position.find(definition) : position.end();
        if (it != position.end() && isa<RankedTensorType>(operand.getType()) &&
            (!last || position.lookup(last) < it->second))
          last = definition;
      }
      at = last && isBackward(last->getLoc()) ? last : nullptr;
      if (at && isInMemory(at)) {
        found = at->getResult(0);
        break;
      }
    }
    for (size_t i = step; !found && i-- > 0;)
      if (Operation *op = program.ops[i]; isInMemory(op) && op->getNumResults() != 0)
        found = op->getResult(0);
    for (size_t i = step; !found && i-- > 0;)
      if (Operation *op = program.ops[i];
          op->getNumResults() != 0 && isa<RankedTensorType>(op->getResult(0).getType()))
        found = op->getResult(0);
    return preceding[step] = found;
  }

  /// Late ops read clones. Views of the forward that they read are made again, of the clone.
  void replaceUses() {
    Chain none;
    for (auto [i, op] : llvm::enumerate(program.ops)) {
      if (!program.program.info(i).late)
        continue;
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        Operation *definition = value.getDefiningOp();
        if (!definition || !isa<RankedTensorType>(value.getType()))
          continue;
        auto it = position.find(definition);
        if (it == position.end() || program.program.info(it->second).late)
          continue;
        Value late = find(value, none);
        if (!late && isView(definition))
          late = lookThrough(definition, value, none);
        if (late)
          operand.set(late);
      }
    }
  }

  const FunctionProgram &program;
  const Result &result;
  OpBuilder builder;
  llvm::DenseMap<Operation *, size_t> position;
  /// What late ops read instead of what the forward has made.
  llvm::DenseMap<Value, Value> shared;
  llvm::DenseMap<OpId, Chain> chains;
  llvm::DenseMap<std::pair<Value, OpId>, Value> anchors;
  llvm::DenseMap<OpId, Value> preceding;
};

} // namespace

void shardc::applyChoices(const FunctionProgram &program, const Result &result) {
  if (!result.again.empty())
    Applier(program, result).run();
}
