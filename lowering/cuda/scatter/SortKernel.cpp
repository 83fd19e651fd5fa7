// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorting along a dim: all elements are sorted by their keys, and then by their rows, which the
// stable sort does as one number where both fit into 64 bits. The elements of a row then stand
// beside each other, in order.

#include "lowering/cuda/scatter/SortKernel.h"

#include "lowering/cuda/scatter/ScatterDivision.h"
#include "lowering/cuda/scatter/StableSort.h"
#include "lowering/host/SharedKernels.h"
#include "lowering/linalg/SortKey.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::cuda;

namespace {

class SortKernelBuilder {
public:
  SortKernelBuilder(exec::SortOp op, ArrayRef<Type> types)
      : op(op), loc(op.getLoc()), dim(op.getDim()), builder(op.getContext()),
        words(builder, loc, builder.getI64Type()) {
    kernel = host::makeKernel(loc, "sort", types, /*results=*/2);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    key = sortKeyType(cast<MemRefType>(source().getType()).getElementType());
  }

  func::FuncOp build() {
    findSizes();
    StableSort sort(words, elements);
    OpFoldResult ofKey = builder.getIndexAttr(key.getWidth() / StableSort::kBits);
    fill(sort.pairs(), /*first=*/true);
    if (isOneNumber()) {
      sort.sort(addNumbers(ofKey, rowDigits()));
    } else {
      sort.sort(ofKey); // an even number of passes: they end where they begin
      fill(sort.pairs(), /*first=*/false);
      sort.sort(rowDigits());
    }
    write(sort.pairs());
    func::ReturnOp::create(builder, loc);
    return kernel;
  }

private:
  Value source() { return kernel.getArgument(0); }
  Value values() { return kernel.getArgument(1); }
  Value positions() { return kernel.getArgument(2); }

  void findSizes() {
    length = sizeOf(words, source(), dim);
    wanted = sizeOf(words, values(), dim);
    rows = builder.getIndexAttr(1);
    for (int64_t i = 0, rank = cast<MemRefType>(source().getType()).getRank(); i < rank; ++i) {
      if (i == dim)
        continue;
      others.push_back(sizeOf(words, source(), i));
      rows = multiplyNumbers(words, rows, others.back());
    }
    elements = multiplyNumbers(words, rows, length);
  }

  /// Whether a key and a row, in as many digits as a row of any number may have, are one word.
  bool isOneNumber() {
    std::optional<int64_t> known = getConstantIntValue(rows);
    unsigned digits =
        known ? countDigits(static_cast<uint64_t>(std::max<int64_t>(*known, 1)), StableSort::kBits)
              : 4;
    return key.getWidth() + digits * StableSort::kBits <= 64;
  }

  /// Digits of the numbers of rows; those of 4 or 8 where they are not known.
  OpFoldResult rowDigits() {
    if (std::optional<int64_t> known = getConstantIntValue(rows))
      return builder.getIndexAttr(
          *known <= 1 ? 0 : countDigits(static_cast<uint64_t>(*known - 1), StableSort::kBits));
    Value digits = words.constant(1);
    for (int64_t digit = 1; digit < 4; ++digit) {
      Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, cast<Value>(rows),
                                         words.constant(int64_t{1} << (digit * StableSort::kBits)));
      digits = words.add(digits, arith::ExtUIOp::create(builder, loc, words.type, more));
    }
    return digits;
  }

  OpFoldResult addNumbers(OpFoldResult a, OpFoldResult b) {
    std::optional<int64_t> x = getConstantIntValue(a), y = getConstantIntValue(b);
    if (x && y)
      return builder.getIndexAttr(*x + *y);
    return words.add(words.of(a), words.of(b));
  }

  /// Where element `at` of a row is.
  SmallVector<Value> positionOf(const WordBuilder &w, Value row, Value at) {
    SmallVector<Value> position;
    for (Value word : w.delinearise(row, others))
      position.push_back(w.toIndex(word));
    position.insert(position.begin() + dim, w.toIndex(at));
    return position;
  }

  /// The numbers of elements, row by row, with what they are sorted by.
  void fill(const SortedPairs &pairs, bool first) {
    forEachNumber(words, elements, [&](const WordBuilder &w, Value place) {
      OpBuilder &b = w.builder;
      if (!first) {
        Value number = w.load(pairs.numbers, place);
        w.store(w.div(number, w.of(length)), pairs.keys, place);
        return;
      }
      Value row = w.div(place, w.of(length)), at = w.rem(place, w.of(length));
      Value x = memref::LoadOp::create(b, loc, source(), positionOf(w, row, at));
      Value word = sortKey(b, loc, x, op.getIsUnsigned(), op.getDescending());
      // Digits have no sign.
      Value sign = arith::ConstantOp::create(
          b, loc, b.getIntegerAttr(key, APInt::getSignMask(key.getWidth())));
      word = arith::XOrIOp::create(b, loc, word, sign);
      if (key.getWidth() < 64)
        word = arith::ExtUIOp::create(b, loc, w.type, word);
      if (isOneNumber()) {
        Value above = arith::ShLIOp::create(b, loc, row, w.constant(key.getWidth()));
        word = arith::OrIOp::create(b, loc, word, above);
      }
      w.store(word, pairs.keys, place);
      w.store(place, pairs.numbers, place);
    });
  }

  void write(const SortedPairs &pairs) {
    bool isKnown = getConstantIntValue(length) && getConstantIntValue(wanted);
    OpFoldResult kept = isKnown || length == wanted
                            ? wanted
                            : OpFoldResult(words.min(words.of(length), words.of(wanted)));
    if (!isKnown && length != wanted)
      forEachNumber(words, builder.getIndexAttr(1), [&](const WordBuilder &w, Value) {
        exec::FailIfOp::create(
            w.builder, loc, w.isBelow(w.of(length), w.of(wanted)),
            w.builder.getStringAttr("topk of more elements than there are along dim " +
                                    std::to_string(dim)));
      });
    forEachNumber(words, multiplyNumbers(words, rows, kept),
                  [&](const WordBuilder &w, Value number) {
                    OpBuilder &b = w.builder;
                    Value row = w.div(number, w.of(kept)), to = w.rem(number, w.of(kept));
                    Value pair = w.add(w.add(w.of(pairs.begin), w.mul(row, w.of(length))), to);
                    Value from = w.rem(w.load(pairs.numbers, pair), w.of(length));
                    Value x = memref::LoadOp::create(b, loc, source(), positionOf(w, row, from));
                    SmallVector<Value> target = positionOf(w, row, to);
                    memref::StoreOp::create(b, loc, x, values(), target);
                    memref::StoreOp::create(b, loc, from, positions(), target);
                  });
  }

  exec::SortOp op;
  Location loc;
  int64_t dim;
  OpBuilder builder;
  WordBuilder words; ///< of the host
  func::FuncOp kernel;
  IntegerType key;
  // Constants, or words of the host.
  OpFoldResult length, wanted; ///< of a row, and what is kept of it
  SmallVector<OpFoldResult> others;
  OpFoldResult rows, elements;
};

} // namespace

func::FuncOp shardc::cuda::buildSortKernel(exec::SortOp op, ArrayRef<Type> types) {
  return SortKernelBuilder(op, types).build();
}
