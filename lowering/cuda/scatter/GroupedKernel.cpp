// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows times the matrices that they name: a thread for each element of the result. For sums of
// outer products, rows are sorted by their matrix, so that an element reads the rows of its own
// alone.

#include "lowering/cuda/scatter/GroupedKernel.h"

#include "lowering/cuda/scatter/StableSort.h"
#include "lowering/host/SharedKernels.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::cuda;

namespace {

class GroupedKernelBuilder {
public:
  GroupedKernelBuilder(exec::GroupedGemmOp op, ArrayRef<Type> types)
      : op(op), loc(op.getLoc()), builder(op.getContext()),
        words(builder, loc, builder.getI64Type()) {
    kernel = host::makeKernel(loc, op.sumsOuterProducts() ? "indexed_outer" : "indexed_mm", types,
                              /*results=*/1);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    element = cast<MemRefType>(out().getType()).getElementType();
    wide = element.isF64() ? element : builder.getF32Type();
  }

  func::FuncOp build() {
    if (op.sumsOuterProducts())
      sumOuterProducts();
    else
      multiplyRows();
    func::ReturnOp::create(builder, loc);
    return kernel;
  }

private:
  Value a() { return kernel.getArgument(0); }
  Value b() { return kernel.getArgument(1); }
  Value index() { return kernel.getArgument(2); }
  Value out() { return kernel.getArgument(3); }

  Value load(const WordBuilder &w, Value memory, ArrayRef<Value> at) {
    Value x = memref::LoadOp::create(w.builder, loc, memory, indices(w, at));
    return wide == element ? x : Value(arith::ExtFOp::create(w.builder, loc, wide, x));
  }
  void store(const WordBuilder &w, Value x, ArrayRef<Value> at) {
    if (wide != element)
      x = arith::TruncFOp::create(w.builder, loc, element, x);
    memref::StoreOp::create(w.builder, loc, x, out(), indices(w, at));
  }
  SmallVector<Value> indices(const WordBuilder &w, ArrayRef<Value> at) {
    return llvm::map_to_vector(at, [&](Value word) { return w.toIndex(word); });
  }

  /// The sum of the products of two elements for each number from `low` up to `high`.
  Value sumOfProducts(const WordBuilder &w, Value low, Value high,
                      function_ref<std::pair<Value, Value>(const WordBuilder &, Value)> factorsOf) {
    Value zero = arith::ConstantOp::create(w.builder, loc, w.builder.getFloatAttr(wide, 0));
    auto loop =
        scf::ForOp::create(w.builder, loc, low, high, w.constant(1), zero,
                           [&](OpBuilder &inner, Location loc, Value number, ValueRange carried) {
                             auto [x, y] = factorsOf(words.at(inner), number);
                             Value sum = math::FmaOp::create(inner, loc, x, y, carried.front());
                             scf::YieldOp::create(inner, loc, sum);
                           });
    return loop.getResult(0);
  }

  /// The matrix that a row names, and whether there is one.
  std::pair<Value, Value> matrixOf(const WordBuilder &w, Value row, OpFoldResult matrices) {
    Value named = memref::LoadOp::create(w.builder, loc, index(), w.toIndex(row));
    // As an unsigned number, a negative one is too large.
    return {named, w.isBelow(named, w.of(matrices))};
  }

  void multiplyRows() {
    SmallVector<OpFoldResult> sizes = sizesOf(words, out());
    OpFoldResult matrices = sizeOf(words, b(), 0), summed = sizeOf(words, a(), 1);
    forEachNumber(words, productOf(words, sizes), [&](const WordBuilder &w, Value number) {
      SmallVector<Value> at = w.delinearise(number, sizes);
      auto [named, exists] = matrixOf(w, at[0], matrices);
      Value count = arith::SelectOp::create(w.builder, loc, exists, w.of(summed), w.constant(0));
      Value matrix = named;
      Value sum = sumOfProducts(w, w.constant(0), count, [&](const WordBuilder &in, Value k) {
        return std::pair(load(in, a(), {at[0], k}), load(in, b(), {matrix, k, at[1]}));
      });
      store(w, sum, at);
    });
  }

  void sumOuterProducts() {
    SmallVector<OpFoldResult> sizes = sizesOf(words, out());
    OpFoldResult rows = sizeOf(words, b(), 0), matrices = sizes[0];
    StableSort sort(words, rows);
    const SortedPairs &pairs = sort.pairs();
    forEachNumber(words, rows, [&](const WordBuilder &w, Value row) {
      auto [named, exists] = matrixOf(w, row, matrices);
      // The number of matrices stands for none.
      Value key = arith::SelectOp::create(w.builder, loc, exists, named, w.of(matrices));
      w.store(key, pairs.keys, row);
      w.store(row, pairs.numbers, row);
    });
    sort.sort(digitsUpTo(words, matrices));
    forEachNumber(words, productOf(words, sizes), [&](const WordBuilder &w, Value number) {
      SmallVector<Value> at = w.delinearise(number, sizes);
      Value begin = firstPairFrom(w, pairs, at[0], w.constant(0), w.of(rows));
      Value end = firstPairFrom(w, pairs, w.add(at[0], w.constant(1)), begin, w.of(rows));
      Value sum = sumOfProducts(w, begin, end, [&](const WordBuilder &in, Value pair) {
        Value row = in.load(pairs.numbers, in.add(in.of(pairs.begin), pair));
        return std::pair(load(in, a(), {at[1], row}), load(in, b(), {row, at[2]}));
      });
      store(w, sum, at);
    });
  }

  exec::GroupedGemmOp op;
  Location loc;
  OpBuilder builder;
  WordBuilder words; ///< of the host
  func::FuncOp kernel;
  Type element, wide; ///< of the matrices, and what is added up
};

} // namespace

func::FuncOp shardc::cuda::buildGroupedKernel(exec::GroupedGemmOp op, ArrayRef<Type> types) {
  return GroupedKernelBuilder(op, types).build();
}
