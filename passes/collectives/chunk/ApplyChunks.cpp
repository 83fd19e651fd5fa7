// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/ApplyChunks.h"

#include "dialects/aten/Emitter.h"
#include "passes/collectives/analysis/Transfers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

namespace {

/// The type of one of some pieces.
RankedTensorType pieceType(RankedTensorType whole, const RowBlocks &rows, uint32_t pieces) {
  SmallVector<int64_t> shape(whole.getShape());
  shape[rows.dim] /= pieces;
  return whole.clone(shape);
}

class Applier {
public:
  Applier(func::FuncOp function, const ProgramGraph &program, const FunctionRules &rules,
          ArrayRef<ChunkChoice> choices)
      : program(program), rules(rules), builder(function.getContext()),
        block(&function.getBody().front()), end(function.getBody().front().getTerminator()) {
    for (const ChunkChoice &choice : choices)
      for (NodeId node : choice.region->nodes)
        replaced.insert(program.opOf[node]);
    for (NodeId node = 0; node != program.graph.numNodes(); ++node)
      lastNodeOf[program.opOf[node]] = node;
  }

  void run(ArrayRef<ChunkStep> steps, function_ref<void(Operation *)> erased) {
    builder.setInsertionPoint(end);
    for (const ChunkStep &step : steps)
      switch (step.what) {
      case ChunkStep::What::Whole:
        moveWhole(step.node);
        break;
      case ChunkStep::What::Cut:
        cutsOf[{step.choice, step.value, step.piece}] = cut(step);
        break;
      case ChunkStep::What::Piece:
        addPiece(step);
        break;
      case ChunkStep::What::Join:
        join(step);
        break;
      }
    for (Operation *op : llvm::reverse(replaced)) {
      erased(op);
      op->dropAllUses();
      op->erase();
    }
  }

private:
  const Graph &graph() const { return program.graph; }

  /// A wait for several collectives stands where the last has started; the wait of a synchronous
  /// one is part of it.
  void moveWhole(NodeId node) {
    Operation *op = program.opOf[node];
    bool isPart = graph().classOf(node) == NodeClass::Wait && !isa<WaitOp>(op);
    if (!isPart && (!isa<WaitOp>(op) || lastNodeOf[op] == node))
      op->moveBefore(end);
  }

  Value wholeOf(Value value) const {
    Value joined = joinedOf.lookup(value);
    return joined ? joined : value;
  }

  static SmallVector<OpFoldResult> mixed(Builder &builder, ArrayRef<int64_t> sizes) {
    return getAsIndexOpFoldResult(builder.getContext(), sizes);
  }

  /// The dim as blocks, and one block's rows.
  static SmallVector<int64_t> inBlocks(ArrayRef<int64_t> shape, const RowBlocks &rows) {
    SmallVector<int64_t> blocks(shape);
    auto outer = static_cast<int64_t>(rows.outer);
    blocks[rows.dim] /= outer;
    blocks.insert(blocks.begin() + rows.dim, outer);
    return blocks;
  }

  /// Which block, on this rank, is piece `piece` of a ring, or which piece is block `piece`: both
  /// are (position - piece) mod size.
  Value inRing(const ChunkStep &step, uint32_t piece) {
    const ChunkRegion &region = *step.choice->region;
    Value &index = indexOf[{region.ring->group, piece}];
    if (index)
      return index;
    auto collective =
        llvm::find_if(region.nodes, [&](NodeId node) { return graph().isCollective(node); });
    auto op = cast<CollectiveOpInterface>(program.opOf[*collective]);
    Value own = piece == 0 ? Value() : inRing(step, 0);
    OpBuilder::InsertionGuard guard(builder);
    if (lastIndex)
      builder.setInsertionPointAfter(lastIndex);
    else
      builder.setInsertionPointToStart(block);
    if (piece == 0) {
      index = AxisIndexOp::create(builder, op.getLoc(), op.getGroup());
    } else {
      auto size = static_cast<int64_t>(region.ring->size);
      auto constant = [&](int64_t value) {
        return arith::ConstantIndexOp::create(builder, op.getLoc(), value);
      };
      Value ahead = arith::AddIOp::create(builder, op.getLoc(), own, constant(size - piece));
      index = arith::RemUIOp::create(builder, op.getLoc(), ahead, constant(size));
    }
    lastIndex = index.getDefiningOp();
    return index;
  }

  /// The rows of a piece that a ring takes, out of a tensor whose dim has been made blocks of them.
  Value select(Value blocks, int64_t dim, Value index, Location loc) {
    return aten::SelectOp::create(builder, loc, blocks, dim, ShapedType::kDynamic, index);
  }

  /// Sizes in which the dim `rows.dim` is split into `outer` times what is left of it; the middle
  /// of three is the blocks of a ring.
  static SmallVector<int64_t> inPieces(RankedTensorType whole, const RowBlocks &rows,
                                       uint32_t pieces) {
    SmallVector<int64_t> sizes(pieceType(whole, rows, pieces).getShape());
    auto outer = static_cast<int64_t>(rows.outer);
    sizes[rows.dim] /= outer;
    sizes.insert(sizes.begin() + rows.dim, {outer, static_cast<int64_t>(pieces)});
    return sizes;
  }

  Value cutInRing(const ChunkStep &step, Value whole, const RowBlocks &rows, Emitter &emit) {
    auto type = cast<RankedTensorType>(whole.getType());
    uint32_t pieces = step.choice->pieces;
    Value blocks = emit.view(whole, mixed(builder, inPieces(type, rows, pieces)));
    Value piece = select(blocks, rows.dim + 1, inRing(step, step.piece), emit.getLoc());
    return emit.view(piece, mixed(builder, pieceType(type, rows, pieces).getShape()));
  }

  Value joinRing(const ChunkStep &step, ArrayRef<Value> pieces, RankedTensorType type,
                 const RowBlocks &rows, Emitter &emit) {
    uint32_t size = step.choice->pieces;
    SmallVector<int64_t> sizes = inPieces(type, rows, size);
    sizes[rows.dim + 1] = 1;
    auto asBlocks = [&](ArrayRef<Value> parts) {
      SmallVector<Value> blocks;
      for (Value part : parts)
        blocks.push_back(emit.view(part, mixed(builder, sizes)));
      return emit.cat(blocks, rows.dim + 1);
    };
    Value inTurn = asBlocks(pieces);
    SmallVector<Value> inOrder;
    for (uint32_t block = 0; block != size; ++block)
      inOrder.push_back(select(inTurn, rows.dim + 1, inRing(step, block), emit.getLoc()));
    return emit.view(asBlocks(inOrder), mixed(builder, type.getShape()));
  }

  /// Sends a tensor to the next rank; what the rank before sends.
  Value hop(Operation *collective, Value sent) {
    GroupAttrInterface group = cast<CollectiveOpInterface>(collective).getGroup();
    int64_t size = group.getGroupSize();
    SmallVector<int64_t> pairs;
    for (int64_t position = 0; position != size; ++position)
      pairs.append({position, (position + 1) % size});
    return PermuteOp::create(builder, collective->getLoc(), sent.getType(), sent, ValueRange(),
                             group, builder.getDenseI64ArrayAttr(pairs),
                             builder.getDenseI64ArrayAttr({-1}), ArrayAttr())
        .getResult(0);
  }

  void addRingPiece(const ChunkStep &step, Operation *op) {
    Value operand = op->getOperand(0), result = op->getResult(0);
    if (isa<AllGatherOp>(op)) {
      setPiece(result, step,
               step.piece == 0 ? wholeOf(operand) : hop(op, piecesOf.at(result)[step.piece - 1]));
    } else if (step.piece != 0) {
      Value part = piecesOf.at(operand)[step.piece];
      if (Value before = arrived.lookup(op))
        part = Emitter(builder, op->getLoc()).add(before, part);
      arrived[op] = hop(op, part);
    }
  }

  void setPiece(Value value, const ChunkStep &step, Value piece) {
    SmallVector<Value> &list = piecesOf[value];
    list.resize(step.choice->pieces);
    list[step.piece] = piece;
  }

  Value cut(const ChunkStep &step) {
    const RowBlocks &rows = step.choice->region->cuts.at(step.value).rows;
    Value whole = wholeOf(rules.valueOf(step.value));
    auto type = cast<RankedTensorType>(whole.getType());
    Emitter emit(builder, program.opOf[step.node]->getLoc());
    if (step.choice->region->ring)
      return cutInRing(step, whole, rows, emit);
    auto dim = static_cast<int64_t>(rows.dim);
    int64_t block = type.getDimSize(dim) / static_cast<int64_t>(rows.outer);
    int64_t length = block / step.choice->pieces;
    OpFoldResult from = builder.getIndexAttr(step.piece * length);
    OpFoldResult to = builder.getIndexAttr((step.piece + 1) * length);
    if (rows.outer == 1)
      return emit.slice(whole, dim, from, to);
    Value blocks = emit.view(whole, mixed(builder, inBlocks(type.getShape(), rows)));
    Value piece = emit.slice(blocks, dim + 1, from, to);
    return emit.view(piece, mixed(builder, pieceType(type, rows, step.choice->pieces).getShape()));
  }

  void join(const ChunkStep &step) {
    const RowBlocks &rows = step.choice->region->made.at(step.value);
    Value value = rules.valueOf(step.value);
    auto type = cast<RankedTensorType>(value.getType());
    Emitter emit(builder, value.getLoc());
    const std::optional<ChunkRing> &ring = step.choice->region->ring;
    Value whole;
    SmallVector<Value> pieces;
    if (ring && ring->sums.contains(step.value)) {
      Operation *op = value.getDefiningOp();
      whole = emit.add(arrived.at(op), piecesOf.at(op->getOperand(0)).front());
    } else if (pieces = piecesOf.at(value); ring) {
      whole = joinRing(step, pieces, type, rows, emit);
    } else if (rows.outer == 1) {
      whole = emit.cat(pieces, rows.dim);
    } else {
      for (Value &piece : pieces)
        piece = emit.view(
            piece,
            mixed(builder, inBlocks(cast<RankedTensorType>(piece.getType()).getShape(), rows)));
      whole = emit.view(emit.cat(pieces, rows.dim + 1), mixed(builder, type.getShape()));
    }
    joinedOf[value] = whole;
    value.replaceUsesWithIf(whole,
                            [&](OpOperand &use) { return !replaced.contains(use.getOwner()); });
  }

  Value operandOf(Value operand, ValueId id, const ChunkStep &step) {
    const ChunkRegion &region = *step.choice->region;
    if (region.made.contains(id))
      return piecesOf.at(operand)[step.piece];
    if (region.cuts.contains(id))
      return cutsOf.at({step.choice, id, step.piece});
    return wholeOf(operand);
  }

  void addPiece(const ChunkStep &step) {
    if (graph().classOf(step.node) == NodeClass::Wait)
      return; // part of its collective
    Operation *op = program.opOf[step.node];
    const ChunkRegion &region = *step.choice->region;
    if (region.ring && isa<CollectiveOpInterface>(op))
      return addRingPiece(step, op);
    uint32_t pieces = step.choice->pieces;
    IRMapping mapping;
    for (auto [operand, id] : llvm::zip_equal(op->getOperands(), graph().operands(step.node)))
      mapping.map(operand, operandOf(operand, id, step));
    SmallVector<RankedTensorType> types;
    for (auto [result, id] : llvm::zip_equal(op->getResults(), graph().results(step.node)))
      types.push_back(
          pieceType(cast<RankedTensorType>(result.getType()), region.made.at(id), pieces));
    Operation *piece = nullptr;
    if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
      Transfer transfer = getTransfer(collective, 0);
      transfer.tensor = mapping.lookup(transfer.tensor);
      transfer.result = types.front();
      // Shares are equal, and so are their pieces.
      transfer.concatExtents.clear();
      transfer.splitExtents.clear();
      piece = buildCollective(builder, op->getLoc(), collective, collective.getGroup(), transfer);
    } else if (isa<aten::ViewOp>(op)) {
      Emitter emit(builder, op->getLoc());
      Value view =
          emit.view(mapping.lookup(op->getOperand(0)), mixed(builder, types.front().getShape()));
      return setPiece(op->getResult(0), step, view);
    } else {
      piece = builder.clone(*op, mapping);
      for (auto [result, type] : llvm::zip_equal(piece->getResults(), types))
        result.setType(type);
    }
    for (auto [result, of] : llvm::zip_equal(op->getResults(), piece->getResults()))
      setPiece(result, step, of);
  }

  const ProgramGraph &program;
  const FunctionRules &rules;
  OpBuilder builder;
  Block *block;
  Operation *end;
  /// Positions in rings and what is made of them come first in the function.
  Operation *lastIndex = nullptr;
  llvm::SetVector<Operation *> replaced;
  llvm::DenseMap<Operation *, NodeId> lastNodeOf;
  llvm::DenseMap<Value, SmallVector<Value>> piecesOf;
  llvm::DenseMap<Value, Value> joinedOf;
  std::map<std::tuple<const ChunkChoice *, ValueId, uint32_t>, Value> cutsOf;
  std::map<std::pair<GroupId, uint32_t>, Value> indexOf;
  /// By reduce-scatter in a ring: what the rank before sent last.
  llvm::DenseMap<Operation *, Value> arrived;
};

} // namespace

void shardc::applyChunks(func::FuncOp function, const ProgramGraph &program,
                         const FunctionRules &rules, ArrayRef<ChunkChoice> choices,
                         function_ref<void(Operation *)> erased) {
  Applier(function, program, rules, choices).run(orderChunks(program.graph, choices), erased);
}
