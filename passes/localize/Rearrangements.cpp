// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/Rearrangements.h"

#include "passes/localize/Exchange.h"
#include "passes/localize/MovePieces.h"
#include "passes/localize/Parts.h"
#include "passes/localize/PiecesOpInterface.h"
#include "passes/localize/WindowedImages.h"

#include "dialects/interfaces/FewUsers.h"
#include "dialects/interfaces/OpInterfaces.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <set>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static const Layout &layoutOf(Value placed) { return getLayout(placed.getType()).getValue(); }

static int64_t sizeOfDim(Value placed, int64_t dim) {
  return cast<RankedTensorType>(placed.getType()).getDimSize(dim);
}

/// Whether a redistribution changes who has what of `dim`, at most: it reduces nothing, and the
/// other dims stay as they are.
static bool changesOnly(RedistributeOp op, int64_t dim) {
  const Layout &from = layoutOf(op.getInput()), &to = layoutOf(op.getResult());
  auto type = cast<RankedTensorType>(op.getInput().getType());
  if (!(from.mesh == to.mesh) || type.isDynamicDim(static_cast<unsigned>(dim)))
    return false;
  for (auto [before, after] : llvm::zip(from.placements, to.placements))
    if (before != after && (before.isPartial() || after.isPartial()))
      return false;
  return llvm::all_of(llvm::seq<int64_t>(0, type.getRank()), [&](int64_t other) {
    return other == dim || from.splitOfDim(other) == to.splitOfDim(other);
  });
}

namespace {

/// Finds what a dim of a value is made of.
class Trace {
public:
  Trace(Localizer &localizer, OpBuilder *builder, int64_t dim)
      : localizer(localizer), builder(builder), dim(dim) {}

  /// Of a result; nothing where the op does not know.
  std::optional<Pieces> ofResult(PiecesOpInterface op, unsigned result) {
    std::optional<Pieces> own = op.getPieces(result, dim);
    if (!own)
      return std::nullopt;
    Pieces pieces;
    for (const Piece &piece : *own) {
      if (piece.source == kNewElements) {
        append(pieces, {newElements(op.getNewValue()), piece.count});
        continue;
      }
      Pieces operand = ofOperand(op->getOperand(piece.source), op);
      for (const Piece &part : select(operand, piece.start, piece.step, piece.count))
        append(pieces, part);
    }
    return pieces;
  }

  Pieces ofOperand(Value value, Operation *user) {
    Operation *made = value.getDefiningOp();
    if (made && areAllBehind(value, user)) {
      if (auto redistribute = dyn_cast<RedistributeOp>(made);
          redistribute && changesOnly(redistribute, dim)) {
        ++numPassed;
        return ofOperand(redistribute.getInput(), redistribute);
      }
      // What a lookup finds is P(sum) where each rank has a part of the dim: a kind of its own.
      if (auto op = dyn_cast<PiecesOpInterface>(made);
          op && !isa<aten::IndexSelectOp>(made) && op.getMovedDims() == ArrayRef(dim) &&
          keepsElementType(op) && numPassedOps < kMostPassed &&
          (!isa<PiecesOpInterface>(user) ||
           aten::elementTypeOf(value) == aten::elementTypeOf(user->getResult(0))))
        if (std::optional<Pieces> pieces = ofResult(op, cast<OpResult>(value).getResultNumber())) {
          ++numPassed;
          ++numPassedOps;
          return *pieces;
        }
    }
    return {{sourceOf(value), sizeOfDim(value, dim), 0, 1}};
  }

  /// Chains that are longer are cut: each op looks back by as much, and one that takes a value
  /// several times looks as often.
  static constexpr unsigned kMostPassed = 64;

  SmallVector<PieceSource> sources;
  unsigned numPassed = 0, numPassedOps = 0;

private:
  /// Whether `user` alone needs a value, or whatever else does looks at what it is made of as well.
  bool areAllBehind(Value value, Operation *user) const {
    return hasFewUsers(value) && llvm::all_of(value.getUsers(), [&](Operation *other) {
             return other == user || isOpTriviallyDead(other) || looksBehind(other, value);
           });
  }
  bool looksBehind(Operation *user, Value value) const {
    if (auto redistribute = dyn_cast<RedistributeOp>(user))
      return changesOnly(redistribute, dim);
    if (auto op = dyn_cast<PiecesOpInterface>(user))
      return !isa<aten::IndexSelectOp>(user) && op.getMovedDims() == ArrayRef(dim) &&
             keepsElementType(user) && op.getPieces(/*result=*/0, dim).has_value();
    std::optional<HaloDim> fetched = firstHaloDim(user);
    return fetched && fetched->imageDim == dim && user->getOperand(0) == value &&
           !llvm::is_contained(user->getOperands().drop_front(), value);
  }
  static bool keepsElementType(Operation *op) {
    Type type = aten::elementTypeOf(op->getResult(0));
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return !isa<TensorType>(operand.getType()) || aten::elementTypeOf(operand) == type;
    });
  }
  unsigned newElements(double value) {
    sources.push_back({Value(), {}, {}, value});
    values.push_back(Value());
    return static_cast<unsigned>(sources.size() - 1);
  }
  unsigned sourceOf(Value value) {
    auto number = static_cast<unsigned>(llvm::find(values, value) - values.begin());
    if (number < values.size())
      return number;
    values.push_back(value);
    PieceSource source;
    source.dim =
        heldDim(layoutOf(value).mesh, {sizeOfDim(value, dim), layoutOf(value).splitOfDim(dim)});
    if (builder) {
      source.local = localizer.localOf(value);
      source.sizes = localizer.localSizesOf(*builder, value);
    }
    sources.push_back(std::move(source));
    return number;
  }

  Localizer &localizer;
  OpBuilder *builder; ///< null: only what is passed is asked for
  int64_t dim;
  SmallVector<Value> values; ///< of sources
};

} // namespace

SmallVector<int64_t> shardc::shardedMovedDims(Localizer &localizer) {
  auto op = cast<PiecesOpInterface>(localizer.getOp());
  SmallVector<int64_t> dims;
  if (!localizer.getMesh())
    return dims;
  auto isSharded = [&](Value value, int64_t dim) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && dim < type.getRank() && !layoutOf(value).splitOfDim(dim).empty();
  };
  for (int64_t dim : op.getMovedDims()) {
    auto sharded = [&](Value value) { return isSharded(value, dim); };
    if (llvm::any_of(op->getOperands(), sharded) || llvm::any_of(op->getResults(), sharded))
      dims.push_back(dim);
  }
  return dims;
}

bool shardc::isBehindMoves(Localizer &localizer, int64_t dim) {
  Trace trace(localizer, nullptr, dim);
  trace.ofResult(cast<PiecesOpInterface>(localizer.getOp()), 0);
  return trace.numPassed != 0;
}

bool shardc::isMovedOperand(Localizer &localizer, int64_t dim, unsigned operand) {
  Operation *op = localizer.getOp();
  Trace trace(localizer, nullptr, dim);
  trace.ofOperand(op->getOperand(operand), op);
  return trace.numPassed != 0;
}

std::optional<MovedOperand> shardc::movedOperand(Localizer &localizer, OpBuilder &builder,
                                                 int64_t dim, unsigned operand) {
  if (!isMovedOperand(localizer, dim, operand))
    return std::nullopt;
  Operation *op = localizer.getOp();
  Trace trace(localizer, &builder, dim);
  Pieces pieces = trace.ofOperand(op->getOperand(operand), op);
  return MovedOperand{std::move(pieces), std::move(trace.sources)};
}

static LogicalResult refuseUnknown(Localizer &localizer, int64_t dim) {
  localizer.refuse() << "along dim " << dim
                     << ", whose size or bounds are symbolic, a rank would need elements of other "
                        "ranks; replicate the dim before";
  return failure();
}

/// What every rank wants of the operand for its part of a dim of the result.
static SmallVector<std::vector<Run>> wantedRuns(const Pieces &pieces, const HeldDim &due) {
  SmallVector<std::vector<Run>> wanted;
  for (const std::vector<Run> &runs : due.runs) {
    std::vector<Run> &list = wanted.emplace_back();
    for (const Run &run : runs)
      for (const Piece &piece : select(pieces, run.begin, 1, run.size()))
        if (piece.source != kNewElements) {
          int64_t last = piece.start + piece.step * (piece.count - 1);
          list.push_back({std::min(piece.start, last), std::max(piece.start, last) + 1});
        }
    llvm::sort(list, [](const Run &a, const Run &b) { return a.begin < b.begin; });
  }
  return wanted;
}

/// Of one operand along several dims, in which pieces do not overlap: what a rank lacks of its part
/// comes in one exchange, and is then put in order dim by dim.
static LocalValues moveAlongSeveral(Localizer &localizer, OpBuilder &builder, Value value,
                                    ArrayRef<int64_t> dims) {
  auto op = cast<PiecesOpInterface>(localizer.getOp());
  const Mesh &mesh = localizer.getMesh().getValue();
  SmallVector<Pieces> pieces;
  SmallVector<HeldDim> held, due;
  SmallVector<SmallVector<std::vector<Run>>> wanted;
  std::set<unsigned> axes;
  for (int64_t dim : dims) {
    std::optional<Pieces> own = op.getPieces(0, dim);
    if (!own)
      return refuseUnknown(localizer, dim);
    pieces.push_back(*own);
    held.push_back(heldDim(mesh, localizer.operandDim(0, dim)));
    due.push_back(heldDim(mesh, localizer.resultDim(0, dim)));
    wanted.push_back(wantedRuns(*own, due.back()));
    axes.insert(held.back().axes.begin(), held.back().axes.end());
    axes.insert(due.back().axes.begin(), due.back().axes.end());
  }
  StepExchange exchange{mesh, mesh, mesh, {axes.begin(), axes.end()}, {dims.begin(), dims.end()},
                        {}};
  Mesh byPosition(mesh.axes); // without device ids, ranks are positions
  for (std::vector<int64_t> &group : byPosition.groups(exchange.axes)) {
    std::vector<HeldBlock> before, after;
    for (int64_t position : group) {
      std::vector<std::vector<Run>> has, wants;
      for (size_t i = 0; i < dims.size(); ++i) {
        has.push_back(held[i].runs[position]);
        wants.push_back(wanted[i][position]);
      }
      before.push_back(std::move(has));
      after.push_back(std::move(wants));
    }
    exchange.groups.push_back(
        {std::move(group), BlockExchange(std::move(before), std::move(after))});
  }
  SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 0);
  LocalIndices indices = localizer.indices(builder);
  if (exchange.crosses()) {
    value = emitExchange(builder, op->getLoc(), exchange, value, sizes);
    for (auto [i, dim] : llvm::enumerate(dims)) {
      SmallVector<int64_t> extents;
      for (const std::vector<Run> &runs : wanted[i])
        extents.push_back(sizeOf(runs));
      sizes[dim] = getAsOpFoldResult(indices.table(extents));
      held[i].runs = wanted[i];
    }
  }
  PieceSource added;
  added.value = op.getNewValue();
  for (auto [i, dim] : llvm::enumerate(dims)) {
    for (Piece &piece : pieces[i])
      piece.source = piece.source == kNewElements;
    held[i].axes.clear(); // it is here
    PieceSource source{value, sizes, held[i], 0};
    sizes[dim] = localizer.localSizes(builder, 0)[dim];
    SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
    shape[dim] = localizer.localResultType(0).getDimSize(static_cast<unsigned>(dim));
    PieceTarget target{pieces[i], due[i], sizes,
                       RankedTensorType::get(shape, aten::elementTypeOf(value))};
    value = movePieces(localizer, builder, dim, {source, added}, target).front();
  }
  return single(value);
}

/// Where the slices begin that are cut along the same dim of the same tensor as the present one,
/// are as long, and shared out alike, and begin near each other, as the operands of a difference
/// do. The present one is not among them.
static SmallVector<int64_t> slicesNear(aten::SliceOp op) {
  constexpr int64_t kNear = 16;
  if (!hasFewUsers(op.getSelf()))
    return {};
  // Where it is computed with element by element, perhaps with a part of its other dims. Ops that
  // move its elements on, and windows, look at what it is made of instead.
  auto isMoved = [](aten::SliceOp slice) {
    auto isComputedWith = [](Operation *user) {
      auto kernel = dyn_cast<KernelOpInterface>(user);
      return kernel && kernel.getKernelForm() == KernelForm::Elementwise;
    };
    return llvm::any_of(slice->getUsers(), [&](Operation *user) {
      auto part = dyn_cast<aten::SliceOp>(user);
      return isComputedWith(user) || (part && part.getDim() != slice.getDim() &&
                                      llvm::any_of(part->getUsers(), isComputedWith));
    });
  };
  SmallVector<int64_t> starts;
  for (Operation *user : op.getSelf().getUsers()) {
    auto other = dyn_cast<aten::SliceOp>(user);
    if (other && other.getDim() == op.getDim() && other.getStep() == 1 && !other.getStart() &&
        !other.getEnd() && other.getType() == op.getType() && isMoved(other))
      starts.push_back(startOf(other));
  }
  if (op.getStep() != 1 || !isMoved(op))
    return {};
  llvm::sort(starts);
  starts.erase(llvm::unique(starts), starts.end());
  // Neighbours of neighbours are near too, so that all of them find the same.
  auto own = llvm::find(starts, startOf(op)), first = own, last = own;
  if (own == starts.end())
    return {};
  while (first != starts.begin() && *first - *(first - 1) <= kNear)
    --first;
  while (last + 1 != starts.end() && *(last + 1) - *last <= kNear)
    ++last;
  SmallVector<int64_t> near;
  for (auto at = first; at <= last; ++at)
    if (at != own)
      near.push_back(*at);
  return near;
}

LocalValues shardc::moveAlong(Localizer &localizer, OpBuilder &builder, ValueRange operands,
                              ArrayRef<int64_t> dims) {
  if (dims.size() > 1)
    return moveAlongSeveral(localizer, builder, operands[0], dims);
  auto op = cast<PiecesOpInterface>(localizer.getOp());
  int64_t dim = dims.front();
  Trace trace(localizer, &builder, dim);
  SmallVector<PieceTarget> targets;
  SmallVector<unsigned> used;
  bool isOnlyDim = op.getMovedDims().size() == 1;
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    if (op->getNumResults() > 1 && op->getResult(i).use_empty())
      continue;
    std::optional<Pieces> pieces = trace.ofResult(op, i);
    if (!pieces)
      return refuseUnknown(localizer, dim);
    PieceTarget target{*pieces,
                       heldDim(localizer.getMesh().getValue(), localizer.resultDim(i, dim)),
                       localizer.localSizes(builder, i), localizer.localResultType(i)};
    if (!isOnlyDim) {
      // As far as this dim is done.
      SmallVector<int64_t> shape(cast<RankedTensorType>(operands[0].getType()).getShape());
      shape[dim] = target.type.getDimSize(static_cast<unsigned>(dim));
      target.type = RankedTensorType::get(shape, target.type.getElementType());
      OpFoldResult size = target.sizes[dim];
      target.sizes = localizer.operandSizes(builder, 0);
      target.sizes[dim] = size;
    }
    targets.push_back(std::move(target));
    used.push_back(i);
  }
  SmallVector<PieceTarget> beside;
  if (auto slice = dyn_cast<aten::SliceOp>(*op)) {
    SmallVector<int64_t> near = slicesNear(slice);
    Pieces whole = near.empty() ? Pieces() : trace.ofOperand(slice.getSelf(), slice);
    for (int64_t start : near) {
      beside.push_back(targets.front());
      beside.back().pieces = select(whole, start, 1, sizeOfDim(slice.getResult(), dim));
    }
  }
  SmallVector<Value> moved = movePieces(localizer, builder, dim, trace.sources, targets, beside);
  if (moved.size() == op->getNumResults())
    return moved;
  // Results that nobody uses.
  SmallVector<Value> results;
  for (unsigned i = 0; i < op->getNumResults(); ++i) {
    auto at = llvm::find(used, i);
    if (at != used.end()) {
      results.push_back(moved[at - used.begin()]);
      continue;
    }
    results.push_back(localizer.emitter(builder).zeros(
        localizer.localSizes(builder, i), localizer.localResultType(i).getElementType()));
    results.back().setType(localizer.localResultType(i));
  }
  return results;
}

/// Positions of a sharded dim that are known, and that their owners alone have: they go from there
/// to who needs them, without a sum with the zeros of the others. Null where it is something else.
static Value tellPositions(Localizer &localizer, OpBuilder &builder, RedistributeOp op) {
  Operation *made = op.getInput().getDefiningOp();
  auto select = dyn_cast_or_null<aten::SelectOp>(made);
  auto lookup = dyn_cast_or_null<aten::IndexSelectOp>(made);
  if ((!select && !lookup) || !op.getInput().hasOneUse() || (select && select.getIndex()))
    return Value();
  Value self = made->getOperand(0);
  auto dim = static_cast<int64_t>(select ? select.getDim() : lookup.getDim());
  int64_t size = sizeOfDim(self, dim);
  const Layout &held = layoutOf(self), &from = layoutOf(op.getInput()),
               &to = layoutOf(op.getResult());
  if (ShapedType::isDynamic(size) || !(from.mesh == to.mesh) || !(held.mesh == to.mesh))
    return Value();
  for (auto [own, before, after] : llvm::zip(held.placements, from.placements, to.placements)) {
    bool isTold = after.isReplicate() || (lookup && after.isShard(dim));
    if (own.isShard(dim) ? !before.isPartial() || !isTold : before != after)
      return Value();
  }
  Trace trace(localizer, &builder, dim);
  PieceTarget target;
  if (lookup) {
    std::optional<Pieces> pieces = trace.ofResult(cast<PiecesOpInterface>(made), /*result=*/0);
    if (!pieces)
      return Value();
    target = {*pieces, heldDim(to.mesh, localizer.resultDim(0, dim)),
              localizer.localSizes(builder, 0), localizer.localResultType(0)};
  } else {
    auto index = static_cast<int64_t>(select.getStaticIndex());
    auto type = cast<RankedTensorType>(getLocalType(self.getType()));
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 1;
    target = {shardc::select(trace.ofOperand(self, select), index < 0 ? index + size : index, 1, 1),
              heldDim(to.mesh, {1, DimSplit()}), localizer.localSizesOf(builder, self),
              RankedTensorType::get(shape, type.getElementType())};
    target.sizes[dim] = builder.getIndexAttr(1);
  }
  Value told = movePieces(localizer, builder, dim, trace.sources, target).front();
  if (lookup)
    return told;
  return aten::SqueezeOp::create(builder, op.getLoc(), told, ArrayRef<int64_t>(dim));
}

Value shardc::moveBehindOps(Localizer &localizer, OpBuilder &builder, RedistributeOp op) {
  if (Value told = tellPositions(localizer, builder, op))
    return told;
  const Layout &from = layoutOf(op.getInput()), &to = layoutOf(op.getResult());
  int64_t rank = cast<RankedTensorType>(op.getInput().getType()).getRank();
  std::optional<int64_t> dim;
  for (int64_t d = 0; d < rank && from.mesh == to.mesh; ++d)
    if (!(from.splitOfDim(d) == to.splitOfDim(d))) {
      if (dim)
        return Value();
      dim = d;
    }
  if (!dim || !changesOnly(op, *dim))
    return Value();
  Trace asked(localizer, nullptr, *dim);
  asked.ofOperand(op.getInput(), op);
  if (asked.numPassedOps == 0)
    return Value();
  Trace trace(localizer, &builder, *dim);
  PieceTarget target{trace.ofOperand(op.getInput(), op),
                     heldDim(to.mesh, localizer.resultDim(0, *dim)),
                     localizer.localSizes(builder, 0), localizer.localResultType(0)};
  return movePieces(localizer, builder, *dim, trace.sources, target).front();
}
