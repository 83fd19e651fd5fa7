// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/DeviceWrites.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Overlapping parts that are looked at for one part: more are in branches of their own.
constexpr unsigned kMostOverlaps = 64;

bool isLaunchBody(Operation *op) { return isa<gpu::LaunchOp, gpu::GPUFuncOp>(op); }

/// The launch, or the function that is launched, whose code an op belongs to.
Operation *bodyOf(Operation *op) {
  while (op && !isLaunchBody(op))
    op = op->getParentOp();
  return op;
}

/// Bits of the ids of which a launch has more than one.
Variation::Bits idsOf(Operation *launch) {
  SmallVector<Value> sizes;
  if (auto inPlace = dyn_cast<gpu::LaunchOp>(launch))
    sizes = {inPlace.getBlockSizeX(), inPlace.getBlockSizeY(), inPlace.getBlockSizeZ(),
             inPlace.getGridSizeX(),  inPlace.getGridSizeY(),  inPlace.getGridSizeZ()};
  else if (auto call = dyn_cast<gpu::LaunchFuncOp>(launch))
    sizes = {call.getBlockSizeX(), call.getBlockSizeY(), call.getBlockSizeZ(),
             call.getGridSizeX(),  call.getGridSizeY(),  call.getGridSizeZ()};
  Variation::Bits bits = 0;
  for (auto [i, size] : llvm::enumerate(sizes))
    if (getConstantIntValue(size) != 1)
      bits |= Variation::kThreadX << i;
  return bits;
}

/// The memory that an op writes, the position, and how many neighbours along the last dim; 0 where
/// that is not known.
struct Place {
  Value memory;
  SmallVector<Value> position;
  int64_t lanes = 0;
};

Place placeOf(Operation *op) {
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return {store.getMemRef(), SmallVector<Value>(store.getIndices()), 1};
  if (auto store = dyn_cast<vector::StoreOp>(op)) {
    VectorType type = store.getVectorType();
    bool isFlat = type.getRank() == 1 && !type.isScalable() && !store.getIndices().empty();
    return {store.getBase(), SmallVector<Value>(store.getIndices()),
            isFlat ? type.getDimSize(0) : 0};
  }
  Place place;
  llvm::copy_if(op->getOperands(), std::back_inserter(place.position),
                [](Value v) { return isa<MemRefType>(v.getType()) || v.getType().isIndex(); });
  return place;
}

SmallVector<Value> valuesOf(const Place &place) {
  SmallVector<Value> values(place.position);
  if (place.memory)
    values.push_back(place.memory);
  return values;
}

/// What decides whether an op is reached, up to the op `within`.
Variation::Bits variationOfPath(const Variation &variation, Operation *op, Operation *within) {
  Variation::Bits bits = 0;
  for (Operation *parent = op->getParentOp(); parent && parent != within;
       parent = parent->getParentOp()) {
    bits |= variation.ofOperands(parent);
    if (auto loop = dyn_cast<scf::WhileOp>(parent))
      bits |= variation.of(loop.getConditionOp().getCondition());
  }
  return bits;
}

/// Loops that may run their body more than once.
bool isLoop(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // Device code counts from 0 up: to 1 is once, wherever a thread begins.
    std::optional<llvm::APInt> count = loop.getStaticTripCount();
    return count ? count->ugt(1) : getConstantIntValue(loop.getUpperBound()).value_or(2) > 1;
  }
  return isa<LoopLikeOpInterface>(op);
}

} // namespace

/// A part of a destination: constants of its position, behind what is the same in its group.
struct DeviceWrites::Part {
  SmallVector<int64_t> at;
  int64_t lanes;
  Operation *op;

  auto order() const { return std::tuple(ArrayRef(at).drop_back(), at.back()); }
};

const Variation &DeviceWrites::variationIn(Region &code, Operation *owner) {
  std::unique_ptr<Variation> &variation = variations[owner];
  if (variation)
    return *variation;
  DenseMap<Value, Variation::Bits> sources;
  if (auto launch = dyn_cast<gpu::LaunchOp>(owner)) {
    gpu::KernelDim3 thread = launch.getThreadIds(), block = launch.getBlockIds();
    const Value ids[] = {thread.x, thread.y, thread.z, block.x, block.y, block.z};
    for (auto [i, id] : llvm::enumerate(ids))
      sources[id] = Variation::kThreadX << i;
  } else if (!isa<gpu::GPUFuncOp>(owner)) {
    for (Region &region : owner->getRegions())
      for (BlockArgument argument : region.getArguments())
        sources[argument] = 1;
  }
  return *(variation = std::make_unique<Variation>(code, sources));
}

void DeviceWrites::check(ArrayRef<MemoryAccess> writes, StringRef memory, Report report) {
  checkLaunches(writes, memory, report);
  llvm::MapVector<Operation *, SmallVector<MemoryAccess>> launches;
  for (const MemoryAccess &write : writes)
    launches[write.launch].push_back(write);
  for (auto &[launch, parts] : launches) {
    for (const MemoryAccess &write : parts) {
      checkThreads(write, memory, report);
      checkLoops(write, memory, report);
    }
    checkParts(parts, memory, report);
  }
}

void DeviceWrites::checkLaunches(ArrayRef<MemoryAccess> writes, StringRef memory, Report report) {
  SmallVector<Operation *> before;
  for (const MemoryAccess &write : writes) {
    if (llvm::is_contained(before, write.launch))
      continue;
    if (llvm::any_of(before,
                     [&](Operation *other) { return !excludeEachOther(other, write.launch); }))
      report(write.op, "writes " + memory +
                           " in a second launch: every destination is written "
                           "exactly once");
    before.push_back(write.launch);
  }
}

void DeviceWrites::checkThreads(const MemoryAccess &write, StringRef memory, Report report) {
  Operation *body = bodyOf(write.op);
  const Variation &variation = variationIn(body->getRegion(0), body);
  Variation::Bits bits = variationOfPath(variation, write.op, body);
  for (Value value : valuesOf(placeOf(write.op)))
    bits |= variation.of(value);
  Variation::Bits missing = idsOf(write.launch) & ~bits;
  constexpr Variation::Bits threads = 7 * Variation::kThreadX;
  if (missing)
    report(write.op, "writes one place of " + memory + " in all " +
                         (missing & threads ? "threads of a block" : "blocks of a launch"));
}

void DeviceWrites::checkLoops(const MemoryAccess &write, StringRef memory, Report report) {
  for (Operation *loop = write.op->getParentOp(); loop && !isLaunchBody(loop);
       loop = loop->getParentOp()) {
    if (!isLoop(loop))
      continue;
    Region &region = loop->getRegion(loop->getNumRegions() - 1);
    const Variation &variation = variationIn(region, loop);
    Variation::Bits bits = variationOfPath(variation, write.op, loop);
    for (Value value : valuesOf(placeOf(write.op)))
      bits |= variation.of(value);
    if (!bits)
      report(write.op, "writes one place of " + memory + " in all iterations of a loop");
  }
}

DeviceWrites::Part DeviceWrites::partOf(Operation *op, Group &group) {
  Place place = placeOf(op);
  Part part{{}, place.lanes, op};
  if (place.memory)
    group.push_back(terms.of(place.memory));
  for (Value position : place.position) {
    SizeSum sum = terms.of(position);
    auto constant = sum.find(SizeSum::key_type());
    part.at.push_back(constant == sum.end() ? 0 : constant->second);
    if (constant != sum.end())
      sum.erase(constant);
    group.push_back(std::move(sum));
  }
  if (part.at.empty())
    part.at.push_back(0);
  return part;
}

void DeviceWrites::checkParts(ArrayRef<MemoryAccess> writes, StringRef memory, Report report) {
  std::map<Group, std::vector<Part>> groups;
  for (const MemoryAccess &write : writes) {
    Group group;
    Part part = partOf(write.op, group);
    if (part.lanes > 0)
      groups[std::move(group)].push_back(std::move(part));
    else if (writes.size() > 1)
      ++unproven;
  }
  unproven += groups.empty() ? 0 : groups.size() - 1;
  llvm::SetVector<Operation *> second;
  for (auto &[group, parts] : groups) {
    llvm::sort(parts, [](const Part &a, const Part &b) { return a.order() < b.order(); });
    for (size_t i = 0; i < parts.size(); ++i)
      for (size_t j = i + 1; j < std::min(parts.size(), i + 1 + kMostOverlaps); ++j) {
        const Part &one = parts[i], &other = parts[j];
        if (ArrayRef(one.at).drop_back() != ArrayRef(other.at).drop_back() ||
            other.at.back() >= one.at.back() + one.lanes)
          break;
        if (!excludeEachOther(one.op, other.op))
          second.insert(other.op);
      }
  }
  for (Operation *op : second)
    report(op, "writes an element of " + memory +
                   " twice: every destination is written exactly "
                   "once");
}

/// Conditions of the device or of the host under which an op is reached, and whether they hold.
SmallVector<std::pair<Value, bool>> DeviceWrites::conditionsOf(Operation *op) {
  SmallVector<std::pair<Value, bool>> conditions;
  for (Operation *parent = op->getParentOp(); parent && !isLaunchBody(parent);
       op = parent, parent = op->getParentOp())
    if (auto choice = dyn_cast<scf::IfOp>(parent))
      conditions.push_back(
          {choice.getCondition(), op->getParentRegion() == &choice.getThenRegion()});
  // What a condition is made of.
  for (size_t i = 0; i < conditions.size(); ++i) {
    auto [value, holds] = conditions[i];
    Operation *definition = value.getDefiningOp();
    if (auto both = dyn_cast_or_null<arith::AndIOp>(definition); both && holds) {
      conditions.push_back({both.getLhs(), true});
      conditions.push_back({both.getRhs(), true});
    } else if (auto any = dyn_cast_or_null<arith::OrIOp>(definition); any && !holds) {
      conditions.push_back({any.getLhs(), false});
      conditions.push_back({any.getRhs(), false});
    } else if (auto flip = dyn_cast_or_null<arith::XOrIOp>(definition);
               flip && matchPattern(flip.getRhs(), m_One())) {
      conditions.push_back({flip.getLhs(), !holds});
    }
  }
  return conditions;
}

bool DeviceWrites::contradict(std::pair<Value, bool> one, std::pair<Value, bool> other) {
  if (terms.of(one.first) == terms.of(other.first))
    return one.second != other.second;
  auto a = one.first.getDefiningOp<arith::CmpIOp>();
  auto b = other.first.getDefiningOp<arith::CmpIOp>();
  if (!a || !b || terms.of(a.getLhs()) != terms.of(b.getLhs()))
    return false;
  auto predicate = [](arith::CmpIOp compare, bool holds) {
    return holds ? compare.getPredicate() : arith::invertPredicate(compare.getPredicate());
  };
  arith::CmpIPredicate first = predicate(a, one.second), second = predicate(b, other.second);
  if (terms.of(a.getRhs()) == terms.of(b.getRhs()))
    return first == arith::invertPredicate(second);
  return first == arith::CmpIPredicate::eq && second == first && getConstantIntValue(a.getRhs()) &&
         getConstantIntValue(b.getRhs());
}

bool DeviceWrites::excludeEachOther(Operation *one, Operation *other) {
  SmallVector<std::pair<Value, bool>> conditions = conditionsOf(other);
  return llvm::any_of(conditionsOf(one), [&](std::pair<Value, bool> condition) {
    return llvm::any_of(conditions, [&](std::pair<Value, bool> opposite) {
      return contradict(condition, opposite);
    });
  });
}
