// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Passes.h"

#include "dialects/aten/Aten.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/Iteration.h"
#include "lowering/linalg/KernelGroups.h"
#include "lowering/target/Target.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace shardc {
#define GEN_PASS_DEF_FORMKERNELS
#include "lowering/linalg/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

constexpr unsigned kMaxNamedOps = 4;

/// "add+layer_norm": what a person calls the kernel.
std::string nameOf(ArrayRef<Operation *> ops, StringRef separator) {
  SmallVector<StringRef> names;
  for (Operation *op : ops)
    if (!isFusibleView(op) && classify(op) != OpClass::Generator)
      names.push_back(op->getName().stripDialect());
  if (names.empty())
    names.push_back(ops.front()->getName().stripDialect());
  bool many = names.size() > kMaxNamedOps;
  if (many) // the last ops say most
    names.erase(names.begin(), names.end() - kMaxNamedOps);
  return (many ? "..." : "") + llvm::join(names, separator);
}

/// A symbol name may not have all characters of a name, and must not be that of a function of the C
/// library ("exp"), which kernels call.
std::string symbolOf(ArrayRef<Operation *> ops) {
  std::string name = nameOf(ops, "_");
  return (StringRef(name).ltrim('.') + "_kernel").str();
}

class Outliner {
public:
  Outliner(func::FuncOp function, SymbolTable &symbols)
      : function(function), symbols(symbols), builder(function.getContext()) {}

  void outline(ArrayRef<Operation *> members);

private:
  void addInput(Value value);
  Operation *insertionPoint(ArrayRef<Operation *> members);

  func::FuncOp function;
  SymbolTable &symbols;
  OpBuilder builder;
  llvm::SetVector<Value> inputs;
};

/// The call stands where the first user of a result is, or the last op of the kernel was.
Operation *Outliner::insertionPoint(ArrayRef<Operation *> members) {
  Operation *at = members.back();
  llvm::SmallPtrSet<Operation *, 16> inside(members.begin(), members.end());
  Operation *first = nullptr;
  for (Operation *member : members)
    for (Operation *user : member->getUsers())
      if (!inside.contains(user) && (!first || user->isBeforeInBlock(first)))
        first = user;
  return first && first->isBeforeInBlock(at) ? first : at->getNextNode();
}

void Outliner::outline(ArrayRef<Operation *> all) {
  // Views that nothing in the kernel reads stay outside.
  SmallVector<Operation *> members(all);
  for (size_t i = members.size(); i-- > 0;) {
    if (classify(members[i]) != OpClass::View)
      continue;
    bool used = llvm::any_of(members[i]->getUsers(),
                             [&](Operation *user) { return llvm::is_contained(members, user); });
    if (!used)
      members.erase(members.begin() + i);
  }
  if (members.empty())
    return;
  llvm::SmallPtrSet<Operation *, 16> inside(members.begin(), members.end());
  inputs.clear();
  // What can be made again comes along.
  SmallVector<Operation *> body;
  llvm::SmallPtrSet<Operation *, 8> copied;
  std::function<void(Value)> takeIn = [&](Value operand) {
    Operation *definition = operand.getDefiningOp();
    if (definition && inside.contains(definition))
      return;
    if (!definition || !isCopyable(definition)) {
      inputs.insert(operand);
      return;
    }
    if (!copied.insert(definition).second)
      return;
    for (Value source : definition->getOperands())
      takeIn(source);
    body.push_back(definition);
  };
  for (Operation *member : members) {
    std::optional<Iteration> iteration = describeIteration(member);
    for (OpOperand &operand : member->getOpOperands()) {
      if (!iteration || iteration->operands[operand.getOperandNumber()].inMemory)
        inputs.insert(operand.get());
      else
        takeIn(operand.get());
    }
    body.push_back(member);
  }
  // What others read; of a view, its source: they make a view of their own.
  auto isView = [&](Operation *op) { return op && classify(op) == OpClass::View; };
  llvm::SmallPtrSet<Operation *, 8> viewsOutside;
  for (Operation *member : llvm::reverse(members))
    if (isView(member) && llvm::any_of(member->getUsers(), [&](Operation *user) {
          return !inside.contains(user) || viewsOutside.contains(user);
        }))
      viewsOutside.insert(member);
  llvm::SetVector<Value> results;
  for (Operation *member : members) {
    bool escapes =
        llvm::any_of(member->getUsers(), [&](Operation *user) { return !inside.contains(user); });
    Value result = member->getResult(0);
    while (isView(result.getDefiningOp()) && inside.contains(result.getDefiningOp()))
      result = result.getDefiningOp()->getOperand(0);
    if (escapes && result.getDefiningOp() && inside.contains(result.getDefiningOp()))
      results.insert(result);
  }

  SmallVector<Location> locations;
  for (Operation *member : members)
    if (classify(member) != OpClass::View)
      locations.push_back(member->getLoc());
  Location loc = FusedLoc::get(builder.getContext(), locations);
  SmallVector<Type> inputTypes, resultTypes;
  for (Value input : inputs)
    inputTypes.push_back(input.getType());
  for (Value result : results)
    resultTypes.push_back(result.getType());
  auto kernel = func::FuncOp::create(loc, symbolOf(members),
                                     builder.getFunctionType(inputTypes, resultTypes));
  kernel.setPrivate();
  kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
  Block *entry = kernel.addEntryBlock();
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip_equal(inputs, entry->getArguments()))
    mapping.map(input, argument);
  OpBuilder inner = OpBuilder::atBlockEnd(entry);
  for (Operation *op : body)
    inner.clone(*op, mapping);
  SmallVector<Value> returned;
  for (Value result : results)
    returned.push_back(mapping.lookup(result));
  func::ReturnOp::create(inner, loc, returned);
  symbols.insert(kernel);

  builder.setInsertionPoint(insertionPoint(members));
  auto call = func::CallOp::create(builder, loc, kernel, inputs.getArrayRef());
  call->setAttr(exec::kNameAttr, builder.getStringAttr(nameOf(members, "+")));
  IRMapping outside;
  for (auto [result, value] : llvm::zip_equal(results, call.getResults()))
    outside.map(result, value);
  for (Operation *member : members) {
    Value result = member->getResult(0);
    if (isView(member)) {
      if (!viewsOutside.contains(member))
        continue;
      outside.map(result, builder.clone(*member, outside)->getResult(0));
    }
    if (Value replacement = outside.lookupOrNull(result))
      result.replaceUsesWithIf(replacement,
                               [&](OpOperand &use) { return !inside.contains(use.getOwner()); });
  }
  for (Operation *member : llvm::reverse(members))
    member->erase();
}

/// Moves the members of every group together; then makes sure that the kernels can be outlined.
LogicalResult gather(ArrayRef<KernelGroup> groups, func::FuncOp entry) {
  for (const KernelGroup &group : groups) {
    Operation *last = group.place;
    bool before = true;
    for (Operation *member : group.members) {
      if (member == group.place) {
        before = false;
      } else if (before) {
        member->moveBefore(group.place);
      } else {
        member->moveAfter(last);
        last = member;
      }
    }
  }
  llvm::SmallPtrSet<Operation *, 32> seen;
  for (Operation &op : entry.getBody().front()) {
    for (Value operand : op.getOperands())
      if (Operation *definition = operand.getDefiningOp(); definition && !seen.contains(definition))
        return op.emitOpError(
            "stands before the definition of its operand once kernels are formed: "
            "this is a mistake of exec-form-kernels, please report it");
    seen.insert(&op);
  }
  for (const KernelGroup &group : groups)
    for (Operation *member : group.members) {
      std::optional<Iteration> iteration = describeIteration(member);
      for (OpOperand &operand : member->getOpOperands())
        if ((!iteration || iteration->operands[operand.getOperandNumber()].inMemory) &&
            operand.get().getDefiningOp() &&
            llvm::is_contained(group.members, operand.get().getDefiningOp()))
          return member->emitOpError("reads in memory what its own kernel computes: this is a "
                                     "mistake of exec-form-kernels, please report it");
    }
  return success();
}

struct FormKernels : shardc::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(exec::kKernelAttr) && !function.isDeclaration())
        entries.push_back(function);
    FailureOr<target::Limits> limits = target::readLimits(getOperation());
    bool failed = mlir::failed(limits);
    for (func::FuncOp entry : entries)
      failed |= mlir::failed(checkSupported(entry));
    if (failed)
      return signalPassFailure();
    for (func::FuncOp entry : entries) {
      KernelGroupOptions options;
      options.maxOps = maxOps;
      options.limits = *limits;
      Outliner outliner(entry, symbols);
      std::vector<KernelGroup> groups = formKernelGroups(entry, options);
      if (mlir::failed(gather(groups, entry)))
        return signalPassFailure();
      for (const KernelGroup &group : groups) {
        outliner.outline(group.members);
        ++kernels;
      }
      // What was copied into all of its kernels, and views that only kernels read.
      SmallVector<Operation *> rest;
      for (Operation &op : entry.getBody().front().without_terminator())
        rest.push_back(&op);
      for (Operation *op : llvm::reverse(rest))
        if (isOpTriviallyDead(op))
          op->erase();
    }
  }

  /// Every op that has no lowering, with its place, before anything is changed.
  static LogicalResult checkSupported(func::FuncOp entry) {
    if (!entry.getBody().hasOneBlock())
      return entry.emitOpError("has control flow, which cannot be lowered");
    bool supported = true;
    llvm::MapVector<StringRef, unsigned> count;
    for (Operation &op : entry.getBody().front().without_terminator())
      if (classify(&op) == OpClass::Unsupported)
        ++count[op.getName().getStringRef()];
    llvm::DenseSet<StringRef> reported;
    for (Operation &op : entry.getBody().front().without_terminator()) {
      StringRef name = op.getName().getStringRef();
      auto it = count.find(name);
      if (it == count.end() || classify(&op) != OpClass::Unsupported)
        continue;
      supported = false;
      InFlightDiagnostic diagnostic = op.emitOpError("cannot be lowered");
      if (op.getNumResults())
        diagnostic << " to a result of type " << op.getResult(0).getType();
      if (reported.insert(name).second && it->second > 1)
        diagnostic << " (" << it->second << " such ops in this program)";
    }
    return success(supported);
  }
};

} // namespace
