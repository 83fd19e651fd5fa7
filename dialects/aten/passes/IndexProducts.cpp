// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Emitter.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/KnownIndices.h"
#include "dialects/aten/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENINDEXPRODUCTS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

/// The lookup of one matrix for each row, behind whatever transposes those that were looked up.
struct LookedUp {
  IndexOp lookup;
  bool transposed = false;

  static std::optional<LookedUp> of(Value matrices) {
    LookedUp found;
    if (auto transpose = matrices.getDefiningOp<TransposeOp>()) {
      if (transpose.getDim0() + transpose.getDim1() != 3)
        return std::nullopt;
      found.transposed = true;
      matrices = transpose.getSelf();
    }
    found.lookup = matrices.getDefiningOp<IndexOp>();
    if (!found.lookup || found.lookup.getIndicesAt() != ArrayRef<int64_t>(0) ||
        shapeOf(found.lookup.getSelf()).size() != 3)
      return std::nullopt;
    bool isKnown = !ShapedType::isDynamic(shapeOf(found.lookup.getSelf()).front());
    return isKnown && shapeOf(found.lookup.getIndices().front()).size() == 1 ? std::optional(found)
                                                                             : std::nullopt;
  }

  /// The number of the matrix of each row. A product passes over a row without a matrix, where a
  /// lookup is an error of the run, and counts negative positions from the end: positions that may
  /// be so are looked up among the numbers.
  Value index(OpBuilder &builder) {
    Value given = lookup.getIndices().front();
    int64_t count = shapeOf(lookup.getSelf()).front();
    if (areIndicesBelow(given, count))
      return given;
    Emitter emit(builder, lookup.getLoc());
    auto number = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, lookup.getLoc(), value);
    };
    Value numbers = emit.range(number(0), number(count));
    return IndexOp::create(builder, lookup.getLoc(), numbers, given, ArrayRef<int64_t>(0));
  }
};

struct IndexProducts : impl::AtenIndexProductsBase<IndexProducts> {
  void runOnOperation() override {
    SmallVector<BmmOp> products;
    getOperation().walk([&](BmmOp op) { products.push_back(op); });
    for (BmmOp op : products)
      numProducts += rewrite(op);
    if (numProducts > 0)
      eraseUnused(getOperation());
  }

  /// Matrices times columns, or rows times matrices.
  static bool rewrite(BmmOp op) {
    bool ofColumns = shapeOf(op.getMat2())[2] == 1;
    if (!ofColumns && shapeOf(op.getSelf())[1] != 1)
      return false;
    std::optional<LookedUp> matrices = LookedUp::of(ofColumns ? op.getSelf() : op.getMat2());
    if (!matrices)
      return false;
    OpBuilder builder(op);
    IndexOp lookup = matrices->lookup;
    int64_t single = ofColumns ? 2 : 1;
    Value table = lookup.getSelf(),
          rows = withoutDim(builder, ofColumns ? op.getMat2() : op.getSelf(), single);
    if (ofColumns != matrices->transposed)
      table = TransposeOp::create(builder, op.getLoc(), table, 1, 2);
    Value product = IndexedMmOp::create(builder, op.getLoc(), rows, table, matrices->index(builder),
                                        /*sorted=*/false);
    Emitter emit(builder, op.getLoc());
    op.getResult().replaceAllUsesWith(emit.unsqueeze(product, single));
    return true;
  }

  static Value withoutDim(OpBuilder &builder, Value x, int64_t dim) {
    auto added = x.getDefiningOp<UnsqueezeOp>();
    if (added && static_cast<int64_t>(added.getDim()) == dim)
      return added.getSelf();
    return SqueezeOp::create(builder, x.getLoc(), x, ArrayRef<int64_t>(dim));
  }
};

} // namespace
} // namespace shardc::aten
