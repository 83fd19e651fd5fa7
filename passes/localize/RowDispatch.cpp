// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that go to the parts that own them, and back (aten.dispatch_rows, aten.collect_rows).

#include "dialects/aten/Grouped.h"
#include "dialects/aten/Sorting.h"
#include "passes/localize/Models.h"
#include "passes/localize/RedistributeSteps.h"
#include "passes/localize/RowExchange.h"

using namespace mlir;
using namespace shardc;

namespace {

/// What both directions have in common. `rows` are the rows and their owners, `parts` what the
/// parts have of them.
class RowMover {
public:
  RowMover(Localizer &localizer, OpBuilder &builder, Operation *op, Value owner, int64_t batches,
           int64_t parts)
      : localizer(localizer), builder(builder), loc(op->getLoc()), emit(localizer.emitter(builder)),
        indices(localizer.indices(builder)), i64(builder.getI64Type()),
        owner(emit.cast(owner, i64)), batches(batches), parts(parts) {}

  /// The axes that take one part each, innermost of `ofParts`, which shares out all parts: as many
  /// ranks as there are parts, behind those that have a block of rows each. Nothing where the ranks
  /// are others.
  std::optional<SmallVector<unsigned>> axesOfParts(const DimSplit &ofParts,
                                                   int64_t blockRows) const {
    SmallVector<unsigned> axes;
    int64_t ways = 1, blocks = 1;
    for (const AxisSplit &axis : ofParts.axes) {
      if (blocks < batches) {
        blocks *= axis.count;
        continue;
      }
      ways *= axis.count;
      axes.push_back(axis.axis);
    }
    bool fits = blocks == batches && ways == parts && parts > 1 &&
                isEven(ofParts, batches * parts * blockRows, blockRows);
    return fits ? std::optional(axes) : std::nullopt;
  }
  /// How many whole blocks a rank has; nothing where ranks have parts of blocks.
  std::optional<int64_t> wholeBlocks(const DimSplit &ofRows, int64_t blockRows) const {
    int64_t ways = 1;
    for (const AxisSplit &axis : ofRows.axes)
      ways *= axis.count;
    bool fits =
        batches % ways == 0 && isEven(ofRows, batches * blockRows, batches / ways * blockRows);
    return fits ? std::optional(batches / ways) : std::nullopt;
  }
  /// Whether each rank has one piece of so many of the rows.
  bool isEven(const DimSplit &split, int64_t rows, int64_t piece) const {
    const Mesh &mesh = localizer.getMesh().getValue();
    return llvm::all_of(split.axes, [](const AxisSplit &axis) { return axis.isOnePiece(); }) &&
           llvm::all_of(llvm::seq<int64_t>(0, mesh.numDevices()), [&](int64_t p) {
             return split.extent(rows, mesh.coordinateOfPosition(p)) == piece;
           });
  }

  /// On one rank, which has `blocks` whole blocks of rows.
  Value dispatchHere(Value rows, int64_t blocks) {
    Value at = places(blocks);
    Type type = aten::elementTypeOf(rows);
    if (type.isInteger(1)) // which cannot be added up
      rows = emit.cast(rows, builder.getIntegerType(8));
    int64_t total = aten::shapeOf(rows).front() * parts;
    SmallVector<OpFoldResult> shape = sizesOf(rows);
    shape.front() = builder.getIndexAttr(total + 1); // and one for those that belong nowhere
    Value none = emit.zeros(shape, aten::elementTypeOf(rows));
    Value all = aten::IndexPutOp::create(builder, loc, none, ValueRange{at}, rows,
                                         ArrayRef<int64_t>{0}, /*accumulate=*/true);
    return emit.cast(emit.slice(all, 0, builder.getIndexAttr(0), builder.getIndexAttr(total)),
                     type);
  }
  Value collectHere(Value held, int64_t blocks) {
    SmallVector<OpFoldResult> shape = sizesOf(held);
    shape.front() = builder.getIndexAttr(1);
    Value none = emit.zeros(shape, aten::elementTypeOf(held));
    return aten::IndexSelectOp::create(builder, loc, emit.cat({held, none}, 0), 0, places(blocks));
  }

  /// Each rank has a part of the rows of its block, and one of the parts that rows go to.
  Value dispatchOver(Value rows, ArrayRef<unsigned> axes, int64_t blockRows) {
    RowExchange exchange = sendersOf(axes);
    Value ordered = aten::IndexSelectOp::create(builder, loc, rows, 0, order());
    RowExchange::Counts counts = exchange.count(countByPart(), blockRows);
    return exchange.send(ordered, counts.sent, counts.arriving, blockRows);
  }
  /// `most`: rows of any rank.
  Value collectOver(Value held, ArrayRef<unsigned> axes, int64_t blockRows, int64_t most) {
    RowExchange exchange = sendersOf(axes);
    RowExchange::Counts counts = exchange.count(countByPart(), blockRows);
    Value arrived = exchange.send(held, counts.arriving, counts.sent, most);
    // Those that belong nowhere are last, and read zeros.
    return aten::IndexSelectOp::create(builder, loc, arrived, 0, sort(order()).getIndices());
  }

private:
  RowExchange sendersOf(ArrayRef<unsigned> axes) const {
    return RowExchange(localizer, builder, axes, parts);
  }

  SmallVector<OpFoldResult> sizesOf(Value tensor) {
    SmallVector<OpFoldResult> sizes;
    for (auto [dim, size] : llvm::enumerate(aten::shapeOf(tensor)))
      sizes.push_back(ShapedType::isDynamic(size)
                          ? OpFoldResult(aten::SymSizeOp::create(
                                builder, loc, builder.getIndexType(), tensor, dim))
                          : OpFoldResult(builder.getIndexAttr(size)));
    return sizes;
  }

  Value number(int64_t value) { return emit.integer(value, i64); }
  Value range(int64_t count, int64_t step = 1) {
    return emit.range(indices.constant(0), indices.constant(count), step);
  }
  aten::SortOp sort(Value x) {
    return aten::SortOp::create(builder, loc, x, 0, /*descending=*/false, IntegerAttr());
  }
  /// Whether a part owns the row.
  Value belongs(Value of) {
    return emit.binary<aten::LogicalAndOp>(emit.binary<aten::GeOp>(of, number(0)),
                                           emit.binary<aten::LtOp>(of, number(parts)));
  }
  /// For each row and part, 1 where the part owns the row: a new last dim.
  Value owned(Value of, int64_t rank) {
    Value isOwn = emit.binary<aten::EqOp>(emit.unsqueeze(of, rank), range(parts));
    return emit.cast(isOwn, i64);
  }

  /// Where each row is in what the parts have of `blocks` blocks; behind all where it belongs
  /// nowhere.
  Value places(int64_t blocks) {
    int64_t count = aten::shapeOf(owner).front(), rows = count / blocks;
    Value blocked = emit.view(owner, {builder.getIndexAttr(blocks), builder.getIndexAttr(rows)});
    Value own = owned(blocked, 2);
    Value upTo = aten::CumsumOp::create(builder, loc, own, 1, TypeAttr::get(i64));
    Value before = emit.sub(emit.sum(emit.mul(own, upTo), {2}, /*keepdim=*/false), number(1));
    Value inBlock = emit.add(emit.mul(blocked, number(rows)), before);
    Value at =
        emit.add(emit.unsqueeze(range(blocks, std::max<int64_t>(rows * parts, 1)), 1), inBlock);
    Value place = emit.where(belongs(blocked), at, number(count * parts));
    return emit.view(place, {builder.getIndexAttr(count)});
  }

  /// Positions of the rows by their owners, those that belong nowhere last.
  Value order() { return sort(emit.where(belongs(owner), owner, number(parts))).getIndices(); }
  Value countByPart() { return emit.sum(owned(owner, 1), {0}, /*keepdim=*/false); }

  Localizer &localizer;
  OpBuilder &builder;
  Location loc;
  Emitter emit;
  LocalIndices indices;
  Type i64;
  Value owner;
  int64_t batches, parts;
};

template <typename Op, bool isDispatch>
struct RowsModel : LocalizeModel<RowsModel<Op, isDispatch>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    auto batches = static_cast<int64_t>(op.getBatches()),
         parts = static_cast<int64_t>(op.getParts());
    if (ShapedType::isDynamic(localizer.globalOperandType(1).getDimSize(0)) ||
        ShapedType::isDynamic(localizer.globalOperandType(0).getDimSize(0))) {
      localizer.refuse() << "the number of rows is not known";
      return failure();
    }
    auto splitOf = [](const Layout *layout) { return layout ? layout->splitOfDim(0) : DimSplit(); };
    DimSplit split = splitOf(localizer.operandLayout(1));
    DimSplit ofParts = splitOf(isDispatch ? localizer.resultLayout(0) : localizer.operandLayout(0));
    int64_t blockRows = localizer.globalOperandType(1).getDimSize(0) / batches;
    auto hasBlocks = [](const AxisSplit &axis) { return !axis.isOnePiece(); };
    if (llvm::any_of(split.axes, hasBlocks) || llvm::any_of(ofParts.axes, hasBlocks)) {
      localizer.refuse() << "rows are sharded in blocks; replicate them before";
      return failure();
    }
    RowMover mover(localizer, builder, op, operands[1], batches, parts);
    if (std::optional<int64_t> blocks = mover.wholeBlocks(split, blockRows))
      return single(isDispatch ? mover.dispatchHere(operands[0], *blocks)
                               : mover.collectHere(operands[0], *blocks));
    auto axesOf = [](const DimSplit &of) {
      return llvm::map_to_vector(of.axes, [](const AxisSplit &axis) { return axis.axis; });
    };
    std::optional<SmallVector<unsigned>> axes = mover.axesOfParts(ofParts, blockRows);
    if (axes && axesOf(split) == axesOf(ofParts)) // of which rows are shared out likewise
      return single(isDispatch ? mover.dispatchOver(operands[0], *axes, blockRows)
                               : mover.collectOver(operands[0], *axes, blockRows,
                                                   mostRows(localizer, split)));
    // Parts that are not one a rank: all of it on every rank, and its own share of the result.
    Value self = whole(localizer, builder, operands[0], 0),
          owner = whole(localizer, builder, operands[1], 1);
    RowMover everywhere(localizer, builder, op, owner, batches, parts);
    Value all =
        isDispatch ? everywhere.dispatchHere(self, batches) : everywhere.collectHere(self, batches);
    Layout rows(localizer.getMesh().getValue());
    rows.order = localizer.resultLayout(0)->order;
    for (unsigned axis = 0; axis < rows.placements.size(); ++axis)
      if (const Placement &is = localizer.resultLayout(0)->placements[axis];
          is.isShard() && is.dim == 0)
        rows.placements[axis] = is;
    return single(emitShard(localizer, builder, all, rows));
  }

  static int64_t mostRows(Localizer &localizer, const DimSplit &split) {
    const Mesh &mesh = localizer.getMesh().getValue();
    int64_t most = 0, size = localizer.globalOperandType(1).getDimSize(0);
    for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p)
      most = std::max(most, split.extent(size, mesh.coordinateOfPosition(p)));
    return most;
  }

  static Value whole(Localizer &localizer, OpBuilder &builder, Value local, unsigned operand) {
    const Layout *layout = localizer.operandLayout(operand);
    SmallVector<unsigned> axes;
    for (const AxisSplit &axis : layout->splitOfDim(0).axes)
      axes.push_back(axis.axis);
    SmallVector<int64_t> shape(aten::shapeOf(local));
    shape.front() = localizer.globalOperandType(operand).getDimSize(0);
    return localizer.allGather(builder, local, *layout,
                               RankedTensorType::get(shape, aten::elementTypeOf(local)), 0, axes);
  }
};

} // namespace

void shardc::attachRowDispatchModels(MLIRContext *context) {
  attachModel<aten::DispatchRowsOp, RowsModel<aten::DispatchRowsOp, true>>(context);
  attachModel<aten::CollectRowsOp, RowsModel<aten::CollectRowsOp, false>>(context);
}
