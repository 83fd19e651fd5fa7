// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/NeighborhoodScores.h"

#include "dialects/aten/Neighborhood.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

Expr neighborsExist(Emitter &emit, const Neighborhoods &neighborhoods, ArrayRef<int64_t> sizes) {
  OpBuilder &builder = emit.getBuilder();
  size_t spatial = neighborhoods.size(), outer = kNeighborhoodBatch + spatial + 1;
  Expr all;
  for (auto [dim, own] : llvm::enumerate(neighborhoods)) {
    if (!own.mayLackKeys())
      continue;
    // A query has its first neighbors, as many as are counted here.
    SmallVector<int64_t> counts;
    for (int64_t i = 0; i < sizes[dim]; ++i)
      counts.push_back(own.countOf(i, sizes[dim]));
    SmallVector<int64_t> shape(outer + spatial, 1), slots(outer + spatial, 1);
    shape[kNeighborhoodBatch + dim] = sizes[dim];
    slots[outer + dim] = own.kernel;
    auto type = RankedTensorType::get(shape, builder.getI64Type());
    Value count = ConstantOp::create(builder, emit.getLoc(), type,
                                     DenseElementsAttr::get(type, ArrayRef(counts)));
    auto index = [&](int64_t number) -> Value {
      return arith::ConstantIndexOp::create(builder, emit.getLoc(), number);
    };
    Value numbers = emit.range(index(0), index(own.kernel));
    Expr slot{emit.view(numbers, getAsIndexOpFoldResult(builder.getContext(), slots)), &emit};
    Expr exists = lt(slot, slot.with(count));
    all = all ? logicalAnd(all, exists) : exists;
  }
  return all;
}

} // namespace shardc::aten
