// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// planned: what collectives in flight read and write, against what is done meanwhile.

#include "passes/verify/PlannedChecks.h"

#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace shardc;

PlannedModule::PlannedModule(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    functions[function.getName()] = function;
}

const llvm::BitVector &PlannedModule::writtenArguments(func::FuncOp kernel) {
  auto [it, inserted] = written.try_emplace(kernel);
  if (!inserted)
    return it->second;
  // A kernel that does not say it is refused on its own; it may write anything.
  auto writes = kernel->getAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr);
  it->second.resize(kernel.getNumArguments(), !writes);
  if (writes)
    for (int64_t number : writes.asArrayRef())
      if (number >= 0 && number < kernel.getNumArguments())
        it->second.set(number);
  return it->second;
}

llvm::BitVector PlannedModule::writtenOperands(Operation *op) {
  if (auto launch = dyn_cast<exec::LaunchOp>(op)) {
    func::FuncOp kernel = function(launch.getKernel());
    // A kernel in another form than that of this stage is refused on its own, too.
    llvm::BitVector result = kernel ? writtenArguments(kernel) : llvm::BitVector();
    result.resize(op->getNumOperands(), true);
    return result;
  }
  llvm::BitVector result(op->getNumOperands());
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects)
    return result;
  SmallVector<MemoryEffects::EffectInstance> list;
  effects.getEffects(list);
  for (const MemoryEffects::EffectInstance &effect : list)
    if (auto *operand = effect.getEffectValue<OpOperand *>();
        operand && isa<MemoryEffects::Write>(effect.getEffect()))
      result.set(operand->getOperandNumber());
  return result;
}

namespace {

enum class Shared { No, Unknown, Yes };

/// Which elements of its buffer a view has.
struct Elements {
  bool isKnown = false;
  int64_t begin = 0, end = 0; // all lie in [begin, end)
  bool isContiguous = false;  // these are all of them
  SmallVector<std::pair<int64_t, int64_t>>
      dims; // (stride, size), sizes above 1, widest stride first
};

Elements elementsOf(MemRefType type) {
  Elements result;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (!type.hasStaticShape() || failed(type.getStridesAndOffset(strides, offset)) ||
      ShapedType::isDynamic(offset) || llvm::any_of(strides, ShapedType::isDynamic) ||
      llvm::any_of(strides, [](int64_t stride) { return stride < 0; }))
    return result;
  result.isKnown = true;
  result.begin = result.end = offset;
  if (type.getNumElements() == 0)
    return result;
  int64_t last = offset;
  for (auto [stride, size] : llvm::zip_equal(strides, type.getShape())) {
    last += stride * (size - 1);
    if (size > 1)
      result.dims.push_back({stride, size});
  }
  llvm::sort(result.dims, std::greater<>());
  result.end = last + 1;
  result.isContiguous = result.end - result.begin == type.getNumElements();
  return result;
}

/// Whether some element lies in [begin, end); `dims` without those that were fixed, `at` the first
/// element left.
bool hasElementIn(ArrayRef<std::pair<int64_t, int64_t>> dims, int64_t at, int64_t begin,
                  int64_t end) {
  int64_t last = at;
  for (auto [stride, size] : dims)
    last += stride * (size - 1);
  if (last < begin || at >= end)
    return false;
  if ((at >= begin && at < end) || (last >= begin && last < end))
    return true;
  // It begins before and ends after: some element of the widest dim must reach in.
  auto [stride, size] = dims.front();
  if (stride == 0)
    return hasElementIn(dims.drop_front(), at, begin, end);
  int64_t inner = last - at - stride * (size - 1);
  int64_t from = std::max<int64_t>(0, (begin - at - inner) / stride);
  for (int64_t i = from; i < size && at + i * stride < end; ++i)
    if (hasElementIn(dims.drop_front(), at + i * stride, begin, end))
      return true;
  return false;
}

/// Whether two views of sizes that are not known begin at one element.
bool haveOneStart(Value a, Value b) {
  auto x = a.getDefiningOp<memref::ReinterpretCastOp>();
  auto y = b.getDefiningOp<memref::ReinterpretCastOp>();
  return x && y && isEqualConstantIntOrValue(x.getMixedOffsets()[0], y.getMixedOffsets()[0]);
}

/// Of two views of one buffer.
Shared shareMemory(Value a, Value b) {
  if (a == b)
    return cast<MemRefType>(a.getType()).hasStaticShape() &&
                   cast<MemRefType>(a.getType()).getNumElements() == 0
               ? Shared::No
               : Shared::Yes;
  Elements x = elementsOf(cast<MemRefType>(a.getType())),
           y = elementsOf(cast<MemRefType>(b.getType()));
  if ((x.isKnown && x.begin == x.end) || (y.isKnown && y.begin == y.end))
    return Shared::No;
  // All of a buffer, whatever its size.
  if (a == rootOf(b) || b == rootOf(a))
    return Shared::Yes;
  if (!x.isKnown || !y.isKnown)
    return haveOneStart(a, b) ? Shared::Yes : Shared::Unknown;
  if (x.end <= y.begin || y.end <= x.begin)
    return Shared::No;
  if (x.isContiguous)
    return hasElementIn(y.dims, y.begin, x.begin, x.end) ? Shared::Yes : Shared::No;
  if (y.isContiguous)
    return hasElementIn(x.dims, x.begin, y.begin, y.end) ? Shared::Yes : Shared::No;
  return x.begin == y.begin && x.dims == y.dims ? Shared::Yes : Shared::Unknown;
}

class FlightChecker {
public:
  FlightChecker(func::FuncOp entry, PlannedModule &module, Violations &violations,
                FlightStatistics &statistics)
      : entry(entry), module(module), violations(violations), statistics(statistics) {}

  void run();

private:
  struct Access {
    Operation *start;
    Value memory;
    bool isWrite;
  };
  bool share(Value a, Value b);
  void checkOperands(Operation *op, const llvm::BitVector &written);
  bool mayBeOne(Operation *op, unsigned read, unsigned written);
  void checkAgainstFlights(Operation *op, const llvm::BitVector &written);
  void checkToken(exec::StartOp start);
  void land(Operation *start);

  func::FuncOp entry;
  PlannedModule &module;
  Violations &violations;
  FlightStatistics &statistics;
  llvm::DenseMap<Value, SmallVector<Access, 1>> flights; // by buffer
};

bool FlightChecker::share(Value a, Value b) {
  Shared shared = shareMemory(a, b);
  statistics.unproven += shared == Shared::Unknown;
  return shared == Shared::Yes;
}

/// A collective may work in place: on one tensor of an all-reduce or broadcast, and from its own
/// part of what an all-gather delivers.
bool FlightChecker::mayBeOne(Operation *op, unsigned read, unsigned written) {
  // In place it copies nothing, and changes elements of what is there.
  if (auto scatter = dyn_cast<exec::ScatterOp>(op))
    return read == 0 && scatter.getSource() == scatter.getOut();
  auto collective = dyn_cast<exec::CollectiveCallInterface>(op);
  if (!collective)
    return false;
  unsigned inputs = collective.getInputs().size();
  if (read >= inputs || written - inputs != read)
    return false;
  switch (collective.getKind()) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::Broadcast:
    return collective.getInputs()[read] == collective.getOutputs()[read];
  case CollectiveKind::AllGather:
    return collective.getInputs()[read] != collective.getOutputs()[read];
  default:
    return false;
  }
}

void FlightChecker::checkOperands(Operation *op, const llvm::BitVector &written) {
  for (unsigned w : written.set_bits())
    for (OpOperand &other : op->getOpOperands()) {
      unsigned r = other.getOperandNumber();
      if (r == w || (written.test(r) && r > w) || !isa<MemRefType>(other.get().getType()))
        continue;
      Value target = op->getOperand(w);
      if (rootOf(target) == rootOf(other.get()) && !mayBeOne(op, r, w) &&
          share(target, other.get()))
        violations.add(op, "writes operand " + Twine(w) + ", which shares memory with operand " +
                               Twine(r));
    }
}

void FlightChecker::checkAgainstFlights(Operation *op, const llvm::BitVector &written) {
  if (flights.empty())
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value memory = operand.get();
    if (!isa<MemRefType>(memory.getType()))
      continue;
    auto it = flights.find(rootOf(memory));
    if (it == flights.end())
      continue;
    bool writes = written.test(operand.getOperandNumber());
    for (const Access &access : it->second)
      if ((writes || access.isWrite) && share(memory, access.memory)) {
        violations.add(op, Twine(writes ? "writes" : "reads") +
                               " memory that a collective in flight " +
                               (access.isWrite ? "writes" : "reads") + " until it is waited for (" +
                               describePlace(access.start->getLoc()) + ")");
        break;
      }
  }
}

void FlightChecker::checkToken(exec::StartOp start) {
  int64_t waits = 0;
  llvm::SmallPtrSet<Operation *, 4> others; // an op that uses it twice is one violation
  for (Operation *user : start.getToken().getUsers()) {
    if (isa<exec::WaitOp>(user))
      ++waits;
    else if (others.insert(user).second)
      violations.add(user, "uses a token: only exec.wait may");
  }
  if (waits > 1)
    violations.add(start, "is waited for " + Twine(waits) + " times, may be once");
}

void FlightChecker::land(Operation *start) {
  for (Value operand : start->getOperands()) {
    auto it = isa<MemRefType>(operand.getType()) ? flights.find(rootOf(operand)) : flights.end();
    if (it == flights.end())
      continue;
    llvm::erase_if(it->second, [&](const Access &access) { return access.start == start; });
    if (it->second.empty())
      flights.erase(it);
  }
}

void FlightChecker::run() {
  for (Operation &op : entry.getBody().front()) {
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      land(wait.getToken().getDefiningOp());
    if (isa<ViewLikeOpInterface, exec::AllocOp>(op))
      continue;
    llvm::BitVector written = module.writtenOperands(&op);
    checkOperands(&op, written);
    checkAgainstFlights(&op, written);
    auto start = dyn_cast<exec::StartOp>(op);
    if (!start)
      continue;
    checkToken(start);
    for (OpOperand &operand : op.getOpOperands())
      if (isa<MemRefType>(operand.get().getType()))
        flights[rootOf(operand.get())].push_back(
            {&op, operand.get(), written.test(operand.getOperandNumber())});
  }
}

} // namespace

void shardc::checkFlights(func::FuncOp entry, PlannedModule &module, Violations &violations,
                          FlightStatistics &statistics) {
  FlightChecker(entry, module, violations, statistics).run();
}
