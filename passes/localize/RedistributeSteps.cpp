// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/RedistributeSteps.h"

#include "passes/localize/Exchange.h"
#include "passes/localize/ExtentLists.h"
#include "passes/localize/Localizer.h"
#include "passes/localize/Rearrangements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

using Sizes = SmallVector<OpFoldResult>;

static AxesAttr axesAttr(LocalIndices &indices, ArrayRef<unsigned> axes) {
  MLIRContext *context = indices.getBuilder().getContext();
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(StringAttr::get(context, indices.getMesh().getValue().axes[axis].name));
  return AxesAttr::get(context, indices.getMesh(), names);
}

/// The axes of the innermost `count` splits, outer to inner.
static SmallVector<unsigned> innerAxes(const DimSplit &split, size_t count) {
  SmallVector<unsigned> axes;
  for (size_t i = split.axes.size() - count; i < split.axes.size(); ++i)
    axes.push_back(split.axes[i].axis);
  return axes;
}

static DimSplit withoutInner(const DimSplit &split, size_t count) {
  return {{split.axes.begin(), split.axes.end() - static_cast<ptrdiff_t>(count)}};
}

static RankedTensorType withDim(Value value, int64_t dim, std::optional<int64_t> size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size.value_or(ShapedType::kDynamic);
  return RankedTensorType::get(shape, type.getElementType());
}

/// The `extents` attribute of a collective on one tensor; null for chunks.
static ArrayAttr extentsAttr(Builder builder, const ExtentList &list) {
  if (list.fixed.empty())
    return nullptr;
  return builder.getArrayAttr(builder.getDenseI64ArrayAttr(list.fixed));
}

Value shardc::emitAllReduce(LocalIndices indices, Value value, ArrayRef<unsigned> axes,
                            Reduction reduction) {
  OpBuilder &builder = indices.getBuilder();
  auto attr = ReductionAttr::get(builder.getContext(), reduction);
  return AllReduceOp::create(builder, indices.getLoc(), TypeRange{value.getType()}, attr,
                             ValueRange{value}, axesAttr(indices, axes))
      .getResult(0);
}

/// `whole`: the extent of the result along the dim.
static Value gatherOnce(LocalIndices &indices, Value value, const ExtentList &list, Value whole,
                        ArrayRef<unsigned> axes, int64_t dim) {
  OpBuilder &builder = indices.getBuilder();
  std::optional<int64_t> fixed = getConstantIntValue(whole);
  SmallVector<Value> sizes(list.dynamic);
  if (!fixed && list.fixed.empty())
    sizes.push_back(whole);
  return AllGatherOp::create(builder, indices.getLoc(), TypeRange{withDim(value, dim, fixed)},
                             ValueRange{value}, sizes, axesAttr(indices, axes),
                             builder.getDenseI64ArrayAttr({dim}), extentsAttr(builder, list))
      .getResult(0);
}

Value shardc::emitAllGather(LocalIndices indices, Value value, const GlobalSize &size,
                            const DimSplit &split, size_t count, int64_t dim) {
  // Ranks of a symbolic size know chunks of one axis only.
  size_t atOnce = size.fixed() == kDynamic ? 1 : count;
  DimSplit rest = split;
  for (size_t done = 0; done < count; done += atOnce) {
    ExtentList list = makeExtentList(indices, size, rest, atOnce);
    DimSplit outer = withoutInner(rest, atOnce);
    value =
        gatherOnce(indices, value, list, indices.extent(size, outer), innerAxes(rest, atOnce), dim);
    rest = outer;
  }
  return value;
}

namespace {

/// Emits one step. `sizes` are the local sizes of `value` as it is taken along.
class StepEmitter {
public:
  StepEmitter(Localizer &localizer, OpBuilder &builder, Value value, Sizes sizes,
              SmallVector<GlobalSize> globals)
      : indices(localizer.indices(builder)), emit(localizer.emitter(builder)), builder(builder),
        value(value), sizes(std::move(sizes)), globals(std::move(globals)) {}

  Value get() const { return value; }

  void allReduce(ArrayRef<unsigned> axes, Reduction reduction) {
    value = emitAllReduce(indices, value, axes, reduction);
  }

  /// S(dim) -> R on the innermost `count` axes of `split`.
  void gather(int64_t dim, const DimSplit &split, size_t count) {
    DimSplit outer = withoutInner(split, count);
    int64_t blocks = count == 1 ? split.axes.back().equalBlocks() : 1;
    if (blocks > 1) {
      AxisShare share{globals[dim], outer, split.axes.back()};
      ExtentList list = makeExtentList(indices, globals[dim], split, 1);
      openBlocks(dim, blocks, indices.length(share));
      value =
          gatherOnce(indices, value, list, indices.blockSize(share), innerAxes(split, 1), dim + 1);
    } else {
      value = emitAllGather(indices, value, globals[dim], split, count, dim);
      if (count == 1)
        toBlockOrder(dim, split.axes.back());
    }
    closeBlocks(dim, blocks, outer);
  }

  /// P(reduction) -> S(dim), on the innermost `count` axes of `split`.
  void reduceScatter(int64_t dim, const DimSplit &split, size_t count, Reduction reduction) {
    AxisShare share = innermost(dim, split);
    int64_t blocks = share.split.equalBlocks(); // 1 where there are several axes
    ExtentList list = makeExtentList(indices, globals[dim], split, count);
    openBlocks(dim, blocks, indices.blockSize(share));
    int64_t cut = dim + (blocks > 1);
    toRankOrder(cut, share.split);
    std::optional<int64_t> fixed = getConstantIntValue(indices.length(share));
    value = ReduceScatterOp::create(
                builder, indices.getLoc(), TypeRange{withDim(value, cut, fixed)},
                ReductionAttr::get(builder.getContext(), reduction), ValueRange{value},
                list.dynamic, axesAttr(indices, innerAxes(split, count)),
                builder.getDenseI64ArrayAttr({cut}), extentsAttr(builder, list))
                .getResult(0);
    closeBlocks(dim, blocks, split);
  }

  /// R -> S(dim), innermost of `split`.
  void slice(int64_t dim, const DimSplit &split) {
    AxisShare share = innermost(dim, split);
    int64_t blocks = share.split.equalBlocks();
    std::optional<int64_t> length = getConstantIntValue(indices.length(share));
    if (share.split.isUnequal()) {
      SmallVector<Value> pieces;
      for (auto [begin, end] : piecesOf(share.split))
        pieces.push_back(emit.slice(value, dim, begin, end));
      value = emit.cat(pieces, dim);
      value.setType(withDim(value, dim, length));
      return closeBlocks(dim, 1, split);
    }
    Value begin = indices.begin(share), end = indices.end(share);
    openBlocks(dim, blocks, indices.blockSize(share));
    int64_t cut = dim + (blocks > 1);
    value = emit.slice(value, cut, begin, end);
    value.setType(withDim(value, cut, length));
    closeBlocks(dim, blocks, split);
  }

  /// S(from) -> S(to), both innermost.
  void allToAll(int64_t from, const DimSplit &before, int64_t to, const DimSplit &after) {
    AxisShare gone = innermost(from, before), come = innermost(to, after);
    ExtentList arriving = makeExtentList(indices, globals[from], before, 1);
    ExtentList leaving = makeExtentList(indices, globals[to], after, 1);
    Value whole = indices.blockSize(gone), piece = indices.length(come);
    // Dims behind are opened first, so that the numbers of those before stay.
    int64_t fromBlocks = gone.split.equalBlocks(), toBlocks = come.split.equalBlocks();
    auto openFrom = [&] { openBlocks(from, fromBlocks, indices.length(gone)); };
    auto openTo = [&] { openBlocks(to, toBlocks, indices.blockSize(come)); };
    auto closeFrom = [&] { closeBlocks(from, fromBlocks, gone.outer); };
    auto closeTo = [&] { closeBlocks(to, toBlocks, after); };
    bool fromFirst = from > to;
    fromFirst ? (openFrom(), openTo()) : (openTo(), openFrom());
    int64_t concat = from + (fromBlocks > 1) + (to < from && toBlocks > 1);
    int64_t cut = to + (toBlocks > 1) + (from < to && fromBlocks > 1);
    toRankOrder(cut, come.split);

    std::optional<int64_t> fixedWhole = getConstantIntValue(whole);
    RankedTensorType type = withDim(value, concat, fixedWhole);
    SmallVector<int64_t> shape(type.getShape());
    shape[cut] = getConstantIntValue(piece).value_or(ShapedType::kDynamic);
    SmallVector<Value> operands(leaving.dynamic);
    llvm::append_range(operands, arriving.dynamic);
    if (!fixedWhole && arriving.fixed.empty())
      operands.push_back(whole);
    value = AllToAllOp::create(builder, indices.getLoc(),
                               TypeRange{RankedTensorType::get(shape, type.getElementType())},
                               ValueRange{value}, operands, axesAttr(indices, gone.split.axis),
                               builder.getDenseI64ArrayAttr({cut}),
                               builder.getDenseI64ArrayAttr({concat}),
                               extentsAttr(builder, leaving), extentsAttr(builder, arriving))
                .getResult(0);
    sizes[concat] = getAsOpFoldResult(whole);
    sizes[cut] = getAsOpFoldResult(piece);
    toBlockOrder(concat, gone.split);
    fromFirst ? (closeTo(), closeFrom()) : (closeFrom(), closeTo());
  }

  /// R -> P(sum): the value at position 0, zero elsewhere. A rank chooses, it does not multiply:
  /// zero times infinity is not zero.
  void toPartial(ArrayRef<unsigned> axes) {
    Type elementType = aten::elementTypeOf(value);
    Value position = emit.ofIndex(indices.groupIndex(axes), builder.getI64Type());
    Value first = emit.binary<aten::EqOp>(position, emit.integer(0, builder.getI64Type()));
    Type type = value.getType();
    value = emit.where(first, value, emit.integer(0, elementType));
    value.setType(cast<RankedTensorType>(type));
  }

  /// S(dim) -> P(sum), from innermost of `split`: the shard at its place among zeros.
  void zeroFill(int64_t dim, const DimSplit &split) {
    AxisShare share = innermost(dim, split);
    int64_t blocks = share.split.equalBlocks();
    Type elementType = aten::elementTypeOf(value);
    openBlocks(dim, blocks, indices.length(share));
    int64_t grown = dim + (blocks > 1);
    Value whole = indices.blockSize(share);
    auto zeros = [&](Value length) {
      Sizes shape = sizes;
      shape[grown] = getAsOpFoldResult(length);
      return emit.zeros(shape, elementType);
    };
    SmallVector<Value> parts;
    Value filled = indices.constant(0), taken = filled;
    for (auto [begin, end] : piecesOf(share.split)) {
      Value next = indices.add(taken, indices.sub(end, begin));
      parts.push_back(zeros(indices.sub(begin, filled)));
      parts.push_back(emit.slice(value, dim, taken, next));
      filled = end;
      taken = next;
    }
    if (parts.empty()) {
      parts = {zeros(indices.begin(share)), value};
      filled = indices.end(share);
    }
    parts.push_back(zeros(indices.sub(whole, filled)));
    value = emit.cat(parts, grown);
    value.setType(withDim(value, grown, getConstantIntValue(whole)));
    closeBlocks(dim, blocks, share.outer);
  }

private:
  AxisShare innermost(int64_t dim, const DimSplit &split) {
    return {globals[dim], withoutInner(split, 1), split.axes.back()};
  }

  /// Where this rank's piece of each of several unequal blocks begins and ends in all of them.
  SmallVector<std::pair<Value, Value>> piecesOf(const AxisSplit &split) {
    const Mesh &mesh = indices.getMesh().getValue();
    std::vector<SplitBlock> blocks;
    if (split.isUnequal())
      blocks = unequalBlocks(split.sizes);
    SmallVector<std::pair<Value, Value>> pieces;
    for (size_t block = 0; block < blocks.size(); ++block) {
      SmallVector<int64_t> begins, ends;
      for (int64_t p = 0; p < mesh.numDevices(); ++p) {
        int64_t own = mesh.coordinateOfPosition(p)[split.axis];
        Run piece = split.pieces(sizeOf(blocks), own)[block];
        begins.push_back(piece.begin);
        ends.push_back(piece.end);
      }
      pieces.push_back({indices.table(begins), indices.table(ends)});
    }
    return pieces;
  }

  /// A dim of unequal blocks, from the shards in a row to the blocks in a row. Collectives cut and
  /// join shards in a row. Nothing to do for other splits.
  void toBlockOrder(int64_t dim, const AxisSplit &split) {
    if (!split.isUnequal())
      return;
    std::vector<SplitBlock> blocks = unequalBlocks(split.sizes);
    std::vector<std::vector<Run>> ofBlocks(blocks.size());
    int64_t begin = 0;
    for (int64_t r = 0; r < split.count; ++r)
      for (auto [block, piece] : llvm::enumerate(split.pieces(sizeOf(blocks), r))) {
        ofBlocks[block].push_back({begin, begin + piece.size()});
        begin += piece.size();
      }
    rearrange(dim, ofBlocks);
  }

  /// The reverse.
  void toRankOrder(int64_t dim, const AxisSplit &split) {
    if (!split.isUnequal())
      return;
    std::vector<std::vector<Run>> ofRanks;
    for (int64_t r = 0; r < split.count; ++r)
      ofRanks.push_back(split.pieces(sizeOf(unequalBlocks(split.sizes)), r));
    rearrange(dim, ofRanks);
  }

  /// Puts intervals of a dim in this order; they are the whole of it.
  void rearrange(int64_t dim, ArrayRef<std::vector<Run>> order) {
    SmallVector<Run> runs;
    for (const std::vector<Run> &group : order)
      for (const Run &run : group)
        if (!runs.empty() && runs.back().end == run.begin)
          runs.back().end = run.end;
        else if (run.begin < run.end)
          runs.push_back(run);
    if (runs.size() < 2)
      return;
    Type type = value.getType();
    SmallVector<Value> pieces;
    for (const Run &run : runs)
      pieces.push_back(
          emit.slice(value, dim, indices.constant(run.begin), indices.constant(run.end)));
    value = emit.cat(pieces, dim);
    value.setType(cast<RankedTensorType>(type));
  }

  /// Views a dim as (blocks, elements of one block). Nothing to do for one block.
  void openBlocks(int64_t dim, int64_t blocks, Value perBlock) {
    if (blocks == 1)
      return;
    sizes[dim] = builder.getIndexAttr(blocks);
    sizes.insert(sizes.begin() + dim + 1, getAsOpFoldResult(perBlock));
    value = emit.view(value, sizes);
  }

  /// The reverse; the dim is now split as `split` says.
  void closeBlocks(int64_t dim, int64_t blocks, const DimSplit &split) {
    sizes[dim] = getAsOpFoldResult(indices.extent(globals[dim], split));
    if (blocks == 1)
      return;
    sizes.erase(sizes.begin() + dim + 1);
    value = emit.view(value, sizes);
  }

  LocalIndices indices;
  Emitter emit;
  OpBuilder &builder;
  Value value;
  Sizes sizes;
  SmallVector<GlobalSize> globals;
};

} // namespace

Value shardc::emitShard(Localizer &localizer, OpBuilder &builder, Value whole, const Layout &layout,
                        SmallVector<GlobalSize> globals) {
  int64_t rank = cast<RankedTensorType>(whole.getType()).getRank();
  LocalIndices indices = localizer.indices(builder);
  if (globals.empty())
    for (int64_t dim = 0; dim < rank; ++dim)
      globals.push_back(localizer.resultSize(builder, 0, dim));
  Sizes sizes;
  for (const GlobalSize &size : globals)
    sizes.push_back(getAsOpFoldResult(indices.global(size)));
  StepEmitter emitter(localizer, builder, whole, sizes, globals);
  for (int64_t dim = 0; dim < rank; ++dim) {
    DimSplit split = layout.splitOfDim(dim), done;
    for (const AxisSplit &axis : split.axes) { // outer to inner
      done.axes.push_back(axis);
      emitter.slice(dim, done);
    }
  }
  return emitter.get();
}

FailureOr<Value> shardc::emitStep(Localizer &localizer, OpBuilder &builder, RedistributeOp op,
                                  Value local) {
  ArrayRef<int64_t> shape = localizer.globalOperandType(0).getShape();
  const Layout &from = *localizer.operandLayout(0), &to = *localizer.resultLayout(0);
  if (!op.getStep()) {
    if (from.canonicalize(shape) == to.canonicalize(shape)) // one split said in two ways
      return local;
    localizer.refuse() << "no step is chosen; run --dist-plan-redistributions first";
    return failure();
  }
  if (Value moved = moveBehindOps(localizer, builder, op))
    return moved;
  std::string why; // verified with the op
  std::optional<RedistributeStep> step = makeStep(op.getStep()->getValue(), from, to, shape, why);
  if (!step)
    return failure();
  SmallVector<GlobalSize> globals;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    globals.push_back(localizer.operandSize(builder, 0, static_cast<int64_t>(dim)));
  Sizes sizes = localizer.operandSizes(builder, 0);
  if (step->kind == StepKind::Exchange) {
    bool isKnown = llvm::none_of(exchangedDims(*step, shape.size()),
                                 [&](int64_t dim) { return shape[dim] == kDynamic; });
    if (isKnown)
      return emitExchange(builder, op.getLoc(), makeExchange(*step, shape), local, sizes);
    return emitSymbolicExchange(localizer.indices(builder), *step, shape, local, sizes, globals);
  }

  StepEmitter emitter(localizer, builder, local, sizes, globals);
  size_t count = step->axes.size();
  auto before = [&] { return step->before.splitOfDim(step->fromDim); };
  auto after = [&] { return step->after.splitOfDim(step->dim); };
  switch (step->kind) {
  case StepKind::AllReduce:
    emitter.allReduce(step->axes, step->reduction);
    break;
  case StepKind::AllGather:
    emitter.gather(step->fromDim, before(), count);
    break;
  case StepKind::ReduceScatter:
    emitter.reduceScatter(step->dim, after(), count, step->reduction);
    break;
  case StepKind::AllToAll:
    emitter.allToAll(step->fromDim, before(), step->dim, after());
    break;
  case StepKind::Slice:
    emitter.slice(step->dim, after());
    break;
  case StepKind::ZeroFill:
    emitter.zeroFill(step->fromDim, before());
    break;
  case StepKind::ToPartial:
    // For avg, min and max every rank keeps the value.
    if (step->reduction == Reduction::Prod) {
      localizer.refuse() << "a value cannot be turned into factors of a product";
      return failure();
    }
    if (step->reduction == Reduction::Sum)
      emitter.toPartial(step->axes);
    break;
  case StepKind::Exchange:
    break;
  }
  return emitter.get();
}
