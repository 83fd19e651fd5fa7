// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookups: what was read at a position is added there.

#include "dialects/aten/KnownLookups.h"
#include "dialects/aten/LookupLine.h"
#include "dialects/aten/RowFrequency.h"
#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

/// `values` added to zeros of the shape of `table`, at these positions of dims `at`.
Expr addedAt(Derivation &d, Value table, ValueRange indices, ArrayRef<int64_t> at, Expr values) {
  Expr zeros = d.zeros(d.sizes(table), values.elementType());
  return d.of(aten::IndexPutOp::create(d.builder, d.emit.getLoc(), zeros.value, indices,
                                       values.value, at, /*accumulate=*/true));
}

struct EmbeddingGradient : GradientModel<EmbeddingGradient, aten::EmbeddingOp> {
  static LogicalResult run(Derivation &d, aten::EmbeddingOp op) {
    Expr grad = d.grad(), indices = d.of(op.getIndices());
    if (!grad)
      return success();
    // The padding row gets nothing.
    if (auto padding = static_cast<int64_t>(op.getPaddingIdx()); padding >= 0) {
      Expr isPadding = d.of(
          d.emit.binary<aten::EqOp>(indices.value, d.emit.integer(padding, indices.elementType())));
      grad = where(unsqueeze(isPadding, indices.rank()), 0, grad);
    }
    if (op->hasAttr(aten::kScaledByFrequencyAttr))
      grad = grad / unsqueeze(frequencies(d, op, grad.elementType()), indices.rank());
    d.add(0, addedAt(d, op.getWeight(), op.getIndices(), 0, grad));
    return success();
  }

  /// How often the row of each position is read.
  static Expr frequencies(Derivation &d, aten::EmbeddingOp op, Type type) {
    Type i64 = d.builder.getI64Type();
    Location loc = d.emit.getLoc();
    Value positions = op.getIndices();
    ValueRange at(positions);
    SmallVector<int64_t> dims = {0};
    SmallVector<OpFoldResult> rows = {d.sizes(op.getWeight()).front()};
    Expr indices = d.of(op.getIndices()), once = cast(eq(indices, indices), i64);
    Expr counts = d.of(aten::IndexPutOp::create(d.builder, loc, d.zeros(rows, i64).value, at,
                                                once.value, dims, /*accumulate=*/true));
    return cast(d.of(aten::IndexOp::create(d.builder, loc, counts.value, at, dims)), type);
  }
};

struct GatherGradient : GradientModel<GatherGradient, aten::GatherOp> {
  static LogicalResult run(Derivation &d, aten::GatherOp op) {
    Expr grad = d.grad(), index = d.of(op.getIndex());
    if (!grad)
      return success();
    auto dim = static_cast<int64_t>(op.getDim());
    ArrayRef<int64_t> self = aten::shapeOf(op.getSelf()), read = aten::shapeOf(op.getIndex());
    // One position of each row, as a loss reads its labels: by comparison, so that the dim (the
    // vocabulary) may be sharded and nothing of it moves.
    if (readsWholeRows(self, read, dim) && read[dim] == 1) {
      Expr positions =
          d.positions(d.size(op.getSelf(), dim), dim, grad.rank(), index.elementType());
      d.add(0, where(eq(positions, index), grad, 0));
      return success();
    }
    if (self.empty()) {
      d.add(0, sum(grad, dimRange(0, grad.rank()), /*keepdim=*/false));
      return success();
    }
    if (read.empty()) {
      index = unsqueeze(index, 0);
      grad = unsqueeze(grad, 0);
    }
    Expr zeros = d.zeros(d.sizes(op.getSelf()), grad.elementType());
    d.add(0, d.of(aten::ScatterAddOp::create(d.builder, d.emit.getLoc(), zeros.value, dim,
                                             index.value, grad.value)));
    return success();
  }

  /// Whether the index has all elements of self in each other dim.
  static bool readsWholeRows(ArrayRef<int64_t> self, ArrayRef<int64_t> read, int64_t dim) {
    if (self.size() != read.size() || self.empty())
      return false;
    for (auto [i, sizes] : llvm::enumerate(llvm::zip_equal(self, read))) {
      auto [have, want] = sizes;
      if (static_cast<int64_t>(i) != dim && (have != want || ShapedType::isDynamic(have)))
        return false;
    }
    return true;
  }
};

struct IndexSelectGradient : GradientModel<IndexSelectGradient, aten::IndexSelectOp> {
  static LogicalResult run(Derivation &d, aten::IndexSelectOp op) {
    Expr grad = d.grad(), index = d.of(op.getIndex());
    if (!grad)
      return success();
    if (grad.rank() == 0) {
      d.add(0, grad);
      return success();
    }
    auto dim = static_cast<int64_t>(op.getDim());
    if (std::optional<SmallVector<int64_t>> positions = aten::ascendingPositions(op))
      if (Value sums =
              aten::sumsAt(d.emit, grad.value, *positions, dim, aten::shapeOf(op.getSelf())[dim])) {
        d.add(0, d.of(sums));
        return success();
      }
    if (index.rank() == 0)
      index = unsqueeze(index, 0);
    Expr added = addedAt(d, op.getSelf(), index.value, dim, grad);
    if (std::optional<aten::LookupLine> line = aten::LookupLine::of(op))
      line->setOn(added.value.getDefiningOp());
    d.add(0, added);
    return success();
  }
};

struct IndexGradient : GradientModel<IndexGradient, aten::IndexOp> {
  static LogicalResult run(Derivation &d, aten::IndexOp op) {
    if (d.grad())
      d.add(0, addedAt(d, op.getSelf(), op.getIndices(), op.getIndicesAt(), d.grad()));
    return success();
  }
};

struct ScatterAddGradient : GradientModel<ScatterAddGradient, aten::ScatterAddOp> {
  static LogicalResult run(Derivation &d, aten::ScatterAddOp op) {
    if (!d.grad())
      return success();
    d.add(0, d.grad());
    if (!d.needs(2))
      return success();
    Expr read = d.of(aten::GatherOp::create(d.builder, d.emit.getLoc(), d.grad().value, op.getDim(),
                                            op.getIndex()));
    // Elements of src that no index names.
    ArrayRef<int64_t> index = aten::shapeOf(op.getIndex()), src = aten::shapeOf(op.getSrc());
    SmallVector<int64_t> widths;
    for (int64_t dim = static_cast<int64_t>(src.size()); dim-- > 0;) {
      if (ShapedType::isDynamic(index[dim]) || ShapedType::isDynamic(src[dim])) {
        d.refuse() << "needs known sizes of index and src";
        return failure();
      }
      widths.append({0, src[dim] - index[dim]});
    }
    if (index != src)
      read = d.of(aten::ConstantPadNdOp::create(d.builder, d.emit.getLoc(), read.value, widths,
                                                APFloat(0.0)));
    d.add(2, read);
    return success();
  }
};

struct IndexPutGradient : GradientModel<IndexPutGradient, aten::IndexPutOp> {
  static LogicalResult run(Derivation &d, aten::IndexPutOp op) {
    if (!d.grad())
      return success();
    d.add(0, d.grad());
    unsigned values = op.getValuesMutable().getOperandNumber();
    if (!d.needs(values))
      return success();
    if (std::optional<aten::LookupLine> line = aten::LookupLine::of(op)) {
      Value read = aten::IndexSelectOp::create(d.builder, d.emit.getLoc(), d.grad().value,
                                               op.getIndicesAt().front(), op.getIndices().front());
      line->setOn(read.getDefiningOp());
      d.add(values, d.of(read));
    } else {
      d.add(values, d.of(aten::IndexOp::create(d.builder, d.emit.getLoc(), d.grad().value,
                                               op.getIndices(), op.getIndicesAt())));
    }
    return success();
  }
};

} // namespace

void shardc::attachIndexingGradients(MLIRContext *context) {
  aten::EmbeddingOp::attachInterface<EmbeddingGradient>(*context);
  aten::GatherOp::attachInterface<GatherGradient>(*context);
  aten::IndexSelectOp::attachInterface<IndexSelectGradient>(*context);
  aten::IndexOp::attachInterface<IndexGradient>(*context);
  aten::ScatterAddOp::attachInterface<ScatterAddGradient>(*context);
  aten::IndexPutOp::attachInterface<IndexPutGradient>(*context);
}
