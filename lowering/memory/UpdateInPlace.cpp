// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/BufferLifetimes.h"
#include "lowering/memory/CopyKernel.h"
#include "lowering/memory/ElementwiseUpdate.h"
#include "lowering/memory/Passes.h"
#include "lowering/memory/core/WriteOrder.h"

#include "dialects/exec/CustomOps.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/Iteration.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace shardc::memory {
#define GEN_PASS_DEF_UPDATEINPLACE
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

/// Whether both are the same part of two memories of one type.
bool isSamePart(Value a, Value b) {
  if (a.getType() != b.getType())
    return false;
  auto x = a.getDefiningOp<memref::ReinterpretCastOp>();
  auto y = b.getDefiningOp<memref::ReinterpretCastOp>();
  if (!x || !y)
    return !a.getDefiningOp() && !b.getDefiningOp();
  auto equal = [](ArrayRef<OpFoldResult> first, ArrayRef<OpFoldResult> second) {
    return llvm::equal(first, second, isEqualConstantIntOrValue);
  };
  return equal(x.getMixedOffsets(), y.getMixedOffsets()) &&
         equal(x.getMixedSizes(), y.getMixedSizes()) &&
         equal(x.getMixedStrides(), y.getMixedStrides());
}

/// Whether the second argument of a kernel becomes the first.
bool isCopy(func::FuncOp kernel) {
  if (kernel.isDeclaration() || kernel.getNumArguments() != 2)
    return false;
  for (Operation *user : kernel.getArgument(1).getUsers())
    if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user)) {
      auto read = write.getSource().getDefiningOp<bufferization::ToTensorOp>();
      return read && read.getBuffer() == kernel.getArgument(0);
    }
  return false;
}

/// Whether a kernel looks at positions that may be out of range.
bool mayFail(func::FuncOp kernel) {
  return kernel
      ->walk([](Operation *op) {
        std::optional<Iteration> iteration = describeIteration(op);
        bool checks = iteration && llvm::any_of(iteration->operands,
                                                [](const auto &access) { return access.inMemory; });
        return checks ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What an op does with memory, by the argument, buffer or constant that it is a part of.
struct Access {
  Value root;
  bool reads = false, writes = false;
};

/// One parameter that the entry replaces.
struct Update {
  BlockArgument oldValue, newValue;
  Replacement replacement;
};

/// Makes one entry update its parameters where they are.
class EntryUpdater {
public:
  EntryUpdater(func::FuncOp entry, SymbolTable &symbols) : entry(entry), symbols(symbols) {}

  LogicalResult run();

  uint64_t inPlace = 0, copied = 0, moved = 0;
  int64_t copiedBytes = 0;
  /// Names of kernels of which some launch has another form now.
  llvm::DenseSet<StringAttr> replaced;

private:
  void findUpdates();
  void dropCopiesOfItself();
  void waitForReads();
  SmallVector<Access> accessesOf(Operation *op);
  SmallVector<Access> accessesOfLaunch(exec::LaunchOp launch);
  void findUses();
  std::vector<uint32_t> findChecks();
  bool updatesInPlace(exec::LaunchOp launch, Update &update);
  bool updatesInPlace(exec::ScatterOp scatter, Update &update);
  void addOrder(uint32_t first, uint32_t second) {
    if (first != second)
      before.push_back({first, second});
  }
  void orderMemory();
  LogicalResult copyAtEnd(Update &update);
  void rewriteLaunches();
  void commit();
  ArrayRef<int64_t> writtenBy(exec::LaunchOp launch) {
    auto writes = symbols.lookup<func::FuncOp>(launch.getKernel())
                      ->getAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr);
    return writes ? writes.asArrayRef() : ArrayRef<int64_t>();
  }

  func::FuncOp entry;
  SymbolTable &symbols;
  SmallVector<Update> updates;
  SmallVector<Operation *> ops; // without the terminator
  llvm::DenseMap<Operation *, uint32_t> numbers;
  std::vector<std::pair<uint32_t, uint32_t>> before;
  /// Launches that read and write elements at the same place: the numbers of both operands.
  llvm::MapVector<Operation *, SmallVector<std::pair<InPlaceArguments, unsigned>>> pairs;
  /// What writes at some positions of an old value, and keeps the rest: the number of the update.
  SmallVector<std::pair<exec::ScatterOp, unsigned>> scatters;
  llvm::DenseMap<std::pair<Attribute, Attribute>, func::FuncOp> kernels;
};

void EntryUpdater::findUpdates() {
  for (BlockArgument argument : entry.getArguments())
    if (auto updated =
            entry.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), exec::kUpdatesAttr))
      updates.push_back({entry.getArgument(updated.getInt()), argument, {}});
}

/// A value that is replaced by itself.
void EntryUpdater::dropCopiesOfItself() {
  for (Update &update : updates) {
    exec::LaunchOp copy;
    for (Operation *user : update.newValue.getUsers())
      if (auto launch = dyn_cast<exec::LaunchOp>(user);
          launch && launch.getArgs().size() == 2 && launch.getArgs()[0] == update.oldValue &&
          launch.getArgs()[1] == update.newValue &&
          isCopy(symbols.lookup<func::FuncOp>(launch.getKernel())))
        copy = launch;
    if (!copy)
      continue;
    copy.erase();
    update.newValue.replaceAllUsesWith(update.oldValue);
  }
}

/// What reads a parameter until the run ends has no end in the program.
void EntryUpdater::waitForReads() {
  OpBuilder b(entry.getBody().front().getTerminator());
  for (auto start : entry.getOps<exec::StartOp>()) {
    bool isWaitedFor = llvm::any_of(start.getToken().getUsers(), llvm::IsaPred<exec::WaitOp>);
    bool reads = llvm::any_of(start.getInputs(), [&](Value input) {
      return llvm::any_of(
          updates, [&](Update &update) { return bufferOf(input) == Value(update.oldValue); });
    });
    if (reads && !isWaitedFor)
      exec::WaitOp::create(b, start.getLoc(), start.getToken());
  }
}

SmallVector<Access> EntryUpdater::accessesOfLaunch(exec::LaunchOp launch) {
  SmallVector<Access> accesses;
  ArrayRef<int64_t> written = writtenBy(launch);
  for (auto [number, argument] : llvm::enumerate(launch.getArgs()))
    if (isa<MemRefType>(argument.getType())) {
      bool writes = llvm::is_contained(written, static_cast<int64_t>(number));
      accesses.push_back({bufferOf(argument), !writes, writes});
    }
  return accesses;
}

SmallVector<Access> EntryUpdater::accessesOf(Operation *op) {
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    return accessesOfLaunch(launch);
  SmallVector<Access> accesses;
  // A collective uses its operands until it is waited for.
  if (auto wait = dyn_cast<exec::WaitOp>(op))
    if (auto start = wait.getToken().getDefiningOp<exec::StartOp>())
      return accessesOf(start);
  if (isa<ViewLikeOpInterface>(op))
    return accesses;
  if (auto declared = dyn_cast<MemoryEffectOpInterface>(op)) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    declared.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (Value value = effect.getValue(); value && isa<MemRefType>(value.getType()))
        accesses.push_back({bufferOf(value), isa<MemoryEffects::Read>(effect.getEffect()),
                            isa<MemoryEffects::Write>(effect.getEffect())});
  }
  return accesses;
}

/// Whether a launch that reads the old value and writes the new one may do so at once.
bool EntryUpdater::updatesInPlace(exec::LaunchOp launch, Update &update) {
  std::optional<unsigned> source, destination;
  for (auto [number, argument] : llvm::enumerate(launch.getArgs())) {
    if (!isa<MemRefType>(argument.getType()))
      continue;
    Value root = bufferOf(argument);
    std::optional<unsigned> *place = root == update.oldValue   ? &source
                                     : root == update.newValue ? &destination
                                                               : nullptr;
    if (!place)
      continue;
    if (*place)
      return false;
    *place = number;
  }
  auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
  if (!source || !destination ||
      !isSamePart(launch.getArgs()[*source], launch.getArgs()[*destination]) ||
      !llvm::is_contained(writtenBy(launch), static_cast<int64_t>(*destination)) ||
      !canUpdateInPlace(kernel, *source, *destination))
    return false;
  pairs[launch].push_back({{*source, *destination}, static_cast<unsigned>(&update - &updates[0])});
  return true;
}

/// Likewise what writes at positions: it need not copy the rest.
bool EntryUpdater::updatesInPlace(exec::ScatterOp scatter, Update &update) {
  auto reads = [&](Value operand) { return bufferOf(operand) == Value(update.oldValue); };
  if (!reads(scatter.getSource()) || bufferOf(scatter.getOut()) != Value(update.newValue) ||
      !isSamePart(scatter.getSource(), scatter.getOut()) || reads(scatter.getValues()) ||
      llvm::any_of(scatter.getIndices(), reads))
    return false;
  scatters.push_back({scatter, static_cast<unsigned>(&update - &updates[0])});
  return true;
}

void EntryUpdater::findUses() {
  for (Operation &op : entry.getBody().front().without_terminator()) {
    numbers[&op] = ops.size();
    ops.push_back(&op);
  }
  for (Operation *op : ops) {
    SmallVector<Access> accesses = accessesOf(op);
    for (Update &update : updates) {
      auto does = [&](Value root, bool Access::*what) {
        return llvm::any_of(
            accesses, [&](const Access &access) { return access.root == root && access.*what; });
      };
      bool writes = does(update.newValue, &Access::writes);
      bool reads = does(update.oldValue, &Access::reads);
      if (reads && writes) {
        if (auto launch = dyn_cast<exec::LaunchOp>(op))
          reads = !updatesInPlace(launch, update);
        else if (auto scatter = dyn_cast<exec::ScatterOp>(op))
          reads = !updatesInPlace(scatter, update);
      }
      if (reads)
        update.replacement.reads.push_back(numbers[op]);
      if (writes)
        update.replacement.writes.push_back(numbers[op]);
    }
  }
}

/// Launches that look at positions: what is wrong with them is best found before anything changes.
std::vector<uint32_t> EntryUpdater::findChecks() {
  std::vector<uint32_t> checks;
  llvm::DenseMap<StringAttr, bool> known;
  for (Operation *op : ops)
    if (isa<exec::CallSymbolOp>(op)) {
      checks.push_back(numbers[op]); // whatever it looks at
    } else if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
      auto [it, isNew] = known.try_emplace(launch.getKernelAttr().getAttr(), false);
      if (isNew)
        it->second = mayFail(symbols.lookup<func::FuncOp>(launch.getKernel()));
      if (it->second)
        checks.push_back(numbers[op]);
    }
  return checks;
}

/// What must stay in order: definitions and uses, ops of which one writes what the other has, and
/// collectives among themselves.
void EntryUpdater::orderMemory() {
  struct State {
    std::optional<uint32_t> write;
    SmallVector<uint32_t> reads; // since then
  };
  llvm::DenseMap<Value, State> states;
  std::optional<uint32_t> collective;
  for (Operation *op : ops) {
    uint32_t number = numbers[op];
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        addOrder(numbers[definition], number);
    if (isa<exec::StartOp, exec::CollectiveOp>(op)) {
      if (collective)
        addOrder(*collective, number);
      collective = number;
    }
    for (const Access &access : accessesOf(op)) {
      State &state = states[access.root];
      if (state.write)
        addOrder(*state.write, number);
      if (!access.writes) {
        state.reads.push_back(number);
        continue;
      }
      for (uint32_t read : state.reads)
        addOrder(read, number);
      state.reads.clear();
      state.write = number;
    }
  }
}

/// The new value is computed in the arena and copied when nobody reads the old one any more.
LogicalResult EntryUpdater::copyAtEnd(Update &update) {
  auto type = cast<MemRefType>(update.newValue.getType());
  if (!type.hasStaticShape())
    return entry.emitOpError("argument ")
           << update.oldValue.getArgNumber()
           << " is updated and has sizes that depend on the run, so that there is no room to keep "
              "its new value apart: "
           << type;
  Block &block = entry.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(&block);
  Location loc = entry.getLoc();
  Value apart =
      exec::AllocOp::create(b, loc, type, ValueRange(), IntegerAttr(), IntegerAttr()).getBuffer();
  update.newValue.replaceAllUsesWith(apart);
  b.setInsertionPoint(block.getTerminator());
  launchCopy(b, loc, symbols, apart, update.newValue);
  ++copied;
  copiedBytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  return success();
}

void EntryUpdater::rewriteLaunches() {
  for (auto &[op, list] : pairs) {
    if (list.empty())
      continue;
    auto launch = cast<exec::LaunchOp>(op);
    SmallVector<InPlaceArguments> arguments;
    SmallVector<int64_t> flat;
    for (auto &[pair, update] : list) {
      arguments.push_back(pair);
      flat.append({pair.first, pair.second});
    }
    Builder b(entry.getContext());
    func::FuncOp &kernel = kernels[{launch.getKernelAttr(), b.getDenseI64ArrayAttr(flat)}];
    if (!kernel) {
      kernel = symbols.lookup<func::FuncOp>(launch.getKernel()).clone();
      makeInPlace(kernel, arguments);
      symbols.insert(kernel);
    }
    SmallVector<Value> operands;
    for (auto [number, argument] : llvm::enumerate(launch.getArgs()))
      if (llvm::none_of(arguments, [&](auto &pair) { return pair.first == number; }))
        operands.push_back(argument);
    replaced.insert(launch.getKernelAttr().getAttr());
    launch.getArgsMutable().assign(operands);
    launch.setKernel(kernel.getName());
    ++inPlace;
  }
  for (auto &[scatter, update] : scatters) {
    scatter.getSourceMutable().assign(scatter.getOut());
    ++inPlace;
  }
}

/// In front of the first write.
void EntryUpdater::commit() {
  llvm::SmallDenseSet<Value> roots;
  for (Update &update : updates)
    roots.insert(update.newValue);
  for (Operation &op : entry.getBody().front()) {
    bool writes = llvm::any_of(accessesOf(&op), [&](const Access &access) {
      return access.writes && roots.contains(access.root);
    });
    if (!writes)
      continue;
    OpBuilder b(&op);
    exec::CommitOp::create(b, op.getLoc());
    return;
  }
}

LogicalResult EntryUpdater::run() {
  findUpdates();
  if (updates.empty())
    return success();
  dropCopiesOfItself();
  waitForReads();
  findUses();
  orderMemory();
  std::vector<Replacement> replacements, wishes;
  const std::vector<uint32_t> checks = findChecks();
  for (Update &update : updates) {
    replacements.push_back(update.replacement);
    wishes.push_back({checks, update.replacement.writes});
  }
  WriteOrder order = orderWrites(ops.size(), before, replacements, wishes);
  if (order.isChanged) {
    Operation *end = entry.getBody().front().getTerminator();
    for (auto [place, number] : llvm::enumerate(order.order)) {
      ops[number]->moveBefore(end);
      moved += place != number;
    }
  }
  for (auto &[op, list] : pairs)
    llvm::erase_if(list, [&](auto &pair) { return !order.isInPlace[pair.second]; });
  llvm::erase_if(scatters, [&](auto &pair) { return !order.isInPlace[pair.second]; });
  for (auto [number, update] : llvm::enumerate(updates))
    if (!order.isInPlace[number] && failed(copyAtEnd(update)))
      return failure();
  rewriteLaunches();
  commit();
  entry->setAttr(exec::kInPlaceAttr, UnitAttr::get(entry.getContext()));
  return success();
}

struct UpdateInPlace : memory::impl::UpdateInPlaceBase<UpdateInPlace> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(exec::kEntryAttr) && !function->hasAttr(exec::kInPlaceAttr))
        entries.push_back(function);
    llvm::DenseSet<StringAttr> replaced;
    for (func::FuncOp entry : entries) {
      EntryUpdater updater(entry, symbols);
      if (failed(updater.run()))
        return signalPassFailure();
      inPlaceLaunches += updater.inPlace;
      copiedUpdates += updater.copied;
      copiedBytes += updater.copiedBytes;
      movedOps += updater.moved;
      replaced.insert(updater.replaced.begin(), updater.replaced.end());
    }
    getOperation().walk(
        [&](exec::LaunchOp launch) { replaced.erase(launch.getKernelAttr().getAttr()); });
    for (StringAttr name : replaced)
      symbols.erase(symbols.lookup(name));
  }
};

} // namespace
