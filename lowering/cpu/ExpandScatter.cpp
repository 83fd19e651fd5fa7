// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adding at computed positions: a kernel copies the tensor, and then adds one element after the
// other. The second part runs on one thread: positions may repeat, and sums of floats depend on
// their order.

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"
#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUEXPANDSCATTER
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;

namespace {

/// Elements that one thread copies at least.
constexpr int64_t kGrain = 1 << 14;

class KernelBuilder {
public:
  KernelBuilder(exec::ScatterAddOp op, ArrayRef<Type> types)
      : op(op), loc(op.getLoc()), builder(op.getContext()) {
    kernel = func::FuncOp::create(loc, "scatter_add", builder.getFunctionType(types, {}));
    kernel.setPrivate();
    kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
    kernel->setAttr(exec::kWritesAttr,
                    builder.getDenseI64ArrayAttr(static_cast<int64_t>(types.size()) - 1));
    builder.setInsertionPointToStart(kernel.addEntryBlock());
  }

  func::FuncOp build() {
    copy();
    Bounds bounds = boundsOf(builder, values(), 0);
    Value valid = arith::ConstantIntOp::create(builder, loc, 1, 1);
    if (bounds.begins.empty()) {
      valid = addOne(builder, {}, valid);
    } else {
      scf::LoopNest nest =
          scf::buildLoopNest(builder, loc, bounds.begins, bounds.ends, bounds.steps, valid,
                             [&](OpBuilder &b, Location, ValueRange at, ValueRange carried) {
                               return scf::ValueVector{addOne(b, at, carried.front())};
                             });
      valid = nest.results.front();
    }
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value outside = arith::XOrIOp::create(builder, loc, valid, yes);
    exec::FailIfOp::create(builder, loc, outside, op.getMessageAttr());
    func::ReturnOp::create(builder, loc);
    return kernel;
  }

private:
  struct Bounds {
    SmallVector<Value> begins, ends, steps;
  };

  Value source() { return kernel.getArgument(0); }
  Value values() { return kernel.getArgument(1); }
  Value index(unsigned number) { return kernel.getArgument(2 + number); }
  Value out() { return kernel.getArguments().back(); }

  /// Of loops over the dims of a memref from `first` on.
  Bounds boundsOf(OpBuilder &b, Value memory, int64_t first) {
    Bounds bounds;
    for (int64_t dim = first, rank = cast<MemRefType>(memory.getType()).getRank(); dim < rank;
         ++dim) {
      bounds.begins.push_back(arith::ConstantIndexOp::create(b, loc, 0));
      bounds.ends.push_back(memref::DimOp::create(b, loc, memory, dim));
      bounds.steps.push_back(arith::ConstantIndexOp::create(b, loc, 1));
    }
    return bounds;
  }

  /// On several threads, by the first dim.
  void copy() {
    auto type = cast<MemRefType>(out().getType());
    int64_t row = 1;
    for (int64_t size : type.getShape().drop_front())
      row *= ShapedType::isDynamic(size) ? 1 : std::max<int64_t>(size, 1);
    Value rows = memref::DimOp::create(builder, loc, out(), 0);
    auto loop = exec::ParallelOp::create(builder, loc, rows, std::max<int64_t>(1, kGrain / row));
    Block *body = builder.createBlock(&loop.getBody(), {}, {builder.getIndexType()}, {loc});
    OpBuilder inner = OpBuilder::atBlockBegin(body);
    Bounds bounds = boundsOf(inner, out(), 1);
    auto copyOne = [&](OpBuilder &b, Location, ValueRange at) {
      SmallVector<Value> position{loop.getInductionVariable()};
      position.append(at.begin(), at.end());
      Value element = memref::LoadOp::create(b, loc, source(), position);
      memref::StoreOp::create(b, loc, element, out(), position);
    };
    if (bounds.begins.empty())
      copyOne(inner, loc, {});
    else
      scf::buildLoopNest(inner, loc, bounds.begins, bounds.ends, bounds.steps, copyOne);
    builder.setInsertionPointAfter(loop);
  }

  /// Whether all positions up to this one were in range, as i1.
  Value addOne(OpBuilder &b, ValueRange at, Value valid) {
    SmallVector<Value> position;
    Value inside = arith::ConstantIntOp::create(b, loc, 1, 1);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    unsigned next = 0;
    for (auto [dim, from] : llvm::enumerate(op.getLoops())) {
      if (from >= 0) {
        position.push_back(at[from]);
        continue;
      }
      Value stored = memref::LoadOp::create(b, loc, index(next++), at);
      Value place = arith::IndexCastOp::create(b, loc, b.getIndexType(), stored);
      Value size = memref::DimOp::create(b, loc, out(), dim);
      if (op.getWraps()) {
        Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, zero);
        Value wrapped = arith::AddIOp::create(b, loc, place, size);
        place = arith::SelectOp::create(b, loc, negative, wrapped, place);
      }
      // As an unsigned number, a negative one is too large.
      Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, size);
      inside = arith::AndIOp::create(b, loc, inside, below);
      position.push_back(place);
    }
    auto guard = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
    OpBuilder then = guard.getThenBodyBuilder();
    Value value = memref::LoadOp::create(then, loc, values(), at);
    Value before = memref::LoadOp::create(then, loc, out(), position);
    // Sums of integers are the same with a sign and without.
    ScalarBuilder s(then, loc, cast<MemRefType>(out().getType()).getElementType());
    Value sum = s.store(s.add(s.load(before), s.load(value)));
    memref::StoreOp::create(then, loc, sum, out(), position);
    return arith::AndIOp::create(b, loc, valid, inside);
  }

  exec::ScatterAddOp op;
  Location loc;
  OpBuilder builder;
  func::FuncOp kernel;
};

struct ExpandScatter : cpu::impl::CpuExpandScatterBase<ExpandScatter> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<exec::ScatterAddOp> ops;
    getOperation().walk([&](exec::ScatterAddOp op) { ops.push_back(op); });
    for (exec::ScatterAddOp op : ops) {
      SmallVector<Type> types;
      for (Value operand : op.getOperands())
        types.push_back(exec::kernelArgumentType(cast<MemRefType>(operand.getType())));
      func::FuncOp kernel = KernelBuilder(op, types).build();
      symbols.insert(kernel);
      OpBuilder b(op);
      exec::LaunchOp::create(b, op.getLoc(), kernel.getName(), op.getOperands(), op.getNameAttr());
      op.erase();
      ++expanded;
    }
  }
};

} // namespace
