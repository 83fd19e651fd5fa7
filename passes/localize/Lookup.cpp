// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookups by position in a sharded dim (a vocabulary, most of all): every rank looks up what it
// holds and contributes zero for the rest, so the result is P(sum). Nothing of the table moves.
// Positions outside the whole table stay outside on every rank: the lookup itself refuses them.

#include "dialects/aten/KnownLookups.h"
#include "dialects/interfaces/FewUsers.h"
#include "passes/localize/LineLookups.h"
#include "passes/localize/Models.h"
#include "passes/localize/MovePieces.h"
#include "passes/localize/Positions.h"
#include "passes/localize/RedistributeSteps.h"
#include "passes/redistribute/core/BlockExchange.h"

using namespace mlir;
using namespace shardc;

namespace {

/// A lookup made local: positions that are valid on this rank, and where they are the right ones.
struct LocalLookup : LocalPositions {
  Value table;
};

} // namespace

/// Whether some rank may hold nothing of the dim.
static bool mayBeEmpty(const GlobalSize &size, const DimSplit &split) {
  return size.fixed() == kDynamic ||
         split.distinctExtents(size.fixed(), split.axes.size()).front() == 0;
}

/// Null parts after a diagnostic. `sizes` are the local sizes of the table, then of the table that
/// is looked into: a rank that holds nothing does so in one row of zeros, put behind its table.
static std::optional<LocalLookup> makeLocal(Localizer &localizer, OpBuilder &builder, Value table,
                                            Value index, int64_t dim,
                                            SmallVectorImpl<OpFoldResult> &sizes) {
  std::optional<LocalPositions> positions = localPositions(localizer, builder, index, dim);
  if (!positions)
    return std::nullopt;
  LocalLookup lookup{*positions, table};
  Emitter emit = localizer.emitter(builder);
  GlobalSize size = localizer.operandSize(builder, 0, dim);
  DimSplit split = localizer.operandLayout(0)->splitOfDim(dim);
  if (mayBeEmpty(size, split)) {
    OpFoldResult rows = std::exchange(sizes[dim], builder.getIndexAttr(1));
    Value row = emit.zeros(sizes, aten::elementTypeOf(table));
    lookup.table = emit.cat({table, row}, dim);
    LocalIndices indices = localizer.indices(builder);
    if (std::optional<int64_t> known = getConstantIntValue(rows))
      sizes[dim] = builder.getIndexAttr(*known + 1);
    else
      sizes[dim] = indices.add(cast<Value>(rows), indices.constant(1));
  }
  return lookup;
}

/// Bools have P(max) as their sum.
static LogicalResult checkPartial(Localizer &localizer, ArrayRef<unsigned> axes) {
  bool isBool = localizer.localResultType(0).getElementType().isInteger(1);
  Reduction reduction = isBool ? Reduction::Max : Reduction::Sum;
  if (isPartialOver(localizer, axes, reduction))
    return success();
  localizer.refuse() << "each element is found on one rank only, so the result must be "
                     << Placement::partial(reduction).str() << " over the axis of the table";
  return failure();
}

/// Looks `dim` up in this rank's part of the table, and takes 0 where another rank has the row.
/// `look` makes the op on the local table, and the mask in the shape of its result.
static LocalValues
lookUp(Localizer &localizer, OpBuilder &builder, ValueRange operands, int64_t dim,
       llvm::function_ref<std::pair<Value, Value>(const LocalLookup &, Emitter &)> look) {
  SmallVector<unsigned> axes = localizer.operandAxes(0, dim);
  if (axes.empty())
    return sameOp(localizer, builder, operands);
  if (failed(checkPartial(localizer, axes)))
    return failure();
  SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
  std::optional<LocalLookup> lookup =
      makeLocal(localizer, builder, operands[0], operands[1], dim, sizes);
  if (!lookup)
    return failure();
  Emitter emit = localizer.emitter(builder);
  auto [found, mask] = look(*lookup, emit);
  nameTableSizes(found.getDefiningOp(), lookup->size);
  return single(masked(emit, found, mask));
}

namespace {

struct EmbeddingModel : LocalizeModel<EmbeddingModel, aten::EmbeddingOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::EmbeddingOp op,
                         ValueRange operands) {
    return lookUp(localizer, builder, operands, 0, [&](const LocalLookup &lookup, Emitter &emit) {
      // The padding row is for gradients, which exist before ops are localised.
      Value rows = aten::EmbeddingOp::create(builder, op.getLoc(), lookup.table, lookup.index,
                                             /*padding_idx=*/-1);
      int64_t rank = cast<RankedTensorType>(lookup.mask.getType()).getRank();
      return std::pair(rows, emit.unsqueeze(lookup.mask, rank));
    });
  }
};

struct GatherModel : LocalizeModel<GatherModel, aten::GatherOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::GatherOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    return lookUp(localizer, builder, operands, dim, [&](const LocalLookup &lookup, Emitter &) {
      Value found = aten::GatherOp::create(builder, op.getLoc(), lookup.table, dim, lookup.index);
      return std::pair(found, lookup.mask);
    });
  }
};

/// Lookups in the same table, along the same dim, at positions near these ones, of which each rank
/// has the same part of the result: those that resampling is made of. They have one exchange, which
/// CSE leaves of theirs.
static SmallVector<SmallVector<int64_t>> knownTogether(aten::IndexSelectOp op,
                                                       ArrayRef<int64_t> positions) {
  constexpr int64_t kNear = 16;
  SmallVector<SmallVector<int64_t>> together;
  SmallVector<Operation *> users;
  if (hasFewUsers(op.getSelf()))
    users = llvm::to_vector(op.getSelf().getUsers());
  for (Operation *user : users) {
    auto other = dyn_cast<aten::IndexSelectOp>(user);
    if (!other || other == op || other.getDim() != op.getDim() || other.getType() != op.getType())
      continue;
    std::optional<SmallVector<int64_t>> those = aten::ascendingPositions(other);
    bool isNear = those && llvm::all_of(llvm::zip_equal(*those, positions), [&](auto pair) {
                    return std::abs(std::get<0>(pair) - std::get<1>(pair)) <= kNear;
                  });
    if (isNear)
      together.push_back(std::move(*those));
  }
  together.emplace_back(positions);
  return together;
}

/// At positions that are known and ascend: the rows that this rank's part of the result needs come
/// from those that have them, and the positions become those among them.
static LocalValues lookUpKnown(Localizer &localizer, OpBuilder &builder, aten::IndexSelectOp op,
                               Value table, ArrayRef<int64_t> positions) {
  auto dim = static_cast<int64_t>(op.getDim());
  const Layout &layout = *localizer.resultLayout(0);
  const Mesh &mesh = layout.mesh;
  HeldDim due = heldDim(mesh, localizer.resultDim(0, dim));
  PieceSource source{table, localizer.operandSizes(builder, 0),
                     heldDim(mesh, localizer.operandDim(0, dim)), 0};
  PieceTarget target;
  target.pieces = {{0, source.dim.size, 0, 1}};
  SmallVector<SmallVector<int64_t>> together = knownTogether(op, positions);
  target.dim = {source.dim.size, {}, due.axes};
  SmallVector<int64_t> extents, local(positions.size(), 0);
  for (const std::vector<Run> &parts : due.runs) {
    std::vector<Run> &rows = target.dim.runs.emplace_back();
    // All parts of a rank as one: what is between them is little, or nothing.
    if (!parts.empty())
      rows = aten::rowsAt(together, {parts.front().begin, parts.back().end});
    extents.push_back(sizeOf(rows));
    for (const Run &part : parts)
      for (int64_t i = part.begin; i < part.end; ++i) {
        int64_t before = 0;
        auto row = rows.begin();
        for (; row->end <= positions[i]; ++row)
          before += row->size();
        local[i] = before + positions[i] - row->begin;
      }
  }
  target.sizes = source.sizes;
  target.sizes[dim] = getAsOpFoldResult(localizer.indices(builder).table(extents));
  SmallVector<int64_t> shape(cast<RankedTensorType>(table.getType()).getShape());
  shape[dim] = llvm::all_equal(extents) ? extents.front() : ShapedType::kDynamic;
  target.type = RankedTensorType::get(shape, aten::elementTypeOf(table));
  Value rows = movePieces(localizer, builder, dim, {source}, {target}).front();
  Layout along(mesh);
  along.order = layout.order;
  for (unsigned axis : layout.axesOfDim(dim)) {
    along.placements[axis] = layout.placements[axis];
    along.placements[axis].dim = 0;
  }
  Emitter emit = localizer.emitter(builder);
  Value index = emitShard(localizer, builder, aten::vectorOf(emit, local), along,
                          {localizer.resultSize(builder, 0, dim)});
  return single(aten::IndexSelectOp::create(builder, op.getLoc(), rows, dim, index));
}

struct IndexSelectModel : LocalizeModel<IndexSelectModel, aten::IndexSelectOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::IndexSelectOp op,
                         ValueRange operands) {
    int64_t dim = static_cast<int64_t>(op.getDim());
    const Layout *layout = localizer.resultLayout(0);
    SmallVector<unsigned> axes = localizer.operandAxes(0, dim);
    bool isSharded = layout && (!axes.empty() || !layout->splitOfDim(dim).empty());
    std::optional<SmallVector<int64_t>> positions = aten::ascendingPositions(op);
    if (isSharded && positions && (axes.empty() || !isPartialOver(localizer, axes, Reduction::Sum)))
      return lookUpKnown(localizer, builder, op, operands[0], *positions);
    if (std::optional<aten::LookupLine> line = aten::LookupLine::of(op); isSharded && line)
      return lookUpOnLine(localizer, builder, op, *line, operands);
    return lookUp(localizer, builder, operands, dim, [&](const LocalLookup &lookup, Emitter &emit) {
      Value found =
          aten::IndexSelectOp::create(builder, op.getLoc(), lookup.table, dim, lookup.index);
      OpFoldResult length = localizer.operandSizes(builder, 1).front();
      Value mask =
          alongDim(emit, lookup.mask, length, dim, localizer.globalOperandType(0).getRank());
      return std::pair(found, mask);
    });
  }
};

/// Indexing several dims: those of them that are sharded are masked.
struct IndexModel : LocalizeModel<IndexModel, aten::IndexOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::IndexOp op,
                         ValueRange operands) {
    SmallVector<int64_t> at(op.getIndicesAt());
    SmallVector<unsigned> axes = localizer.operandAxes(0, at);
    if (axes.empty())
      return sameOp(localizer, builder, operands);
    if (failed(checkPartial(localizer, axes)))
      return failure();
    Emitter emit = localizer.emitter(builder);
    SmallVector<Value> locals(operands);
    Value mask;
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
    SmallVector<int64_t> wholeSizes(at.size(), ShapedType::kDynamic);
    for (auto [i, dim] : llvm::enumerate(at)) {
      if (localizer.operandAxes(0, dim).empty())
        continue;
      Value index = fromStart(localizer, builder, operands[i + 1], dim);
      std::optional<LocalLookup> lookup =
          makeLocal(localizer, builder, locals[0], index, dim, sizes);
      if (!lookup)
        return failure();
      locals[0] = lookup->table;
      locals[i + 1] = lookup->index;
      wholeSizes[i] = lookup->size;
      mask = mask ? emit.binary<aten::BitwiseAndOp>(mask, lookup->mask) : lookup->mask;
    }
    auto found =
        aten::IndexOp::create(builder, op.getLoc(), locals[0], ArrayRef(locals).drop_front(), at);
    nameTableSizes(found, wholeSizes);
    return single(
        masked(emit, found, alignMask(emit, mask, at, localizer.globalOperandType(0).getRank())));
  }
};

} // namespace

void shardc::attachLookupModels(MLIRContext *context) {
  attachModel<aten::EmbeddingOp, EmbeddingModel>(context);
  attachModel<aten::GatherOp, GatherModel>(context);
  attachModel<aten::IndexSelectOp, IndexSelectModel>(context);
  attachModel<aten::IndexOp, IndexModel>(context);
}
