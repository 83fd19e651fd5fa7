// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One op of any form: a thread for each point of its parallel loops runs over the other loops, in
// order. It is right for every op, and what other kinds do not take.

#include "lowering/cuda/kernels/Elements.h"
#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

constexpr int64_t kGeneralThreads = 128;

/// The loops of the caller are those of the op.
class GeneralElements : public ElementBuilder {
public:
  using ElementBuilder::ElementBuilder;
  SmallVector<Value> positions;

protected:
  Value position(int dim) override { return positions[dim]; }
};

class GeneralEmitter {
public:
  GeneralEmitter(const KernelStage &stage, OpBuilder &host)
      : stage(stage), host(host), loc(stage.kernel.getLoc()), op(stage.ops.front()) {
    for (unsigned i = 0; i < op.getNumLoops(); ++i)
      identity.push_back(i);
  }

  void emit();

private:
  bool isReduced(unsigned loop) {
    return op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
  }
  /// Whether the op has an element of the result for each step of a reduction (a scan's).
  bool isOfEachStep(OpOperand &init) {
    return llvm::any_of(op.getMatchingIndexingMap(&init).getResults(), [&](AffineExpr expr) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      return loop && isReduced(loop.getPosition());
    });
  }
  void store(GeneralElements &elements, OpOperand &init, Value value);
  SmallVector<Value> runLoops(GeneralElements &elements, ArrayRef<unsigned> loops,
                              ValueRange carried);
  SmallVector<Value> step(GeneralElements &elements, ValueRange carried);

  const KernelStage &stage;
  OpBuilder &host;
  Location loc;
  linalg::LinalgOp op;
  SmallVector<int> identity;
  SmallVector<OpFoldResult> extents;
};

void GeneralEmitter::store(GeneralElements &elements, OpOperand &init, Value value) {
  OpResult result = op.getTiedOpResult(&init);
  if (!llvm::is_contained(stage.stored, result))
    return;
  SmallVector<Value> positions;
  for (int dim : accessOf(op, init, identity).dims)
    positions.push_back(dim == kNoDim
                            ? arith::ConstantIndexOp::create(elements.builder, loc, 0).getResult()
                            : elements.positions[dim]);
  storeElement(elements, stage.kernel, result, positions, value);
}

/// One point of all loops. What is not carried is stored.
SmallVector<Value> GeneralEmitter::step(GeneralElements &elements, ValueRange carried) {
  SmallVector<Value> inits, next;
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (!isOfEachStep(init)) {
      inits.push_back(carried.front());
      carried = carried.drop_front();
    } else if (op.payloadUsesValueFromOperand(&init)) {
      inits.push_back(elements.element(accessOf(op, init, identity)));
    } else {
      inits.push_back(Value());
    }
  }
  SmallVector<Value> results = elements.compute(op, identity, inits);
  for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(), results)) {
    if (isOfEachStep(init))
      store(elements, init, value);
    else
      next.push_back(value);
  }
  return next;
}

SmallVector<Value> GeneralEmitter::runLoops(GeneralElements &elements, ArrayRef<unsigned> loops,
                                            ValueRange carried) {
  if (loops.empty())
    return step(elements, carried);
  OpBuilder &b = elements.builder;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = getValueOrCreateConstantIndexOp(b, loc, extents[loops.front()]);
  auto loop = scf::ForOp::create(b, loc, zero, end, one, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  elements.positions[loops.front()] = loop.getInductionVar();
  SmallVector<Value> next = runLoops(elements, loops.drop_front(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void GeneralEmitter::emit() {
  extents = stage.kernel.loopExtents(op);
  SmallVector<unsigned> parallel, reduced;
  SmallVector<OpFoldResult> points;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    (isReduced(loop) ? reduced : parallel).push_back(loop);
    if (!isReduced(loop))
      points.push_back(extents[loop]);
  }
  OpFoldResult total = multiply(host, loc, points);
  OpFoldResult grid = divideUp(host, loc, total, kGeneralThreads);
  createLaunch(host, loc, grid, kGeneralThreads, {}, [&](OpBuilder &b, gpu::LaunchOp launch) {
    std::optional<int64_t> bound = getConstantIntValue(total);
    if (bound)
      *bound += kGeneralThreads;
    DeviceIndex index(b, loc, bound);
    Value number = index.globalThread(launch);
    auto inside = scf::IfOp::create(b, loc, index.less(number, index.of(total)), false);
    b.setInsertionPoint(inside.thenYield());
    GeneralElements elements(stage, b, loc);
    elements.positions.resize(op.getNumLoops());
    for (auto [loop, value] : llvm::zip_equal(parallel, index.delinearize(number, points)))
      elements.positions[loop] = index.toIndex(value);
    SmallVector<Value> carried;
    for (OpOperand &init : op.getDpsInitsMutable())
      if (!isOfEachStep(init))
        carried.push_back(elements.element(accessOf(op, init, identity)));
    SmallVector<Value> results = runLoops(elements, reduced, carried);
    for (OpOperand &init : op.getDpsInitsMutable())
      if (!isOfEachStep(init)) {
        store(elements, init, results.front());
        results.erase(results.begin());
      }
  });
}

class GeneralKind : public KernelKind {
public:
  StringRef name() const override { return "general"; }
  size_t match(FusedKernel &, ArrayRef<linalg::LinalgOp>) const override { return 1; }
  LogicalResult emit(const KernelStage &stage, OpBuilder &host) const override {
    GeneralEmitter(stage, host).emit();
    return success();
  }
};

} // namespace

std::unique_ptr<KernelKind> createGeneralKind() { return std::make_unique<GeneralKind>(); }

} // namespace shardc::cuda
