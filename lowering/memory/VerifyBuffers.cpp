// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// exec-verify-buffers: the host program reads what has been written, and writes all that it
// returns.

#include "lowering/memory/BufferLifetimes.h"
#include "lowering/memory/Passes.h"
#include "lowering/memory/SizeEstimator.h"
#include "lowering/memory/UpdateChecks.h"
#include "lowering/memory/core/StridedRegion.h"

#include "dialects/exec/Exec.h"
#include "passes/verify/Violations.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/ScopedPrinter.h"

namespace shardc::memory {
#define GEN_PASS_DEF_VERIFYBUFFERS
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

/// What has been written so far of an argument, a constant or a buffer of the arena.
struct Contents {
  /// All elements; nothing where their number is not written down.
  std::optional<StridedRegion> whole;
  bool complete = false;
  bool isConstant = false;
  std::vector<StridedRegion> written;
  int64_t elements = 0; // of `written`, those that are there twice counted twice
};

int64_t elementsOf(const StridedRegion &region) {
  int64_t count = 1;
  for (auto [size, stride] : region.dims)
    count *= size;
  return count;
}

class BufferVerifier {
public:
  BufferVerifier(func::FuncOp entry, SymbolTable &symbols, Violations &violations)
      : entry(entry), symbols(symbols), violations(violations), estimator(entry),
        updates(entry, violations) {}

  void verify();

private:
  void addArguments();
  void visit(Operation *op);
  void launch(exec::LaunchOp op);
  void start(exec::StartOp op);
  void wait(exec::WaitOp op);
  void read(Operation *op, Value memref);
  void readInPlace(Operation *op, Value memref);
  void write(Operation *op, Value memref);
  void checkAliases(Operation *op, Value written, ValueRange others);
  void finish(func::ReturnOp op);

  StridedRegion dense(MemRefType type, llvm::function_ref<int64_t(unsigned)> dynamicSize);
  View viewOf(Value memref);
  std::optional<int64_t> missing(const View &view);

  func::FuncOp entry;
  SymbolTable &symbols;
  Violations &violations;
  SizeEstimator estimator;
  UpdateChecks updates;
  DenseMap<Value, Contents> contents;
  /// Outputs of what is in flight, by token.
  llvm::MapVector<Value, SmallVector<Value>> inFlight;
};

/// `dynamicSize`: of the dim with this number.
StridedRegion BufferVerifier::dense(MemRefType type,
                                    llvm::function_ref<int64_t(unsigned)> dynamicSize) {
  int64_t count = 1;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    count *= std::max<int64_t>(0, ShapedType::isDynamic(size) ? dynamicSize(dim) : size);
  return {0, {{count, 1}}};
}

void BufferVerifier::addArguments() {
  for (BlockArgument argument : entry.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto kind = entry.getArgAttrOfType<exec::ArgumentKindAttr>(number, exec::kArgumentAttr);
    if (!kind)
      violations.add(entry.getLoc(), "the entry '" + entry.getName() + "' does not say with '" +
                                         exec::kArgumentAttr + "' what argument " + Twine(number) +
                                         " is");
    Contents &state = contents[argument];
    state.complete = state.isConstant = kind && kind.getValue() != exec::ArgumentKind::Output;
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      violations.add(entry.getLoc(), "the entry '" + entry.getName() +
                                         "' has an argument that is "
                                         "no memory: argument " +
                                         Twine(number));
      continue;
    }
    auto extents = entry.getArgAttrOfType<ArrayAttr>(number, exec::kExtentsAttr);
    if (type.hasStaticShape() || extents)
      state.whole = dense(type, [&](unsigned dim) { return estimator.value(extents[dim]); });
  }
}

View BufferVerifier::viewOf(Value memref) {
  if (auto cast = memref.getDefiningOp<memref::CastOp>())
    return viewOf(cast.getSource());
  auto view = memref.getDefiningOp<memref::ReinterpretCastOp>();
  if (!view)
    return {bufferOf(memref), std::nullopt};
  auto value = [&](OpFoldResult size) {
    std::optional<int64_t> constant = getConstantIntValue(size);
    return constant ? *constant : estimator.value(cast<Value>(size));
  };
  StridedRegion region{value(view.getMixedOffsets().front()), {}};
  for (auto [size, stride] : llvm::zip_equal(view.getMixedSizes(), view.getMixedStrides()))
    region.dims.push_back({value(size), value(stride)});
  return {bufferOf(memref), region};
}

/// Behind the last element.
static int64_t endOf(const StridedRegion &region) {
  int64_t last = region.offset;
  for (const StridedRegion::Dim &dim : region.dims)
    last += (dim.size - 1) * dim.stride;
  return region.isEmpty() ? 0 : last + 1;
}

/// An element that has not been written.
std::optional<int64_t> BufferVerifier::missing(const View &view) {
  const Contents &state = contents[view.root];
  const std::optional<StridedRegion> &region = view.region ? view.region : state.whole;
  if (state.complete)
    return std::nullopt;
  // All of something whose size is not known: as far as it is written, it must have no holes.
  if (!region) {
    int64_t end = 1;
    for (const StridedRegion &written : state.written)
      end = std::max(end, endOf(written));
    return findOutside({0, {{end, 1}}}, state.written);
  }
  return findOutside(*region, state.written);
}

void BufferVerifier::read(Operation *op, Value memref) {
  View view = viewOf(memref);
  updates.read(op, view);
  if (std::optional<int64_t> element = missing(view))
    violations.add(op, "reads element " + Twine(*element) + " of a buffer of type " +
                           llvm::to_string(view.root.getType()) + ", which nothing has written");
}

void BufferVerifier::write(Operation *op, Value memref) {
  View view = viewOf(memref);
  Contents &state = contents[view.root];
  if (!isa<exec::WaitOp, func::ReturnOp>(
          op)) // what a collective delivers, its start began to write
    updates.write(op, view);
  if (state.isConstant)
    return violations.add(op, "writes an input, a parameter or a constant");
  if (!view.region || state.complete) {
    state.complete = true;
    return;
  }
  state.written.push_back(*view.region);
  state.elements += elementsOf(*view.region);
  if (!state.whole || state.elements < elementsOf(*state.whole) ||
      findOutside(*state.whole, state.written))
    return;
  state.complete = true;
  state.written.clear();
}

/// What a kernel reads where it writes is an old value, or what was written before.
void BufferVerifier::readInPlace(Operation *op, Value memref) {
  View view = viewOf(memref);
  if (!updates.isUpdate(view.root))
    return read(op, memref);
  updates.readInPlace(op, view);
}

/// Kernels are compiled for memory of which no two arguments have a part in common.
void BufferVerifier::checkAliases(Operation *op, Value written, ValueRange others) {
  View mine = viewOf(written);
  const std::optional<StridedRegion> &whole = contents[mine.root].whole;
  for (Value other : others) {
    if (!isa<MemRefType>(other.getType()))
      continue;
    View its = viewOf(other);
    if (updates.memoryOf(its.root) != updates.memoryOf(mine.root))
      continue;
    const std::optional<StridedRegion> &a = mine.region ? mine.region : whole;
    const std::optional<StridedRegion> &b = its.region ? its.region : whole;
    if (!a || !b || findCommon(*a, *b))
      violations.add(op, "writes memory that it uses through another operand, too");
  }
}

void BufferVerifier::launch(exec::LaunchOp op) {
  auto kernel = symbols.lookup<FunctionOpInterface>(op.getKernel());
  auto writes = kernel->getAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr);
  if (!writes)
    return violations.add(op, "launches '" + op.getKernel() + "', which does not say with '" +
                                  exec::kWritesAttr + "' which arguments it writes");
  auto isWritten = [&](size_t number) {
    return llvm::is_contained(writes.asArrayRef(), static_cast<int64_t>(number));
  };
  for (auto [number, argument] : llvm::enumerate(op.getArgs()))
    if (isa<MemRefType>(argument.getType()) && !isWritten(number))
      read(op, argument);
  auto inPlace = kernel->getAttrOfType<DenseI64ArrayAttr>(exec::kInPlaceAttr);
  for (auto [number, argument] : llvm::enumerate(op.getArgs())) {
    if (!isWritten(number))
      continue;
    if (inPlace && llvm::is_contained(inPlace.asArrayRef(), static_cast<int64_t>(number)))
      readInPlace(op, argument);
    // Pairs of two written arguments once.
    SmallVector<Value> others;
    for (auto [position, other] : llvm::enumerate(op.getArgs()))
      if (!isWritten(position) || position > number)
        others.push_back(other);
    checkAliases(op, argument, others);
    write(op, argument);
  }
}

void BufferVerifier::start(exec::StartOp op) {
  for (Value input : op.getInputs()) {
    read(op, input);
    updates.readInFlight(op.getToken(), viewOf(input));
  }
  for (Value output : op.getOutputs())
    updates.write(op, viewOf(output));
  inFlight[op.getToken()] = SmallVector<Value>(op.getOutputs());
}

void BufferVerifier::wait(exec::WaitOp op) {
  updates.endFlight(op.getToken());
  for (Value output : inFlight.lookup(op.getToken()))
    write(op, output);
  inFlight.erase(op.getToken());
}

void BufferVerifier::visit(Operation *op) {
  if (auto alloc = dyn_cast<exec::AllocOp>(op)) {
    ValueRange sizes = alloc.getSizes();
    MemRefType type = alloc.getBuffer().getType();
    contents[alloc.getBuffer()].whole = dense(
        type, [&](unsigned dim) { return estimator.value(sizes[type.getDynamicDimIndex(dim)]); });
    return;
  }
  if (auto constant = dyn_cast<memref::GetGlobalOp>(op)) {
    Contents &state = contents[constant.getResult()];
    state.complete = state.isConstant = true;
    return;
  }
  if (auto call = dyn_cast<exec::LaunchOp>(op))
    return launch(call);
  if (auto product = dyn_cast<exec::GemmOp>(op)) {
    SmallVector<Value> operands{product.getA(), product.getB()};
    if (Value bias = product.getBias())
      operands.push_back(bias);
    checkAliases(op, product.getC(), operands);
    if (!product.getBeta().isZero())
      operands.push_back(product.getC());
    for (Value operand : operands)
      read(op, operand);
    return write(op, product.getC());
  }
  if (auto collective = dyn_cast<exec::CollectiveOp>(op)) {
    for (Value input : collective.getInputs())
      read(op, input);
    for (Value output : collective.getOutputs())
      write(op, output);
    return;
  }
  if (auto begun = dyn_cast<exec::StartOp>(op))
    return start(begun);
  if (auto awaited = dyn_cast<exec::WaitOp>(op))
    return wait(awaited);
  if (isa<exec::CommitOp>(op))
    return updates.commit();
  if (auto end = dyn_cast<func::ReturnOp>(op))
    return finish(end);
  if (isa<memref::ReinterpretCastOp, memref::CastOp>(op))
    return;
  // Any other op says what it does to its operands.
  if (auto declared = dyn_cast<MemoryEffectOpInterface>(op)) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    declared.getEffects(effects);
    SmallVector<Value> inputs, outputs;
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (effect.getValue())
        (isa<MemoryEffects::Write>(effect.getEffect()) ? outputs : inputs)
            .push_back(effect.getValue());
    if (!effects.empty() && inputs.size() + outputs.size() == effects.size()) {
      // It changes elements of what is there, and copies nothing.
      if (auto scatter = dyn_cast<exec::ScatterOp>(op);
          scatter && scatter.getSource() == scatter.getOut()) {
        readInPlace(op, scatter.getOut());
        inputs.erase(llvm::find(inputs, scatter.getSource()));
      }
      for (Value output : outputs)
        checkAliases(op, output, inputs);
      for (Value input : inputs)
        read(op, input);
      for (Value output : outputs)
        write(op, output);
      return;
    }
  }
  if (isa<ViewLikeOpInterface>(op) || !isMemoryEffectFree(op))
    violations.add(op, "is no op that this verifier knows on memory");
}

/// What nobody waits for here is complete when the run is.
void BufferVerifier::finish(func::ReturnOp op) {
  for (auto &[token, outputs] : inFlight)
    for (Value output : outputs)
      write(op, output);
  unsigned output = 0;
  for (BlockArgument argument : entry.getArguments()) {
    auto kind = entry.getArgAttrOfType<exec::ArgumentKindAttr>(argument.getArgNumber(),
                                                               exec::kArgumentAttr);
    if (!kind || kind.getValue() != exec::ArgumentKind::Output)
      continue;
    // What is not written of a parameter stays as it is.
    if (updates.isUpdate(argument)) {
      ++output;
      continue;
    }
    if (std::optional<int64_t> element = missing({argument, std::nullopt}))
      violations.add(op.getLoc(), "the entry '" + entry.getName() +
                                      "' returns without having written element " +
                                      Twine(*element) + " of output " + Twine(output));
    ++output;
  }
}

void BufferVerifier::verify() {
  addArguments();
  for (Operation &op : entry.getBody().front())
    visit(&op);
}

struct VerifyBuffers : memory::impl::VerifyBuffersBase<VerifyBuffers> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    Violations violations;
    for (auto entry : getOperation().getOps<func::FuncOp>()) {
      if (!entry->hasAttr(exec::kEntryAttr) || entry.isDeclaration())
        continue;
      BufferVerifier(entry, symbols, violations).verify();
      ++entries;
    }
    if (failed(violations.report()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
