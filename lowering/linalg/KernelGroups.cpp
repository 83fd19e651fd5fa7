// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/KernelGroups.h"

#include "lowering/linalg/Iteration.h"

#include "llvm/ADT/MapVector.h"

#include <limits>

using namespace mlir;

namespace shardc {
namespace {

constexpr int64_t kTypicalExtent = 1024;
constexpr unsigned kNever = std::numeric_limits<unsigned>::max();
/// Uses of a group's values that are looked at, so that a value that all layers read costs each of
/// them little: what has more stays in memory in any case.
constexpr unsigned kMaxUses = 1024;

/// A dim of a group: what its loops run over.
struct GroupDim {
  int64_t extent;
  bool whole;        // an op needs all of it at once
  unsigned reducers; // ops that reduce something and run over this dim
};

struct Group {
  SmallVector<Operation *> members;
  SmallVector<GroupDim> dims;
  /// Dims of the values of the group: index into `dims`, or kNoLoop.
  llvm::SmallDenseMap<Value, SmallVector<int>> values;
  /// Values that members read at computed positions: these cannot be values of the group.
  SmallVector<Value, 2> memoryReads;
  unsigned epoch = 0;
  unsigned slot = 0;     // position of the member where the kernel is to stand
  unsigned reducers = 0; // ops that reduce
  bool merged = false;   // into another
};

bool sameExtent(int64_t a, int64_t b) {
  return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
}

int64_t elementsOf(int64_t extent) {
  return ShapedType::isDynamic(extent) ? kTypicalExtent : extent;
}

class Former {
public:
  Former(func::FuncOp function, const KernelGroupOptions &options)
      : function(function), options(options) {}

  std::vector<KernelGroup> run();

private:
  void numberOps();
  void visit(Operation *op);
  Group makeGroup(Operation *op, const Iteration &iteration);
  bool tryMerge(unsigned from, Operation *user, const Iteration &iteration, Group &into);
  bool findSlot(Group &joined, unsigned one, unsigned other) const;
  bool isGoodKernel(const Group &group) const;
  int groupOf(Operation *op) const {
    auto it = groupIndex.find(op);
    return it == groupIndex.end() ? -1 : static_cast<int>(it->second);
  }
  unsigned slotOf(Operation *op) const {
    int group = groupOf(op);
    return group < 0 ? position.lookup(op) : groups[group].slot;
  }
  bool mustExistInMemory(Operation *op) const;

  func::FuncOp function;
  const KernelGroupOptions &options;
  DenseMap<Operation *, unsigned> position;
  DenseMap<Operation *, unsigned> epochs;
  DenseMap<Operation *, unsigned> groupIndex;
  std::vector<Group> groups;
  unsigned current = 0; // position of the op being visited
};

void Former::numberOps() {
  unsigned count = 0, epoch = 0;
  for (Operation &op : function.getBody().front()) {
    if (classify(&op) == OpClass::Collective)
      ++epoch;
    position[&op] = count++;
    epochs[&op] = epoch;
  }
}

/// What is copied into each kernel that reads it: does anybody else read it, too?
bool Former::mustExistInMemory(Operation *op) const {
  for (OpOperand &use : op->getUses()) {
    Operation *user = use.getOwner();
    if (isFusibleView(user)) {
      if (use.getOperandNumber() != 0 || mustExistInMemory(user))
        return true;
      continue;
    }
    std::optional<Iteration> iteration = describeIteration(user);
    if (!iteration || iteration->operands[use.getOperandNumber()].inMemory)
      return true;
  }
  return false;
}

Group Former::makeGroup(Operation *op, const Iteration &iteration) {
  Group group;
  group.members.push_back(op);
  group.epoch = epochs.lookup(op);
  group.slot = position.lookup(op);
  for (auto [operand, access] : llvm::zip_equal(op->getOperands(), iteration.operands))
    if (access.inMemory)
      group.memoryReads.push_back(operand);
  group.reducers = iteration.reduces;
  for (auto [extent, whole] : llvm::zip_equal(iteration.loops, iteration.whole))
    group.dims.push_back({extent, whole, iteration.reduces});
  group.values[op->getResult(0)] = SmallVector<int>(iteration.result.loops);
  return group;
}

/// All that is visited has a slot: its position or that of its group. Every definition outside of a
/// group has a lower slot than the group, and every user outside a higher one: so the slots order
/// the kernels and what is between them, and no two kernels wait for each other. False if the
/// joined group cannot stand at either of the two slots.
bool Former::findSlot(Group &joined, unsigned one, unsigned other) const {
  unsigned first = 0, end = kNever, uses = 0;
  for (Operation *member : joined.members) {
    for (Value operand : member->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        if (!joined.values.contains(operand))
          first = std::max(first, slotOf(definition) + 1);
    for (Operation *user : member->getUsers()) {
      if (++uses > kMaxUses)
        return false;
      bool inside = user->getNumResults() && joined.values.contains(user->getResult(0));
      if (!inside && position.lookup(user) <= current)
        end = std::min(end, slotOf(user));
    }
  }
  for (unsigned slot : {std::max(one, other), std::min(one, other)})
    if (slot >= first && slot < end) {
      joined.slot = slot;
      return true;
    }
  return false;
}

/// Temporaries stay small, and fusing does not leave one thread with the work of many.
bool Former::isGoodKernel(const Group &group) const {
  if (group.members.size() > options.maxOps)
    return false;
  // A dim is divided among threads if nothing needs it whole, and every reduction runs over it.
  auto divided = [&](const GroupDim &dim) { return !dim.whole && dim.reducers == group.reducers; };
  if (group.reducers == 0)
    return true;
  int64_t rows = 1;
  for (const GroupDim &dim : group.dims)
    if (divided(dim))
      rows *= std::min<int64_t>(elementsOf(dim.extent), 1 << 20);
  for (auto &[value, dims] : group.values) {
    int64_t elements = 1;
    for (int dim : dims)
      if (dim != kNoLoop && !divided(group.dims[dim]))
        elements = std::min<int64_t>(elements * elementsOf(group.dims[dim].extent), 1 << 30);
    if (elements > options.limits.temporaryElements && group.members.size() > 1)
      return false;
    if (rows == 1 && elements > options.limits.serialElements && group.members.size() > 1)
      return false;
  }
  return true;
}

/// Whether a group is of use for its scalars alone, which do not come from its larger values: the
/// loops of both would run beside each other, as those of the updates of two parameters that have
/// the learning rate in common.
static bool isBeside(const Group &source, const llvm::SmallDenseMap<int, int> &match) {
  return match.empty() && source.reducers == 0 &&
         llvm::any_of(source.dims, [](const GroupDim &dim) { return dim.extent != 1; });
}

/// Joins group `from`, whose values `user` reads, with the group of `user`.
bool Former::tryMerge(unsigned from, Operation *user, const Iteration &iteration, Group &into) {
  Group &source = groups[from];
  if (source.merged || source.epoch != into.epoch ||
      source.members.size() + into.members.size() > options.maxOps)
    return false;
  // A kernel has the values of its own ops a row at a time only.
  auto has = [](const Group &group) {
    return [&](Value value) { return group.values.contains(value); };
  };
  if (llvm::any_of(source.memoryReads, has(into)) || llvm::any_of(into.memoryReads, has(source)))
    return false;
  // Dims of the source and of the target that are one.
  llvm::SmallDenseMap<int, int> match, reverse;
  SmallVector<bool> mapped(iteration.loops.size(), false);
  bool reads = false;
  for (auto [operand, access] : llvm::zip_equal(user->getOpOperands(), iteration.operands)) {
    auto value = source.values.find(operand.get());
    if (value == source.values.end())
      continue;
    reads = true;
    for (auto [dim, loop] : llvm::zip_equal(value->second, access.loops)) {
      if (dim == kNoLoop || loop == kNoLoop)
        continue;
      auto [it, inserted] = match.try_emplace(dim, loop);
      auto [back, insertedBack] = reverse.try_emplace(loop, dim);
      if (it->second != loop || back->second != dim ||
          !sameExtent(source.dims[dim].extent, into.dims[loop].extent))
        return false;
      mapped[loop] = true;
    }
  }
  if (!reads || isBeside(source, match))
    return false;
  // Loops that the source does not have would compute it again: only inner ones, of a row.
  bool missing = false;
  for (auto [loop, isMapped] : llvm::enumerate(mapped)) {
    if (iteration.loops[loop] == 1)
      continue;
    if (isMapped && missing)
      return false;
    missing |= !isMapped;
  }
  Group joined = into;
  joined.members = source.members;
  llvm::append_range(joined.members, into.members);
  llvm::append_range(joined.memoryReads, source.memoryReads);
  joined.reducers += source.reducers;
  SmallVector<int> renamed(source.dims.size());
  for (auto [dim, entry] : llvm::enumerate(source.dims)) {
    auto it = match.find(dim);
    if (it == match.end()) {
      renamed[dim] = joined.dims.size();
      joined.dims.push_back(entry);
      continue;
    }
    GroupDim &target = joined.dims[renamed[dim] = it->second];
    target.whole |= entry.whole;
    target.reducers += entry.reducers;
    if (ShapedType::isDynamic(target.extent))
      target.extent = entry.extent;
  }
  for (auto &[value, dims] : source.values) {
    SmallVector<int> list;
    for (int dim : dims)
      list.push_back(dim == kNoLoop ? kNoLoop : renamed[dim]);
    joined.values[value] = list;
  }
  if (!isGoodKernel(joined) || !findSlot(joined, source.slot, into.slot))
    return false;
  into = std::move(joined);
  return true;
}

void Former::visit(Operation *op) {
  OpClass kind = classify(op);
  if (isCopyable(op) && !mustExistInMemory(op))
    return; // copied where it is read
  bool isView = kind == OpClass::View;
  if (kind != OpClass::Fusible && kind != OpClass::Generator && !(isView && isFusibleView(op)))
    return;
  std::optional<Iteration> iteration = describeIteration(op);
  if (!iteration)
    return;
  Group group = makeGroup(op, *iteration);
  SmallVector<unsigned> merged;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    int index = producer ? groupOf(producer) : -1;
    if (index < 0 || llvm::is_contained(merged, static_cast<unsigned>(index)))
      continue;
    if (tryMerge(index, op, *iteration, group))
      merged.push_back(index);
  }
  // A view on its own costs nothing outside of kernels.
  if (isView && merged.empty())
    return;
  unsigned index = groups.size();
  for (unsigned old : merged)
    groups[old].merged = true;
  groups.push_back(std::move(group));
  for (Operation *member : groups[index].members)
    groupIndex[member] = index;
}

std::vector<KernelGroup> Former::run() {
  numberOps();
  std::vector<Operation *> at;
  for (Operation &op : function.getBody().front().without_terminator()) {
    current = at.size();
    at.push_back(&op);
    visit(&op);
  }
  std::vector<KernelGroup> result;
  for (Group &group : groups) {
    if (group.merged)
      continue;
    llvm::sort(group.members,
               [&](Operation *a, Operation *b) { return position[a] < position[b]; });
    result.push_back({std::move(group.members), at[group.slot]});
  }
  return result;
}

} // namespace

std::vector<KernelGroup> formKernelGroups(func::FuncOp function,
                                          const KernelGroupOptions &options) {
  return Former(function, options).run();
}

} // namespace shardc
