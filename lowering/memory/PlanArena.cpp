// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/BufferLifetimes.h"
#include "lowering/memory/Passes.h"
#include "lowering/memory/SizeEstimator.h"
#include "lowering/memory/core/ArenaPlanner.h"
#include "lowering/target/Target.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace shardc::memory {
#define GEN_PASS_DEF_PLANARENA
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

int64_t elementBytes(exec::AllocOp op) {
  return llvm::divideCeil(op.getBuffer().getType().getElementTypeBitWidth(), 8);
}

struct PlanArena : memory::impl::PlanArenaBase<PlanArena> {
  void runOnOperation() override {
    FailureOr<target::Limits> limits = target::readLimits(getOperation());
    if (failed(limits))
      return signalPassFailure();
    alignment = limits->bufferAlignment;
    SmallVector<func::FuncOp> entries;
    for (auto entry : getOperation().getOps<func::FuncOp>())
      if (entry->hasAttr(exec::kEntryAttr))
        entries.push_back(entry);
    for (func::FuncOp entry : entries)
      plan(entry);
  }

  void plan(func::FuncOp entry) {
    BufferLifetimes lifetimes(entry);
    SmallVector<exec::AllocOp> buffers;
    std::vector<ArenaRequest> requests;
    SizeEstimator estimator(entry);
    bool symbolic = false;
    for (exec::AllocOp op : lifetimes.buffers()) {
      std::optional<BufferLifetimes::Interval> interval = lifetimes.interval(op.getBuffer());
      if (!interval) {
        if (op->use_empty())
          op.erase();
        continue;
      }
      uint64_t bytes = elementBytes(op);
      ValueRange dynamic = op.getSizes();
      for (int64_t size : op.getBuffer().getType().getShape()) {
        if (!ShapedType::isDynamic(size)) {
          bytes *= size;
          continue;
        }
        bytes *= std::max<int64_t>(0, estimator.value(dynamic.front()));
        dynamic = dynamic.drop_front();
        symbolic = true;
      }
      buffers.push_back(op);
      requests.push_back({bytes, interval->first, interval->last});
    }
    ArenaPlan arena = planArena(requests, alignment);
    arenaBytes += arena.bytes;
    peakBytes += peakLiveBytes(requests, alignment);
    OpBuilder builder(entry.getContext());
    if (symbolic) {
      makePlanFunction(entry, buffers, orderArena(requests, arena));
      return;
    }
    entry->setAttr(exec::kArenaBytesAttr, builder.getI64IntegerAttr(arena.bytes));
    for (auto [op, offset] : llvm::zip_equal(buffers, arena.offsets))
      op.setOffsetAttr(builder.getI64IntegerAttr(offset));
  }

  /// Offsets become slots, which a second function fills from the symbols.
  void makePlanFunction(func::FuncOp entry, ArrayRef<exec::AllocOp> buffers,
                        const ArenaOrder &order) {
    Location loc = entry.getLoc();
    OpBuilder builder(entry.getContext());
    builder.setInsertionPointAfter(entry);
    std::string name = (entry.getName() + "_plan").str();
    auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
    function.setPrivate();
    function->setAttr(exec::kPlanAttr, builder.getUnitAttr());
    if (Attribute symbols = entry->getAttr(dist::kSymbolsAttr))
      function->setAttr(dist::kSymbolsAttr, symbols);
    entry->setAttr(exec::kPlanAttr, FlatSymbolRefAttr::get(function));
    entry->setAttr(exec::kSlotsAttr, builder.getI64IntegerAttr(buffers.size()));
    builder.setInsertionPointToStart(function.addEntryBlock());
    // Whatever the sizes are computed from.
    llvm::SetVector<Operation *> slice;
    for (exec::AllocOp op : buffers)
      for (Value size : op.getSizes()) {
        BackwardSliceOptions options;
        options.inclusive = true;
        (void)getBackwardSlice(size, &slice, options);
      }
    IRMapping mapping;
    for (Operation *op : topologicalSort(slice))
      builder.clone(*op, mapping);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    SmallVector<Value> ends(buffers.size());
    Value total = constant(0);
    for (uint32_t i : order.order) {
      exec::AllocOp op = buffers[i];
      Value bytes = constant(elementBytes(op));
      ValueRange dynamic = op.getSizes();
      for (int64_t size : op.getBuffer().getType().getShape()) {
        bool isDynamic = ShapedType::isDynamic(size);
        Value factor = isDynamic ? mapping.lookup(dynamic.front()) : constant(size);
        dynamic = dynamic.drop_front(isDynamic);
        bytes = arith::MulIOp::create(builder, loc, bytes, factor);
      }
      Value unit = constant(alignment);
      Value blocks = arith::CeilDivUIOp::create(builder, loc, bytes, unit);
      bytes = arith::MulIOp::create(builder, loc, blocks, unit);
      Value offset = constant(0);
      for (uint32_t below : order.below[i])
        offset = arith::MaxUIOp::create(builder, loc, offset, ends[below]);
      ends[i] = arith::AddIOp::create(builder, loc, offset, bytes);
      total = arith::MaxUIOp::create(builder, loc, total, ends[i]);
      exec::SetOffsetOp::create(builder, loc, offset, builder.getI64IntegerAttr(i));
      op.setSlotAttr(builder.getI64IntegerAttr(i));
    }
    exec::SetArenaBytesOp::create(builder, loc, total);
    func::ReturnOp::create(builder, loc);
  }

  uint64_t alignment = 0; // of the target
};

} // namespace
