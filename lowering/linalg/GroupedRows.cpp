// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/GroupedRows.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/RowOrders.h"
#include "dialects/aten/Sorting.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The rows that one index orders.
struct RowOrder {
  Value index;           ///< i64, of the rows in order
  Value taken, returned; ///< where each row in order is, and where each row is in order
};

class RowSorter {
public:
  RowSorter(func::FuncOp function, int64_t togetherRows)
      : function(function), togetherRows(togetherRows) {}

  unsigned run() {
    SmallVector<Operation *> products;
    function.walk([&](Operation *op) {
      if (isa<aten::IndexedMmOp, aten::IndexedOuterOp>(op))
        products.push_back(op);
    });
    for (Operation *op : products) {
      if (auto product = dyn_cast<aten::IndexedMmOp>(op))
        visit(product, aten::shapeOf(product.getMat2()).front());
      else
        visit(cast<aten::IndexedOuterOp>(op), aten::shapeOf(op->getResult(0)).front());
    }
    // From one product to the next, rows stay in order where nothing else reads them.
    unsigned kept = llvm::count_if(inOrder, aten::undoRowOrder);
    if (kept > 0)
      aten::eraseUnused(function);
    return sorted;
  }

private:
  /// Of few rows, few name the same matrix: each is read for its row, whatever their order.
  bool isWorthIt(Value index, int64_t groups) const {
    int64_t rows = aten::shapeOf(index).front();
    // Unknown numbers of rows are taken to be some thousands.
    constexpr double manyRows = 4096;
    if (ShapedType::isDynamic(rows) || ShapedType::isDynamic(groups))
      return static_cast<double>(togetherRows) < manyRows;
    return static_cast<double>(rows) >
           static_cast<double>(groups) * static_cast<double>(togetherRows);
  }

  template <typename Op> void visit(Op op, int64_t groups) {
    Value index = op.getIndex();
    if (op.getSorted() || !isWorthIt(index, groups)) {
      op.getIndexMutable().assign(wide(index));
      return;
    }
    RowOrder order = orderOf(index);
    OpBuilder builder(op);
    auto lookUp = [&](Value rows, Value positions) -> Value {
      return aten::IndexSelectOp::create(builder, op.getLoc(), rows.getType(), rows, 0, positions);
    };
    auto putInOrder = [&](OpOperand &rows) {
      Value &taken = lookups[{rows.get(), order.taken}];
      if (!taken) {
        taken = lookUp(rows.get(), order.taken);
        inOrder.push_back(taken.getDefiningOp());
      }
      rows.set(taken);
    };
    putInOrder(op.getSelfMutable());
    if constexpr (std::is_same_v<Op, aten::IndexedOuterOp>)
      putInOrder(op.getOtherMutable());
    op.getIndexMutable().assign(order.index);
    op.setSorted(true);
    if constexpr (std::is_same_v<Op, aten::IndexedMmOp>) {
      builder.setInsertionPointAfter(op);
      Value back = lookUp(op.getResult(), order.returned);
      op.getResult().replaceAllUsesExcept(back, back.getDefiningOp());
    }
    ++sorted;
  }

  /// In i64, computed once behind the index.
  Value wide(Value index) {
    Value &known = wides[index];
    if (!known) {
      OpBuilder builder(function.getContext());
      builder.setInsertionPointAfterValue(index);
      Emitter emit(builder, index.getLoc());
      known = emit.cast(index, builder.getI64Type());
    }
    return known;
  }

  const RowOrder &orderOf(Value index) {
    RowOrder &order = orders[index];
    if (!order.index) {
      OpBuilder builder(function.getContext());
      Value numbers = wide(index);
      builder.setInsertionPointAfterValue(numbers);
      auto sort = [&](Value x) {
        return aten::SortOp::create(builder, x.getLoc(), x, 0, /*descending=*/false, IntegerAttr());
      };
      aten::SortOp rows = sort(numbers);
      order = {rows.getValues(), rows.getIndices(), sort(rows.getIndices()).getIndices()};
    }
    return order;
  }

  func::FuncOp function;
  int64_t togetherRows;
  llvm::DenseMap<Value, Value> wides;
  llvm::DenseMap<Value, RowOrder> orders;
  SmallVector<Operation *> inOrder; ///< lookups of rows that come into the order of products
  llvm::DenseMap<std::pair<Value, Value>, Value> lookups; ///< by rows and positions
  unsigned sorted = 0;
};

} // namespace

unsigned shardc::bringRowsTogether(func::FuncOp function, int64_t rows) {
  return RowSorter(function, rows).run();
}
