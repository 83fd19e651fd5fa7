// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorting: threads share the rows. Elements of a row become integers that compare as the elements
// are to stand, and are sorted with their positions: where few are wanted, each is put into its
// place among them; else runs of 1, 2, 4 ... are merged, from one buffer to another. Both are
// stable.

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/SharedKernels.h"
#include "lowering/linalg/SortKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUEXPANDSORT
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;

namespace {

/// Steps of a thread, at least.
constexpr int64_t kSortGrain = 1 << 14;
/// As many elements of a row, at most, are put into place one by one.
constexpr int64_t kFew = 64;

class SortBuilder {
public:
  SortBuilder(exec::SortOp op, ArrayRef<Type> types)
      : op(op), loc(op.getLoc()), builder(op.getContext()), dim(op.getDim()) {
    kernel = host::makeKernel(loc, "sort", types, /*results=*/2);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    key = sortKeyType(cast<MemRefType>(source().getType()).getElementType());
  }

  func::FuncOp build() {
    length = memref::DimOp::create(builder, loc, source(), dim);
    wanted = memref::DimOp::create(builder, loc, values(), dim);
    auto type = cast<MemRefType>(source().getType());
    fixedLength = type.getDimSize(dim);
    fixedWanted = cast<MemRefType>(values().getType()).getDimSize(dim);
    if (fixedLength != fixedWanted &&
        (ShapedType::isDynamic(fixedLength) || ShapedType::isDynamic(fixedWanted))) {
      Value lacks = isBelow(builder, length, wanted);
      exec::FailIfOp::create(
          builder, loc, lacks,
          builder.getStringAttr("topk of more elements than there are along dim " +
                                std::to_string(dim)));
      wanted = arith::MinUIOp::create(builder, loc, length, wanted);
    }
    Value rows = index(builder, 1);
    int64_t work = 8 * (type.isDynamicDim(dim) ? 64 : std::max<int64_t>(type.getDimSize(dim), 1));
    for (int64_t i = 0; i < type.getRank(); ++i)
      sizes.push_back(i == dim ? Value() : memref::DimOp::create(builder, loc, source(), i));
    for (Value size : sizes)
      if (size)
        rows = arith::MulIOp::create(builder, loc, rows, size);
    auto loop =
        exec::ParallelOp::create(builder, loc, rows, std::max<int64_t>(1, kSortGrain / work));
    Block *body = builder.createBlock(&loop.getBody(), {}, {builder.getIndexType()}, {loc});
    OpBuilder inner = OpBuilder::atBlockBegin(body);
    sortRow(inner, loop.getInductionVariable());
    builder.setInsertionPointAfter(loop);
    func::ReturnOp::create(builder, loc);
    return kernel;
  }

private:
  Value source() { return kernel.getArgument(0); }
  Value values() { return kernel.getArgument(1); }
  Value positions() { return kernel.getArgument(2); }
  Value index(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value isBelow(OpBuilder &b, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, y);
  }

  /// Where element `at` of the row is.
  SmallVector<Value> inRow(ArrayRef<Value> row, Value at) {
    SmallVector<Value> position(row);
    position[dim] = at;
    return position;
  }

  Value keyOf(OpBuilder &b, ArrayRef<Value> row, Value at) {
    Value x = memref::LoadOp::create(b, loc, source(), inRow(row, at));
    return sortKey(b, loc, x, op.getIsUnsigned(), op.getDescending());
  }

  /// Memory of the calling thread.
  Value buffer(OpBuilder &b, Type type, bool two, int64_t fixed, Value count) {
    SmallVector<Value> dynamic;
    if (ShapedType::isDynamic(fixed))
      dynamic.push_back(count);
    SmallVector<int64_t> shape;
    if (two)
      shape.push_back(2);
    shape.push_back(fixed);
    return memref::AllocOp::create(b, loc, MemRefType::get(shape, type), dynamic);
  }

  void sortRow(OpBuilder &b, Value number) {
    SmallVector<Value> row(sizes.size());
    for (auto i = static_cast<int64_t>(sizes.size()); i-- > 0;) {
      if (i == dim)
        continue;
      row[i] = arith::RemUIOp::create(b, loc, number, sizes[i]);
      number = arith::DivUIOp::create(b, loc, number, sizes[i]);
    }
    bool isFew = !ShapedType::isDynamic(fixedWanted) && fixedWanted <= kFew &&
                 (ShapedType::isDynamic(fixedLength) || fixedWanted * 4 <= fixedLength);
    if (isFew)
      takeFew(b, row);
    else
      mergeAll(b, row);
  }

  /// The element that was at `from` becomes number `to`.
  void write(OpBuilder &b, ArrayRef<Value> row, Value to, Value from) {
    Value x = memref::LoadOp::create(b, loc, source(), inRow(row, from));
    memref::StoreOp::create(b, loc, x, values(), inRow(row, to));
    Value stored = arith::IndexCastOp::create(b, loc, b.getI64Type(), from);
    memref::StoreOp::create(b, loc, stored, positions(), inRow(row, to));
  }

  void takeFew(OpBuilder &b, ArrayRef<Value> row) {
    Value keys = buffer(b, key, false, fixedWanted, wanted),
          places = buffer(b, b.getIndexType(), false, fixedWanted, wanted);
    Value zero = index(b, 0), one = index(b, 1);
    auto clear = scf::ForOp::create(b, loc, zero, wanted, one);
    {
      // Behind all elements.
      OpBuilder in = OpBuilder::atBlockBegin(clear.getBody());
      APInt most = APInt::getSignedMaxValue(key.getWidth());
      Value last = arith::ConstantOp::create(in, loc, in.getIntegerAttr(key, most));
      memref::StoreOp::create(in, loc, last, keys, clear.getInductionVar());
      memref::StoreOp::create(in, loc, zero, places, clear.getInductionVar());
    }
    auto all = scf::ForOp::create(b, loc, zero, length, one);
    {
      OpBuilder in = OpBuilder::atBlockBegin(all.getBody());
      Value at = all.getInductionVar(), x = keyOf(in, row, at);
      Value last = arith::SubIOp::create(in, loc, wanted, one);
      Value isEarly = isBelow(in, at, wanted);
      Value bound = memref::LoadOp::create(in, loc, keys, last);
      Value isLess = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::slt, x, bound);
      Value enters = arith::OrIOp::create(in, loc, isEarly, isLess);
      auto guard = scf::IfOp::create(in, loc, enters, /*withElseRegion=*/false);
      OpBuilder then = guard.getThenBodyBuilder();
      // Those behind it move on, up to the first that it does not precede.
      Value free = arith::SelectOp::create(then, loc, isEarly, at, last);
      auto moves = scf::WhileOp::create(
          then, loc, TypeRange{then.getIndexType()}, ValueRange{free},
          [&](OpBuilder &c, Location, ValueRange place) {
            Value isInside = isBelow(c, zero, place[0]);
            Value before = arith::SelectOp::create(
                c, loc, isInside, arith::SubIOp::create(c, loc, place[0], one), zero);
            Value other = memref::LoadOp::create(c, loc, keys, before);
            Value precedes = arith::CmpIOp::create(c, loc, arith::CmpIPredicate::slt, x, other);
            Value goesOn = arith::AndIOp::create(c, loc, isInside, precedes);
            scf::ConditionOp::create(c, loc, goesOn, place);
          },
          [&](OpBuilder &c, Location, ValueRange place) {
            Value before = arith::SubIOp::create(c, loc, place[0], one);
            for (Value memory : {keys, places}) {
              Value moved = memref::LoadOp::create(c, loc, memory, before);
              memref::StoreOp::create(c, loc, moved, memory, place[0]);
            }
            scf::YieldOp::create(c, loc, before);
          });
      memref::StoreOp::create(then, loc, x, keys, moves.getResult(0));
      memref::StoreOp::create(then, loc, at, places, moves.getResult(0));
    }
    auto out = scf::ForOp::create(b, loc, zero, wanted, one);
    OpBuilder in = OpBuilder::atBlockBegin(out.getBody());
    Value to = out.getInductionVar();
    write(in, row, to, memref::LoadOp::create(in, loc, places, to));
  }

  void mergeAll(OpBuilder &b, ArrayRef<Value> row) {
    Value keys = buffer(b, key, true, fixedLength, length),
          places = buffer(b, b.getIndexType(), true, fixedLength, length);
    Value zero = index(b, 0), one = index(b, 1), two = index(b, 2);
    auto fill = scf::ForOp::create(b, loc, zero, length, one);
    {
      OpBuilder in = OpBuilder::atBlockBegin(fill.getBody());
      Value at = fill.getInductionVar();
      memref::StoreOp::create(in, loc, keyOf(in, row, at), keys, ValueRange{zero, at});
      memref::StoreOp::create(in, loc, at, places, ValueRange{zero, at});
    }
    auto passes = scf::WhileOp::create(
        b, loc, TypeRange{b.getIndexType(), b.getIndexType()}, ValueRange{one, zero},
        [&](OpBuilder &c, Location, ValueRange state) {
          scf::ConditionOp::create(c, loc, isBelow(c, state[0], length), state);
        },
        [&](OpBuilder &c, Location, ValueRange state) {
          Value width = state[0], from = state[1];
          Value to = arith::SubIOp::create(c, loc, one, from);
          Value step = arith::MulIOp::create(c, loc, width, two);
          auto runs = scf::ForOp::create(c, loc, zero, length, step);
          OpBuilder in = OpBuilder::atBlockBegin(runs.getBody());
          mergeRuns(in, keys, places, runs.getInductionVar(), width, from, to);
          scf::YieldOp::create(c, loc, ValueRange{step, to});
        });
    auto out = scf::ForOp::create(b, loc, zero, wanted, one);
    OpBuilder in = OpBuilder::atBlockBegin(out.getBody());
    Value to = out.getInductionVar();
    write(in, row, to,
          memref::LoadOp::create(in, loc, places, ValueRange{passes.getResult(1), to}));
  }

  /// Two runs of `width` from `low` on, of buffer `from`, to buffer `to`.
  void mergeRuns(OpBuilder &b, Value keys, Value places, Value low, Value width, Value from,
                 Value to) {
    Value one = index(b, 1), last = arith::SubIOp::create(b, loc, length, one);
    Value middle =
        arith::MinUIOp::create(b, loc, arith::AddIOp::create(b, loc, low, width), length);
    Value high =
        arith::MinUIOp::create(b, loc, arith::AddIOp::create(b, loc, middle, width), length);
    auto merge = scf::ForOp::create(
        b, loc, low, high, one, ValueRange{low, middle},
        [&](OpBuilder &c, Location, Value out, ValueRange next) {
          auto load = [&](Value memory, Value at) -> Value {
            Value inside = arith::MinUIOp::create(c, loc, at, last);
            return memref::LoadOp::create(c, loc, memory, ValueRange{from, inside});
          };
          Value left = load(keys, next[0]), right = load(keys, next[1]);
          Value isLess = arith::CmpIOp::create(c, loc, arith::CmpIPredicate::slt, right, left);
          Value hasLeft = isBelow(c, next[0], middle), hasRight = isBelow(c, next[1], high);
          Value yes = arith::ConstantIntOp::create(c, loc, 1, 1);
          Value noLeft = arith::XOrIOp::create(c, loc, hasLeft, yes);
          Value takesRight =
              arith::OrIOp::create(c, loc, noLeft, arith::AndIOp::create(c, loc, hasRight, isLess));
          Value at = arith::SelectOp::create(c, loc, takesRight, next[1], next[0]);
          Value taken = arith::SelectOp::create(c, loc, takesRight, right, left);
          memref::StoreOp::create(c, loc, taken, keys, ValueRange{to, out});
          memref::StoreOp::create(c, loc, load(places, at), places, ValueRange{to, out});
          Value advanced = arith::AddIOp::create(c, loc, at, one);
          scf::YieldOp::create(
              c, loc,
              ValueRange{arith::SelectOp::create(c, loc, takesRight, next[0], advanced),
                         arith::SelectOp::create(c, loc, takesRight, advanced, next[1])});
        });
    (void)merge;
  }

  exec::SortOp op;
  Location loc;
  OpBuilder builder;
  int64_t dim;
  func::FuncOp kernel;
  IntegerType key;
  Value length, wanted; ///< of the row, and of what is kept of it
  int64_t fixedLength = 0, fixedWanted = 0;
  SmallVector<Value> sizes; ///< of the other dims
};

struct ExpandSort : cpu::impl::CpuExpandSortBase<ExpandSort> {
  void runOnOperation() override {
    host::SharedKernels shared(getOperation());
    SmallVector<exec::SortOp> ops;
    getOperation().walk([&](exec::SortOp op) { ops.push_back(op); });
    for (exec::SortOp op : ops) {
      shared.replace(op, [&](ArrayRef<Type> types) { return SortBuilder(op, types).build(); });
      ++expanded;
    }
  }
};

} // namespace
