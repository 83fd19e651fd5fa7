// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writing at computed positions: a kernel copies the tensor, and then adds or writes one element
// after the other. Positions may repeat, and what comes of that depends on their order: threads
// share the work by a dim of the result that has no computed positions, if there is one, so that
// each writes elements of its own, in the order of the domain.

#include "dialects/exec/Exec.h"
#include "dialects/exec/Overwrites.h"
#include "lowering/cpu/Passes.h"
#include "lowering/host/SharedKernels.h"
#include "lowering/linalg/CombineElements.h"

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

/// Elements that one thread copies, or adds, at least.
constexpr int64_t kScatterGrain = 1 << 14;
/// Consecutive elements that a thread adds at each position, at least.
constexpr int64_t kRun = 128;

class KernelBuilder {
public:
  KernelBuilder(exec::ScatterOp op, ArrayRef<Type> types)
      : op(op), loc(op.getLoc()), builder(op.getContext()) {
    kernel = host::makeKernel(loc, nameOf(op), types, /*results=*/1);
    if (op.getCombine() == "assign")
      kernel->setAttr(exec::kOverwritesAttr, builder.getUnitAttr());
    if (isInPlace())
      kernel->setAttr(exec::kInPlaceAttr,
                      builder.getDenseI64ArrayAttr({static_cast<int64_t>(types.size()) - 1}));
    builder.setInsertionPointToStart(&kernel.getBody().front());
  }

  func::FuncOp build() {
    if (!isInPlace())
      copy();
    Value valid = check();
    add();
    Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
    Value outside = arith::XOrIOp::create(builder, loc, valid, yes);
    exec::FailIfOp::create(builder, loc, outside, op.getMessageAttr());
    func::ReturnOp::create(builder, loc);
    return kernel;
  }

private:
  static std::string nameOf(exec::ScatterOp op) { return ("scatter_" + op.getCombine()).str(); }

  struct Bounds {
    SmallVector<Value> begins, ends, steps;
  };

  /// Nothing has to be copied, and the kernel has no argument for the source.
  bool isInPlace() { return op.getSource() == op.getOut(); }
  Value source() { return kernel.getArgument(0); }
  Value values() { return kernel.getArgument(isInPlace() ? 0 : 1); }
  Value index(unsigned number) { return kernel.getArgument((isInPlace() ? 1 : 2) + number); }
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
    auto loop =
        exec::ParallelOp::create(builder, loc, rows, std::max<int64_t>(1, kScatterGrain / row));
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

  /// Loops of the domain along which any position changes: the others repeat one.
  SmallVector<bool> findVarying() {
    auto domain = cast<MemRefType>(values().getType());
    SmallVector<bool> varying(domain.getRank(), false);
    for (unsigned i = 0; i < op.getIndices().size(); ++i) {
      SmallVector<int64_t> strides;
      int64_t offset;
      bool known =
          succeeded(cast<MemRefType>(index(i).getType()).getStridesAndOffset(strides, offset));
      for (int64_t loop = 0; loop < domain.getRank(); ++loop)
        varying[loop] = varying[loop] || !known || strides[loop] != 0;
    }
    return varying;
  }

  struct Places {
    SmallVector<Value> of; ///< one for each index
    Value inside;          ///< all of them are, i1
    Value valid;           ///< all of them are, or say that there is none
  };
  /// Where the element `at` of the domain goes.
  Places placesAt(OpBuilder &b, ValueRange at) {
    Places places;
    places.inside = places.valid = arith::ConstantIntOp::create(b, loc, 1, 1);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    for (auto [dim, from] : llvm::enumerate(op.getLoops())) {
      if (from >= 0)
        continue;
      Value stored = memref::LoadOp::create(b, loc, index(places.of.size()), at);
      Value place = arith::IndexCastOp::create(b, loc, b.getIndexType(), stored);
      Value size = memref::DimOp::create(b, loc, out(), dim);
      if (op.getWraps()) {
        Value negative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, zero);
        Value wrapped = arith::AddIOp::create(b, loc, place, size);
        place = arith::SelectOp::create(b, loc, negative, wrapped, place);
      }
      // As an unsigned number, a negative one is too large.
      Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, place, size);
      places.inside = arith::AndIOp::create(b, loc, places.inside, below);
      if (op.getSkips())
        below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, place, size);
      places.valid = arith::AndIOp::create(b, loc, places.valid, below);
      places.of.push_back(place);
    }
    return places;
  }

  /// Whether all positions are in range, as i1; where nothing is added, none is looked at.
  Value check() {
    Bounds all = boundsOf(builder, values(), 0), loops;
    SmallVector<bool> varying = findVarying();
    Value isEmpty = arith::ConstantIntOp::create(builder, loc, 0, 1);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    for (auto [loop, end] : llvm::enumerate(all.ends)) {
      if (varying[loop]) {
        loops.begins.push_back(all.begins[loop]);
        loops.ends.push_back(end);
        loops.steps.push_back(all.steps[loop]);
        continue;
      }
      Value none = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, end, zero);
      isEmpty = arith::OrIOp::create(builder, loc, isEmpty, none);
    }
    auto checkOne = [&](OpBuilder &b, ValueRange at, Value valid) -> Value {
      SmallVector<Value> whole;
      for (bool varies : varying) {
        whole.push_back(varies ? at.front() : zero);
        at = at.drop_front(varies);
      }
      return arith::AndIOp::create(b, loc, valid, placesAt(b, whole).valid);
    };
    Value valid = arith::ConstantIntOp::create(builder, loc, 1, 1);
    if (loops.begins.empty()) {
      valid = checkOne(builder, {}, valid);
    } else {
      auto body = [&](OpBuilder &b, Location, ValueRange at, ValueRange carried) {
        return scf::ValueVector{checkOne(b, at, carried.front())};
      };
      valid = scf::buildLoopNest(builder, loc, loops.begins, loops.ends, loops.steps, valid, body)
                  .results.front();
    }
    return arith::OrIOp::create(builder, loc, valid, isEmpty);
  }

  /// The loop that threads share: the longest that is a dim of the result; -1 where there is none.
  int64_t sharedLoop() {
    ArrayRef<int64_t> sizes = cast<MemRefType>(values().getType()).getShape();
    auto length = [&](int64_t loop) {
      return ShapedType::isDynamic(sizes[loop]) ? kRun : sizes[loop];
    };
    int64_t shared = -1;
    for (int64_t loop : op.getLoops())
      if (loop >= 0 && length(loop) > 1 && (shared < 0 || length(loop) > length(shared)))
        shared = loop;
    return shared;
  }

  /// Adds what is in range.
  void add() {
    Bounds bounds = boundsOf(builder, values(), 0);
    int64_t shared = sharedLoop();
    if (shared < 0)
      return addPart(builder, bounds);
    ArrayRef<int64_t> sizes = cast<MemRefType>(values().getType()).getShape();
    int64_t run = shared + 1 == static_cast<int64_t>(sizes.size()) ? kRun : 1, work = run;
    for (auto [loop, size] : llvm::enumerate(sizes))
      if (static_cast<int64_t>(loop) != shared && !ShapedType::isDynamic(size))
        work *= std::max<int64_t>(size, 1);
    Value step = arith::ConstantIndexOp::create(builder, loc, run), whole = bounds.ends[shared];
    Value count = builder.createOrFold<arith::CeilDivUIOp>(loc, whole, step);
    auto loop =
        exec::ParallelOp::create(builder, loc, count, std::max<int64_t>(1, kScatterGrain / work));
    Block *body = builder.createBlock(&loop.getBody(), {}, {builder.getIndexType()}, {loc});
    OpBuilder inner = OpBuilder::atBlockBegin(body);
    Value begin = arith::MulIOp::create(inner, loc, loop.getInductionVariable(), step);
    Value end = arith::AddIOp::create(inner, loc, begin, step);
    bounds.begins[shared] = begin;
    bounds.ends[shared] = arith::MinUIOp::create(inner, loc, end, whole);
    addPart(inner, bounds);
    builder.setInsertionPointAfter(loop);
  }

  /// The loops behind the last along which a position changes have one position: it is looked up in
  /// front of them.
  void addPart(OpBuilder &b, const Bounds &bounds) {
    SmallVector<bool> varying = findVarying();
    size_t outer = varying.size();
    while (outer > 0 && !varying[outer - 1])
      --outer;
    auto part = [](ArrayRef<Value> list, size_t from, size_t count) {
      return SmallVector<Value>(list.slice(from, count));
    };
    auto nest = [&](OpBuilder &b, size_t from, size_t count, auto body) {
      if (count == 0)
        return body(b, loc, ValueRange());
      scf::buildLoopNest(b, loc, part(bounds.begins, from, count), part(bounds.ends, from, count),
                         part(bounds.steps, from, count),
                         [&](OpBuilder &b, Location loc, ValueRange at) { body(b, loc, at); });
    };
    nest(b, 0, outer, [&](OpBuilder &b, Location, ValueRange first) {
      SmallVector<Value> at(first);
      at.append(bounds.begins.begin() + outer, bounds.begins.end());
      Places places = placesAt(b, at);
      auto guard = scf::IfOp::create(b, loc, places.inside, /*withElseRegion=*/false);
      OpBuilder then = guard.getThenBodyBuilder();
      nest(then, outer, varying.size() - outer, [&](OpBuilder &b, Location, ValueRange last) {
        SmallVector<Value> at(first);
        at.append(last.begin(), last.end());
        addOne(b, at, places);
      });
    });
  }

  void addOne(OpBuilder &b, ValueRange at, const Places &places) {
    SmallVector<Value> position;
    unsigned next = 0;
    for (int64_t from : op.getLoops())
      position.push_back(from >= 0 ? at[from] : places.of[next++]);
    Value value = memref::LoadOp::create(b, loc, values(), at);
    Value before = memref::LoadOp::create(b, loc, out(), position);
    Value after = combineElements(b, loc, op.getCombine(), before, value);
    memref::StoreOp::create(b, loc, after, out(), position);
  }

  exec::ScatterOp op;
  Location loc;
  OpBuilder builder;
  func::FuncOp kernel;
};

struct ExpandScatter : cpu::impl::CpuExpandScatterBase<ExpandScatter> {
  void runOnOperation() override {
    host::SharedKernels shared(getOperation());
    SmallVector<exec::ScatterOp> ops;
    getOperation().walk([&](exec::ScatterOp op) { ops.push_back(op); });
    for (exec::ScatterOp op : ops) {
      shared.replace(
          op, [&](ArrayRef<Type> types) { return KernelBuilder(op, types).build(); },
          /*skipped=*/op.getSource() == op.getOut());
      ++expanded;
    }
  }
};

} // namespace
