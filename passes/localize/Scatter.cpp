// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adding at positions of a sharded dim: every rank adds what falls into its part, and zero at a
// place of no matter for the rest. Positions outside of the whole dim stay outside on every rank:
// the op itself refuses them. Where nothing is added, but written, positions of other ranks are
// skipped.

#include "dialects/aten/Writing.h"
#include "passes/localize/LineLookups.h"
#include "passes/localize/Models.h"
#include "passes/localize/Positions.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Dims of symbolic size may be empty on a rank, which then adds its zeros in one row more, behind
/// the others. (Of known sizes a rank that has nothing has code of its own.)
class WithRoom {
public:
  WithRoom(Localizer &localizer, OpBuilder &builder, Value table, ArrayRef<int64_t> dims)
      : emit(localizer.emitter(builder)), builder(builder), table(table) {
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
    LocalIndices indices = localizer.indices(builder);
    for (int64_t dim : dims) {
      if (!ShapedType::isDynamic(localizer.globalOperandType(0).getDimSize(dim)) ||
          localizer.operandAxes(0, dim).empty())
        continue;
      OpFoldResult rows = std::exchange(sizes[dim], builder.getIndexAttr(1));
      this->table = emit.cat({this->table, emit.zeros(sizes, aten::elementTypeOf(table))}, dim);
      sizes[dim] = getAsOpFoldResult(indices.add(cast<Value>(rows), indices.constant(1)));
      given.push_back({dim, rows});
    }
  }

  Value get() const { return table; }
  Value without(Value added) {
    for (auto [dim, rows] : given)
      added = emit.slice(added, dim, builder.getIndexAttr(0), rows);
    return added;
  }

private:
  Emitter emit;
  OpBuilder &builder;
  Value table;
  SmallVector<std::pair<int64_t, OpFoldResult>> given;
};

struct ScatterAddModel : LocalizeModel<ScatterAddModel, aten::ScatterAddOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ScatterAddOp op,
                         ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getSelf(), 0)))
      return failure();
    auto dim = static_cast<int64_t>(op.getDim());
    if (localizer.operandAxes(0, dim).empty())
      return sameOp(localizer, builder, operands);
    std::optional<LocalPositions> positions = localPositions(localizer, builder, operands[1], dim);
    if (!positions)
      return failure();
    Emitter emit = localizer.emitter(builder);
    // Elements of src beyond those of the index are not used.
    Value src = masked(emit, alike(localizer, builder, emit, operands[2]), positions->mask);
    WithRoom table(localizer, builder, operands[0], dim);
    auto added =
        aten::ScatterAddOp::create(builder, op.getLoc(), table.get(), dim, positions->index, src);
    nameTableSizes(added, positions->size);
    return single(table.without(added));
  }

  /// The part of src that has the shape of the index.
  static Value alike(Localizer &localizer, OpBuilder &builder, Emitter &emit, Value src) {
    ArrayRef<int64_t> index = localizer.globalOperandType(1).getShape(),
                      whole = localizer.globalOperandType(2).getShape();
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 1);
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (ShapedType::isDynamic(index[dim]) || index[dim] != whole[dim])
        src = emit.slice(src, dim, builder.getIndexAttr(0), size);
    return src;
  }
};

struct IndexPutModel : LocalizeModel<IndexPutModel, aten::IndexPutOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::IndexPutOp op,
                         ValueRange operands) {
    if (failed(checkAddedOnce(localizer, op.getSelf(), 0)))
      return failure();
    SmallVector<int64_t> at(op.getIndicesAt());
    std::optional<aten::LookupLine> line = aten::LookupLine::of(op);
    if (line && !(localizer.operandAxes(0, at).empty() && localizer.operandAxes(2, at).empty()))
      return addOnLine(localizer, builder, op, *line, operands);
    if (localizer.operandAxes(0, at).empty())
      return sameOp(localizer, builder, operands);
    Emitter emit = localizer.emitter(builder);
    SmallVector<Value> indices(operands.drop_front().drop_back());
    Value mask;
    SmallVector<int64_t> wholeSizes(at.size(), ShapedType::kDynamic);
    for (auto [i, dim] : llvm::enumerate(at)) {
      if (localizer.operandAxes(0, dim).empty())
        continue;
      Value index = fromStart(localizer, builder, indices[i], dim);
      std::optional<LocalPositions> positions = localPositions(localizer, builder, index, dim);
      if (!positions)
        return failure();
      indices[i] = positions->index;
      wholeSizes[i] = positions->size;
      mask = mask ? emit.binary<aten::BitwiseAndOp>(mask, positions->mask) : positions->mask;
    }
    mask = alignMask(emit, mask, at, localizer.globalOperandType(0).getRank());
    Value values = masked(emit, operands.back(), mask);
    WithRoom table(localizer, builder, operands.front(), at);
    auto added = aten::IndexPutOp::create(builder, op.getLoc(), table.get(), indices, values, at,
                                          op.getAccumulate());
    nameTableSizes(added, wholeSizes);
    return single(table.without(added));
  }
};

struct ScatterModel : LocalizeModel<ScatterModel, aten::ScatterOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::ScatterOp op,
                         ValueRange operands) {
    auto dim = static_cast<int64_t>(op.getDim());
    if (localizer.operandAxes(0, dim).empty())
      return sameOp(localizer, builder, operands);
    std::optional<LocalPositions> positions =
        localPositions(localizer, builder, operands[1], dim, /*skips=*/true);
    if (!positions)
      return failure();
    auto written = aten::ScatterOp::create(builder, op.getLoc(), operands[0], dim, positions->index,
                                           operands[2], op.getReduce(), /*skips=*/true);
    nameTableSizes(written, positions->size);
    return single(written);
  }
};

struct IndexWriteModel : LocalizeModel<IndexWriteModel, aten::IndexWriteOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::IndexWriteOp op,
                         ValueRange operands) {
    SmallVector<int64_t> at(op.getIndicesAt());
    if (localizer.operandAxes(0, at).empty())
      return sameOp(localizer, builder, operands);
    SmallVector<Value> indices(operands.drop_front().drop_back());
    SmallVector<int64_t> wholeSizes(at.size(), ShapedType::kDynamic);
    for (auto [i, dim] : llvm::enumerate(at)) {
      // A whole dim too: its size, given as an index, would be skipped, but is out of range.
      Value index = fromStart(localizer, builder, indices[i], dim);
      std::optional<LocalPositions> positions =
          localPositions(localizer, builder, index, dim, /*skips=*/true);
      if (!positions)
        return failure();
      indices[i] = positions->index;
      wholeSizes[i] = positions->size;
    }
    auto written = aten::IndexWriteOp::create(builder, op.getLoc(), operands.front(), indices,
                                              operands.back(), at, /*skips=*/true);
    nameTableSizes(written, wholeSizes);
    return single(written);
  }
};

} // namespace

void shardc::attachScatterModels(MLIRContext *context) {
  attachModel<aten::ScatterAddOp, ScatterAddModel>(context);
  attachModel<aten::IndexPutOp, IndexPutModel>(context);
  attachModel<aten::ScatterOp, ScatterModel>(context);
  attachModel<aten::IndexWriteOp, IndexWriteModel>(context);
}
