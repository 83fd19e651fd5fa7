// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/scatter/ScatterKernel.h"

#include "lowering/cuda/Accesses.h"
#include "lowering/cuda/scatter/ScatterDivision.h"
#include "lowering/cuda/scatter/StableSort.h"
#include "lowering/host/SharedKernels.h"
#include "lowering/linalg/CombineElements.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::cuda;

namespace {

constexpr int64_t kThreads = 256;
/// Rows, and columns, that a thread computes one after the other.
constexpr int64_t kRowsOfThread = 4, kColumnsOfThread = 4;
/// Updates that are read before the first of them is added.
constexpr int64_t kUpdatesAtOnce = 8;
/// Blocks along the second dim of a grid, at most.
constexpr int64_t kMostBlocks = 65535;

class ScatterKernelBuilder {
public:
  ScatterKernelBuilder(exec::ScatterOp op, ArrayRef<Type> types)
      : op(op), loc(op.getLoc()), builder(op.getContext()),
        words(builder, loc, builder.getI64Type()) {
    kernel = host::makeKernel(loc, ("scatter_" + op.getCombine()).str(), types, /*results=*/1);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    divide();
  }

  func::FuncOp build();

private:
  Value source() { return kernel.getArgument(0); }
  Value values() { return kernel.getArgument(1); }
  Value index(unsigned number) { return kernel.getArgument(2 + number); }
  Value out() { return kernel.getArguments().back(); }

  void divide();
  void findSizes();
  /// Launches of blocks of `kThreads` threads each.
  void launch(OpFoldResult x, OpFoldResult y, ArrayRef<MemRefType> shared,
              function_ref<void(OpBuilder &, const LaunchedBlock &)> body);
  Value hostIndex(OpFoldResult number);
  SmallVector<OpFoldResult> sizesOf(ArrayRef<OpFoldResult> sizes, ArrayRef<unsigned> dims);

  void findRows(const SortedPairs &pairs);
  void buildFindRow(const WordBuilder &w, const SortedPairs &pairs, Value update);
  void addUp(const SortedPairs &pairs);
  void addRow(const WordBuilder &w, const LaunchedBlock &block, const SortedPairs &pairs, Value row,
              Value lane, Value low, Value high);
  void addElement(const WordBuilder &w, const SortedPairs &pairs, ArrayRef<Value> rowPosition,
                  Value column, Value low, Value high);

  exec::ScatterOp op;
  Location loc;
  OpBuilder builder;
  WordBuilder words; ///< of the host
  func::FuncOp kernel;
  ScatterDivision division;
  // Constants, or words of the host.
  SmallVector<OpFoldResult> outSizes, domainSizes;
  SmallVector<OpFoldResult> rowSizes, updateSizes, columnSizes;
  OpFoldResult rows, columns;
  OpFoldResult updates; ///< 0 where there is no column to add to
};

} // namespace

void ScatterKernelBuilder::divide() {
  auto known = [](Value memory) {
    std::vector<int64_t> sizes;
    for (int64_t size : cast<MemRefType>(memory.getType()).getShape())
      sizes.push_back(ShapedType::isDynamic(size) ? kUnknownSize : size);
    return sizes;
  };
  ScatterShape shape{known(out()), known(values()), op.getLoops().vec(), {}};
  shape.varying.assign(shape.domain.size(), false);
  for (unsigned i = 0; i < op.getIndices().size(); ++i) {
    SmallVector<int64_t> strides;
    int64_t offset;
    bool known =
        succeeded(cast<MemRefType>(index(i).getType()).getStridesAndOffset(strides, offset));
    for (size_t loop = 0; loop < shape.varying.size(); ++loop)
      shape.varying[loop] = shape.varying[loop] || !known || strides[loop] != 0;
  }
  division = divideScatter(shape);
  words.type = division.narrow ? builder.getI32Type() : builder.getI64Type();
}

SmallVector<OpFoldResult> ScatterKernelBuilder::sizesOf(ArrayRef<OpFoldResult> sizes,
                                                        ArrayRef<unsigned> dims) {
  SmallVector<OpFoldResult> result;
  for (unsigned dim : dims)
    result.push_back(sizes[dim]);
  return result;
}

void ScatterKernelBuilder::findSizes() {
  outSizes = cuda::sizesOf(words, out());
  domainSizes = cuda::sizesOf(words, values());
  rowSizes = sizesOf(outSizes, division.rowDims);
  updateSizes = sizesOf(domainSizes, division.updateLoops);
  SmallVector<OpFoldResult> added;
  for (const ScatterColumn &column : division.columns) {
    columnSizes.push_back(outSizes[column.dim]);
    added.push_back(domainSizes[column.loop]);
  }
  rows = productOf(words, rowSizes);
  columns = productOf(words, columnSizes);
  updates = productOf(words, updateSizes);
  OpFoldResult perUpdate = productOf(words, added);
  if (std::optional<int64_t> constant = getConstantIntValue(perUpdate)) {
    if (*constant == 0)
      updates = builder.getIndexAttr(0);
    return;
  }
  // Where nothing is added, no position is looked at.
  updates = multiplyNumbers(words, updates, words.min(cast<Value>(perUpdate), words.constant(1)));
}

Value ScatterKernelBuilder::hostIndex(OpFoldResult number) {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return arith::ConstantIndexOp::create(builder, loc, *constant);
  return words.toIndex(cast<Value>(number));
}

void ScatterKernelBuilder::launch(OpFoldResult x, OpFoldResult y, ArrayRef<MemRefType> shared,
                                  function_ref<void(OpBuilder &, const LaunchedBlock &)> body) {
  launchBlocks(builder, loc, hostIndex(x), hostIndex(y), kThreads, shared, body);
}

func::FuncOp ScatterKernelBuilder::build() {
  findSizes();
  StableSort sort(words, updates);
  findRows(sort.pairs());
  sort.sort(digitsUpTo(words, rows)); // the number of rows stands for no row
  addUp(sort.pairs());
  func::ReturnOp::create(builder, loc);
  return kernel;
}

void ScatterKernelBuilder::findRows(const SortedPairs &pairs) {
  launch(divideNumberUp(words, updates, kThreads), builder.getIndexAttr(1), {},
         [&](OpBuilder &b, const LaunchedBlock &block) {
           WordBuilder w = words.at(b);
           Value update =
               w.add(w.mul(w.fromIndex(block.x), w.constant(kThreads)), w.fromIndex(block.thread));
           auto guard = scf::IfOp::create(b, loc, w.isBelow(update, w.of(updates)),
                                          /*withElseRegion=*/false);
           OpBuilder then = guard.getThenBodyBuilder();
           buildFindRow(words.at(then), pairs, update);
         });
}

/// Its key is its row; an update that goes nowhere has the number behind the last row.
void ScatterKernelBuilder::buildFindRow(const WordBuilder &w, const SortedPairs &pairs,
                                        Value update) {
  OpBuilder &b = w.builder;
  SmallVector<Value> position(domainSizes.size(), arith::ConstantIndexOp::create(b, loc, 0));
  SmallVector<Value> loops(domainSizes.size());
  for (auto [loop, word] : llvm::zip(division.updateLoops, w.delinearise(update, updateSizes))) {
    loops[loop] = word;
    position[loop] = w.toIndex(word);
  }
  // Positions are checked in 64 bits, whatever is stored.
  WordBuilder wide(b, loc, b.getI64Type());
  auto widen = [&](Value word) {
    return w.type == wide.type ? word : arith::ExtUIOp::create(b, loc, wide.type, word);
  };
  Value inside = arith::ConstantIntOp::create(b, loc, 1, 1), valid = inside;
  Value row;
  unsigned number = 0;
  for (auto [dim, size] : llvm::zip(division.rowDims, rowSizes)) {
    int64_t loop = op.getLoops()[dim];
    Value place;
    if (loop >= 0) {
      place = loops[loop];
    } else {
      Value stored = memref::LoadOp::create(b, loc, index(number++), position);
      unsigned width = stored.getType().getIntOrFloatBitWidth();
      if (width < 64)
        stored = arith::ExtSIOp::create(b, loc, wide.type, stored);
      else if (width > 64)
        stored = arith::TruncIOp::create(b, loc, wide.type, stored);
      Value end = widen(w.of(size));
      if (op.getWraps()) {
        Value negative =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, stored, wide.constant(0));
        stored = arith::SelectOp::create(b, loc, negative, wide.add(stored, end), stored);
      }
      // As an unsigned number, a negative one is too large.
      Value below = wide.isBelow(stored, end);
      inside = b.createOrFold<arith::AndIOp>(loc, inside, below);
      if (op.getSkips())
        below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, stored, end);
      valid = b.createOrFold<arith::AndIOp>(loc, valid, below);
      place = w.type == wide.type ? stored : arith::TruncIOp::create(b, loc, w.type, stored);
    }
    row = row ? w.add(w.mul(row, w.of(size)), place) : place;
  }
  row = arith::SelectOp::create(b, loc, inside, row, w.of(rows));
  w.store(row, pairs.keys, update);
  w.store(update, pairs.numbers, update);
  Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
  Value outside = arith::XOrIOp::create(b, loc, valid, yes);
  exec::FailIfOp::create(b, loc, outside, op.getMessageAttr());
}

/// Each element of the result is the sum of one thread. Blocks have some rows, and some columns.
void ScatterKernelBuilder::addUp(const SortedPairs &pairs) {
  int64_t lanes = division.lanes, rowsBeside = kThreads / lanes,
          rowsOfBlock = rowsBeside * kRowsOfThread;
  OpFoldResult across = divideNumberUp(words, columns, lanes * kColumnsOfThread);
  if (std::optional<int64_t> constant = getConstantIntValue(across))
    across = builder.getIndexAttr(std::min(*constant, kMostBlocks));
  else
    across = words.min(cast<Value>(across), words.constant(kMostBlocks));
  launch(divideNumberUp(words, rows, rowsOfBlock), across, sharedMemory({2}, words.type),
         [&](OpBuilder &b, const LaunchedBlock &block) {
           WordBuilder w = words.at(b), lane32(b, loc, b.getI32Type());
           Value thread = lane32.fromIndex(block.thread), bounds = block.shared.front();
           Value firstRow = w.mul(w.fromIndex(block.x), w.constant(rowsOfBlock));
           // Two threads find the updates of all rows of the block.
           auto first = scf::IfOp::create(b, loc, lane32.isBelow(thread, lane32.constant(2)),
                                          /*withElseRegion=*/false);
           {
             OpBuilder then = first.getThenBodyBuilder();
             WordBuilder in = words.at(then);
             Value ahead = in.mul(in.fromI32(thread), in.constant(rowsOfBlock));
             Value row = in.min(in.add(firstRow, ahead), in.of(rows));
             Value begin = firstPairFrom(in, pairs, row, in.constant(0), in.of(updates));
             lane32.at(then).store(begin, bounds, thread);
           }
           gpu::BarrierOp::create(b, loc);
           Value low = lane32.load(bounds, lane32.constant(0));
           Value high = lane32.load(bounds, lane32.constant(1));
           Value lane = w.fromI32(lane32.rem(thread, lane32.constant(lanes)));
           Value ownRow = w.fromI32(lane32.div(thread, lane32.constant(lanes)));
           auto loop =
               scf::ForOp::create(b, loc, w.constant(0), w.constant(kRowsOfThread), w.constant(1));
           b.setInsertionPoint(loop.getBody()->getTerminator());
           Value ahead = w.mul(loop.getInductionVar(), w.constant(rowsBeside));
           Value row = w.add(w.add(firstRow, ownRow), ahead);
           auto guard = scf::IfOp::create(b, loc, w.isBelow(row, w.of(rows)),
                                          /*withElseRegion=*/false);
           OpBuilder then = guard.getThenBodyBuilder();
           addRow(words.at(then), block, pairs, row, lane, low, high);
           b.setInsertionPointAfter(loop);
         });
}

/// The columns of this thread.
void ScatterKernelBuilder::addRow(const WordBuilder &w, const LaunchedBlock &block,
                                  const SortedPairs &pairs, Value row, Value lane, Value low,
                                  Value high) {
  OpBuilder &b = w.builder;
  Value begin = firstPairFrom(w, pairs, row, low, high);
  Value end = firstPairFrom(w, pairs, w.add(row, w.constant(1)), begin, high);
  SmallVector<Value> position(outSizes.size());
  for (auto [dim, word] : llvm::zip(division.rowDims, w.delinearise(row, rowSizes)))
    position[dim] = w.toIndex(word);
  Value lanes = w.constant(division.lanes);
  Value first = w.add(w.mul(w.fromIndex(block.y), lanes), lane);
  Value step = w.mul(w.fromIndex(block.countY), lanes);
  auto loop = scf::ForOp::create(b, loc, first, w.of(columns), step);
  OpBuilder body = OpBuilder::atBlockTerminator(loop.getBody());
  addElement(words.at(body), pairs, position, loop.getInductionVar(), begin, end);
}

/// One element of the result: what it was, and its updates in order, rounded after each.
void ScatterKernelBuilder::addElement(const WordBuilder &w, const SortedPairs &pairs,
                                      ArrayRef<Value> rowPosition, Value column, Value low,
                                      Value high) {
  OpBuilder &b = w.builder;
  SmallVector<Value> position(rowPosition), at(domainSizes.size());
  for (auto [part, word] : llvm::zip(division.columns, w.delinearise(column, columnSizes))) {
    position[part.dim] = at[part.loop] = w.toIndex(word);
    // Values may have fewer columns than the result.
    if (!part.whole)
      high =
          arith::SelectOp::create(b, loc, w.isBelow(word, w.of(domainSizes[part.loop])), high, low);
  }
  auto read = [&](OpBuilder &b, Value pair) -> Value {
    WordBuilder in = words.at(b);
    Value update = in.load(pairs.numbers, in.add(in.of(pairs.begin), pair));
    SmallVector<Value> from(at);
    for (auto [loop, word] : llvm::zip(division.updateLoops, in.delinearise(update, updateSizes)))
      from[loop] = in.toIndex(word);
    return memref::LoadOp::create(b, loc, values(), from);
  };
  auto add = [&](OpBuilder &b, Value sum, Value value) {
    return combineElements(b, loc, op.getCombine(), sum, value);
  };
  Value before = memref::LoadOp::create(b, loc, source(), position);
  Value atOnce = w.constant(kUpdatesAtOnce);
  Value whole = w.sub(high, w.rem(w.sub(high, low), atOnce));
  auto main = scf::ForOp::create(b, loc, low, whole, atOnce, before,
                                 [&](OpBuilder &b, Location loc, Value pair, ValueRange carried) {
                                   WordBuilder in = words.at(b);
                                   SmallVector<Value> parts;
                                   for (int64_t i = 0; i < kUpdatesAtOnce; ++i)
                                     parts.push_back(read(b, in.add(pair, in.constant(i))));
                                   Value sum = carried.front();
                                   for (Value part : parts)
                                     sum = add(b, sum, part);
                                   scf::YieldOp::create(b, loc, sum);
                                 });
  auto rest = scf::ForOp::create(b, loc, whole, high, w.constant(1), main.getResult(0),
                                 [&](OpBuilder &b, Location loc, Value pair, ValueRange carried) {
                                   Value sum = add(b, carried.front(), read(b, pair));
                                   scf::YieldOp::create(b, loc, sum);
                                 });
  memref::StoreOp::create(b, loc, rest.getResult(0), out(), position);
}

func::FuncOp shardc::cuda::buildScatterKernel(exec::ScatterOp op, ArrayRef<Type> types) {
  return ScatterKernelBuilder(op, types).build();
}
