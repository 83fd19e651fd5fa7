// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// planned: where buffers lie. With symbolic sizes, what the plan function computes is shown to be
// right for all sizes (SizeTerms.h).

#include "passes/verify/PlannedChecks.h"
#include "passes/verify/SizeTerms.h"
#include "passes/verify/core/LiveRanges.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace shardc;

Value shardc::rootOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

namespace {

struct Buffer {
  exec::AllocOp op;
  LiveRange live;
  bool isUsed = false;
  Operation *flight = nullptr; // a collective that uses it beyond the start
  int64_t bytes = 0;         // where all sizes are static; else 0 for a buffer that is always empty
  SizeSum offset, size, end; // where there is a plan function
};

class ArenaChecker {
public:
  ArenaChecker(func::FuncOp entry, const PlannedModule &module, Violations &violations)
      : entry(entry), module(module), violations(violations) {}

  void run();

private:
  void findBuffers();
  void use(Value memref, uint32_t step, Operation *flight);
  void checkStatic();
  void checkSymbolic(func::FuncOp plan);
  bool readPlan(func::FuncOp plan);
  void checkEnds();
  std::string textOf(Buffer &buffer);
  void report(llvm::function_ref<bool(uint32_t, uint32_t)> isAbove);

  func::FuncOp entry;
  const PlannedModule &module;
  Violations &violations;
  std::vector<Buffer> buffers;
  llvm::DenseMap<Value, uint32_t> numbers;
  SizeTerms terms;
  std::vector<SizeSum> offsets; // by slot
  SizeSum total;
};

void ArenaChecker::use(Value memref, uint32_t step, Operation *flight) {
  auto it = numbers.find(rootOf(memref));
  if (it == numbers.end())
    return;
  Buffer &buffer = buffers[it->second];
  if (!buffer.isUsed)
    buffer.live.first = step;
  buffer.isUsed = true;
  if (step >= buffer.live.last) {
    buffer.live.last = step;
    buffer.flight = flight;
  }
}

void ArenaChecker::findBuffers() {
  Block &block = entry.getBody().front();
  for (exec::AllocOp op : block.getOps<exec::AllocOp>()) {
    numbers[op.getBuffer()] = buffers.size();
    buffers.push_back({});
    buffers.back().op = op;
  }
  uint32_t step = 0;
  auto useAll = [&](Operation *op, Operation *flight) {
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()))
        use(operand, step, flight);
  };
  llvm::SmallPtrSet<Operation *, 16> waited;
  for (Operation &op : block) {
    ++step;
    // Views read nothing: what reads them does.
    if (isa<ViewLikeOpInterface>(op))
      continue;
    useAll(&op, nullptr);
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      if (Operation *start = wait.getToken().getDefiningOp(); waited.insert(start).second)
        useAll(start, start);
  }
  // What nobody waits for is in flight until the end.
  ++step;
  for (exec::StartOp start : block.getOps<exec::StartOp>())
    if (!waited.contains(start))
      useAll(start, start);
}

void ArenaChecker::run() {
  findBuffers();
  auto planName = entry->getAttrOfType<FlatSymbolRefAttr>(exec::kPlanAttr);
  auto arenaBytes = entry->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr);
  if (planName && arenaBytes)
    return violations.add(entry, "has both an arena of known size and a plan function");
  if (!planName && !arenaBytes) {
    if (!buffers.empty())
      violations.add(entry, "has buffers, but neither 'exec.arena_bytes' nor 'exec.plan'");
    return;
  }
  bool placed = true;
  for (Buffer &buffer : buffers)
    if (!buffer.op.getOffset() && !buffer.op.getSlot()) {
      violations.add(buffer.op, "has no place in the arena: run exec-plan-arena");
      placed = false;
    }
  if (!placed)
    return;
  if (!planName)
    return checkStatic();
  func::FuncOp plan = module.function(planName.getValue());
  if (!plan || !plan->hasAttrOfType<UnitAttr>(exec::kPlanAttr) || plan.isExternal())
    return violations.add(entry, "names '" + planName.getValue() + "', which is no plan function");
  checkSymbolic(plan);
}

int64_t elementBytes(MemRefType type) { return llvm::divideCeil(type.getElementTypeBitWidth(), 8); }

std::string ArenaChecker::textOf(Buffer &buffer) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (buffer.op.getSlot())
    stream << "slot " << *buffer.op.getSlot();
  else if (buffer.offset.empty() && buffer.size.empty())
    stream << "bytes " << *buffer.op.getOffset() << " to " << *buffer.op.getOffset() + buffer.bytes;
  else
    stream << "byte " << *buffer.op.getOffset();
  return text;
}

/// Buffers in use together of which neither is shown to lie above the other.
void ArenaChecker::report(llvm::function_ref<bool(uint32_t, uint32_t)> isAbove) {
  std::vector<uint32_t> used;
  std::vector<LiveRange> ranges;
  for (auto [i, buffer] : llvm::enumerate(buffers))
    if (buffer.isUsed && buffer.bytes) {
      used.push_back(i);
      ranges.push_back(buffer.live);
    }
  for (auto [earlier, later] : findOverlaps(
           ranges, [&](uint32_t high, uint32_t low) { return isAbove(used[high], used[low]); })) {
    Buffer &there = buffers[used[earlier]], &here = buffers[used[later]];
    std::string text = "lies at " + textOf(here) + ", which may overlap " + textOf(there) +
                       " of a buffer that is in use at the same time";
    if (there.flight)
      text += ": a collective in flight has it until it is waited for (" +
              describePlace(there.flight->getLoc()) + ")";
    violations.add(here.op, text);
  }
}

void ArenaChecker::checkStatic() {
  int64_t arena = entry->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr).getInt();
  bool sound = true;
  auto complain = [&](Buffer &buffer, const Twine &what) {
    violations.add(buffer.op, what);
    sound = false;
  };
  for (Buffer &buffer : buffers) {
    MemRefType type = buffer.op.getBuffer().getType();
    if (buffer.op.getSlot()) {
      complain(buffer, "has a slot, but its entry has no plan function");
      continue;
    }
    if (!type.hasStaticShape()) {
      complain(buffer, "has a size that is not known at a fixed offset, and its entry has no plan "
                       "function");
      continue;
    }
    buffer.bytes = elementBytes(type) * type.getNumElements();
    buffer.live.key = *buffer.op.getOffset();
    if (buffer.bytes > arena || buffer.live.key > arena - buffer.bytes)
      complain(buffer, "lies at " + textOf(buffer) + ", outside of the arena of " + Twine(arena) +
                           " bytes");
  }
  if (!sound)
    return;
  report([&](uint32_t high, uint32_t low) {
    return buffers[low].live.key + buffers[low].bytes <= buffers[high].live.key;
  });
}

/// Fills `offsets`, `order` and `total`.
bool ArenaChecker::readPlan(func::FuncOp plan) {
  auto slots = entry->getAttrOfType<IntegerAttr>(exec::kSlotsAttr);
  int64_t count = slots ? slots.getInt() : 0;
  std::vector<int64_t> times(count, 0);
  offsets.resize(count);
  int64_t totals = 0;
  bool sound = true;
  auto complain = [&](Operation *op, const Twine &what) {
    violations.add(op, what);
    sound = false;
  };
  for (Operation &op : plan.getBody().front()) {
    // One after the other: no recursion through long chains of offsets.
    for (Value result : op.getResults())
      if (result.getType().isIndex())
        (void)terms.of(result);
    if (auto set = dyn_cast<exec::SetOffsetOp>(op)) {
      int64_t slot = set.getSlot();
      if (slot >= count) {
        complain(&op, "sets the offset of slot " + Twine(slot) + ", but the entry has " +
                          Twine(count) + " slots");
        continue;
      }
      if (times[slot]++)
        complain(&op, "sets the offset of slot " + Twine(slot) + " again");
      offsets[slot] = terms.of(set.getOffset());
    }
    if (auto bytes = dyn_cast<exec::SetArenaBytesOp>(op)) {
      if (totals++)
        complain(&op, "sets the size of the arena again");
      total = terms.of(bytes.getBytes());
    }
  }
  if (!totals)
    complain(plan, "does not set the size of the arena");
  for (auto [slot, count] : llvm::enumerate(times))
    if (!count)
      complain(plan, "sets no offset for slot " + Twine(slot));
  return sound;
}

void ArenaChecker::checkSymbolic(func::FuncOp plan) {
  if (!readPlan(plan))
    return;
  bool sound = true;
  for (Operation &op : entry.getBody().front())
    for (Value result : op.getResults())
      if (result.getType().isIndex())
        (void)terms.of(result);
  for (Buffer &buffer : buffers) {
    MemRefType type = buffer.op.getBuffer().getType();
    std::optional<SizeSum> size = SizeTerms::constant(elementBytes(type));
    ValueRange dynamic = buffer.op.getSizes();
    for (int64_t extent : type.getShape()) {
      bool isDynamic = ShapedType::isDynamic(extent);
      SizeSum factor = isDynamic ? terms.of(dynamic.front()) : SizeTerms::constant(extent);
      dynamic = dynamic.drop_front(isDynamic);
      if (isDynamic)
        terms.noteSize(factor);
      size = size ? SizeTerms::multiply(*size, factor) : size;
    }
    std::optional<uint64_t> slot = buffer.op.getSlot();
    if (slot && *slot >= offsets.size()) {
      violations.add(buffer.op, "has slot " + Twine(*slot) + ", but its entry has " +
                                    Twine(offsets.size()) + " slots");
      sound = false;
      continue;
    }
    buffer.offset = slot ? offsets[*slot] : SizeTerms::constant(*buffer.op.getOffset());
    buffer.live.key = terms.sample(buffer.offset);
    std::optional<SizeSum> end = size ? SizeTerms::add(buffer.offset, *size) : std::nullopt;
    if (!end) {
      violations.add(buffer.op, "has a size that is too large to be checked");
      sound = false;
      continue;
    }
    buffer.size = std::move(*size);
    buffer.bytes = !buffer.size.empty(); // an empty one has no place
    terms.noteSize(buffer.size);
    buffer.end = std::move(*end);
  }
  if (!sound)
    return;
  checkEnds();
  report([&](uint32_t high, uint32_t low) {
    return terms.isAtLeast(buffers[high].offset, buffers[low].end);
  });
}

void ArenaChecker::checkEnds() {
  // The plan takes the maximum of all ends. Each buffer is compared with the operand that is most
  // likely its own.
  std::multimap<SizeSum, SizeSum> ends;
  for (SizeSum &operand : terms.maximumOf(total)) {
    SizeSum key = terms.withoutRounding(operand);
    ends.emplace(std::move(key), std::move(operand));
  }
  for (Buffer &buffer : buffers) {
    auto [begin, end] = ends.equal_range(terms.withoutRounding(buffer.end));
    bool inside = std::any_of(
        begin, end, [&](auto &entry) { return terms.isAtLeast(entry.second, buffer.end); });
    if (!inside && !terms.isAtLeast(total, buffer.end))
      violations.add(buffer.op,
                     "lies at " + textOf(buffer) +
                         ", and the plan function does not show that it ends inside the arena");
  }
}

} // namespace

void shardc::checkArena(func::FuncOp entry, const PlannedModule &module, Violations &violations) {
  ArenaChecker(entry, module, violations).run();
}
