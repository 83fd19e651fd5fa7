// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/placement/FunctionGraph.h"
#include "passes/placement/Passes.h"
#include "passes/placement/RowRegion.h"
#include "passes/placement/core/Place.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/Grouped.h"
#include "dialects/dist/Dist.h"
#include "dialects/interfaces/TensorView.h"

#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <numeric>

namespace shardc {
#define GEN_PASS_DEF_DISPATCHROWS
#include "passes/placement/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// So many ops between a gather of tokens and the product that reads them are looked at.
constexpr unsigned kMostOps = 64;

/// What placement would do with a function as it is.
class Outlook {
public:
  Outlook(const FunctionGraph &function, const PlacedGraph &placed)
      : function(function), placed(placed) {
    for (auto [id, op] : llvm::enumerate(function.operations))
      if (op)
        ids[op] = static_cast<OpId>(id);
  }

  /// The layout in which an op reads an operand; null where it is no part of the graph.
  const Layout *operand(OpOperand &operand) const {
    auto id = ids.find(operand.getOwner());
    if (id == ids.end())
      return nullptr;
    for (auto [i, number] : llvm::enumerate(function.operandNumbers[id->second]))
      if (number == operand.getOperandNumber())
        return &placed.operandLayout(function.graph, id->second, static_cast<unsigned>(i));
    return nullptr;
  }
  /// The layout in which a tensor comes in, or is made.
  const Layout *tensor(Value value) const {
    auto found = function.tensorOf.find(value);
    return found == function.tensorOf.end() ? nullptr : &placed.tensorLayout(found->second);
  }

  /// Bytes of what is gathered over `axis` so that `readers` have all of these rows: of what is
  /// repeated for them, the tensor before that. Nothing where ranks have it.
  std::optional<double> gatheredFor(Value rows, const llvm::SetVector<Operation *> &readers,
                                    unsigned axis) const {
    for (OpOperand &use : rows.getUses())
      if (readers.contains(use.getOwner()) && isGathered(use, axis))
        return bytesOf(beforeViews(rows, axis));
    llvm::SetVector<Operation *> seen;
    if (Operation *op = rows.getDefiningOp())
      seen.insert(op);
    for (size_t i = 0; i < seen.size() && i < kMostOps; ++i)
      for (OpOperand &operand : seen[i]->getOpOperands()) {
        if (isGathered(operand, axis))
          return bytesOf(beforeViews(operand.get(), axis));
        if (Operation *op = operand.get().getDefiningOp())
          seen.insert(op);
      }
    return std::nullopt;
  }

  /// Bytes of what ranks add up over `axis` where a tensor is a partial sum on it: of what becomes
  /// of it before that, the smallest.
  double reducedFor(Value tensor, unsigned axis) const {
    double least = bytesOf(tensor);
    for (unsigned step = 0; step < kMostOps && tensor.hasOneUse(); ++step) {
      OpOperand &use = *tensor.use_begin();
      const Layout *read = operand(use);
      if (!read || !read->placements[axis].isPartial() || use.getOwner()->getNumResults() != 1)
        break;
      tensor = use.getOwner()->getResult(0);
      const Layout *made = this->tensor(tensor);
      if (!made || !made->placements[axis].isPartial())
        break;
      least = std::min(least, bytesOf(tensor));
    }
    return least;
  }

  static double bytesOf(Value tensor) {
    RankedTensorType type = aten::typeOf(tensor);
    return type.hasStaticShape()
               ? double(type.getNumElements()) * type.getElementType().getIntOrFloatBitWidth() / 8
               : 0;
  }

private:
  bool isGathered(OpOperand &operand, unsigned axis) const {
    const Layout *read = this->operand(operand), *made = tensor(operand.get());
    return read && made && made->placements[axis].isShard() && !read->placements[axis].isShard();
  }

  /// The smallest tensor that these elements come from, where only views are between.
  Value beforeViews(Value value, unsigned axis) const {
    Value least = value;
    while (Operation *op = value.getDefiningOp()) {
      if (!viewKindOf(op))
        break;
      value = op->getOperand(0);
      const Layout *made = tensor(value);
      if (made && made->placements[axis].isShard() && bytesOf(value) < bytesOf(least))
        least = value;
    }
    return least;
  }

  const FunctionGraph &function;
  const PlacedGraph &placed;
  llvm::DenseMap<Operation *, OpId> ids;
};

/// How the rows of a region are shared out among the owners of the matrices.
struct Shares {
  int64_t batches = 1; ///< blocks of rows, on ranks along other axes
  int64_t parts = 1;   ///< ranks that own matrices
  int64_t granule = 1; ///< rows that stay on one rank
  unsigned axis = 0;   ///< of the ranks that own matrices
  SmallVector<unsigned> others;

  bool operator==(const Shares &) const = default;
};

/// The axis that shares out the matrices of a product in equal parts, inside of those that share
/// out its rows; nothing where there is no such axis.
std::optional<Shares> sharesOf(const RowRegion &region, aten::IndexedMmOp product,
                               const Outlook &outlook) {
  const Layout *matrices = outlook.operand(product.getMat2Mutable()),
               *rows = outlook.operand(product.getSelfMutable());
  if (!matrices || !rows)
    return std::nullopt;
  DimSplit split = matrices->splitOfDim(0);
  if (split.axes.size() != 1 || !split.axes.front().isPlainChunk() ||
      region.matrices % split.axes.front().count)
    return std::nullopt;
  Shares shares;
  shares.axis = split.axes.front().axis;
  shares.parts = split.axes.front().count;
  for (const AxisSplit &other : rows->splitOfDim(0).axes) {
    if (!other.isPlainChunk() || other.axis >= shares.axis)
      return std::nullopt;
    shares.batches *= other.count;
    shares.others.push_back(other.axis);
  }
  bool fits = shares.parts > 1 && region.rows() % shares.batches == 0;
  return fits ? std::optional(shares) : std::nullopt;
}

/// Those of all products, where each rank would gather rows of all, and to send each row to its
/// owner costs less.
std::optional<Shares> sharesOf(RowRegion &region, const Outlook &outlook) {
  std::optional<Shares> shares;
  for (aten::IndexedMmOp &product : region.products) {
    std::optional<Shares> own = sharesOf(region, product, outlook);
    if (!own || (shares && *shares != *own))
      return std::nullopt;
    shares = own;
  }
  double gathered = 0, sent = 0;
  for (Value input : region.inputs) {
    double bytes = Outlook::bytesOf(input);
    sent += bytes / double(shares->parts);
    std::optional<double> whole = outlook.gatheredFor(input, region.ops, shares->axis);
    if (!whole)
      continue;
    gathered += *whole;
    // The rows of a token are on the rank that has the token.
    double repeated = *whole > 0 ? bytes / *whole : 1;
    if (repeated >= 1 && repeated == std::floor(repeated))
      shares->granule = std::lcm(shares->granule, static_cast<int64_t>(repeated));
    if (const Layout *made = outlook.tensor(input))
      for (const AxisSplit &split : made->splitOfDim(0).axes)
        shares->granule = std::lcm(shares->granule, split.granule);
  }
  if (gathered == 0)
    return std::nullopt;
  for (Value output : region.outputs) {
    sent += Outlook::bytesOf(output) / double(shares->parts);
    gathered += outlook.reducedFor(output, shares->axis);
  }
  int64_t block = region.rows() / shares->batches;
  // Blocks of rows that cannot be cut evenly have no layout that says so.
  bool fits = block % shares->granule == 0 &&
              (shares->batches == 1 || block % (shares->parts * shares->granule) == 0);
  return fits && sent < gathered ? shares : std::nullopt;
}

/// The region on rows that are with the owners of their matrices.
class RegionMover {
public:
  RegionMover(RowRegion &region, Shares shares)
      : region(region), shares(shares), builder(region.ops.front()),
        emit(builder, region.ops.front()->getLoc()), i64(builder.getI64Type()),
        moved(region.rows() * shares.parts) {}

  /// False, with nothing that is used changed, where an op of the region cannot have another number
  /// of rows.
  bool run() {
    Value index = emit.cast(region.index, i64);
    owner = aten::DivOp::create(builder, emit.getLoc(), index,
                                emit.integer(region.matrices / shares.parts, i64),
                                builder.getStringAttr("floor"));
    // Rows that are not there name no matrix.
    Value one = emit.integer(1, i64);
    ownIndex = emit.sub(dispatch(emit.add(index, one)), one);
    isThere = emit.binary<aten::GeOp>(ownIndex, emit.integer(0, i64));
    bool fits = llvm::all_of(region.ops, [&](Operation *op) { return clone(op); });
    if (!fits) {
      for (Operation *op : llvm::reverse(copies))
        op->erase();
      return false;
    }
    for (Value output : region.outputs) {
      builder.setInsertionPointAfterValue(values[output]);
      Value back = aten::CollectRowsOp::create(builder, output.getLoc(), values[output], owner,
                                               shares.batches, shares.parts, shares.granule);
      output.replaceUsesWithIf(back, [&](OpOperand &use) {
        return !region.ops.contains(use.getOwner()) && use.getOwner() != back.getDefiningOp();
      });
    }
    for (Operation *op : llvm::reverse(region.ops))
      op->erase();
    return true;
  }

private:
  Value dispatch(Value rows) {
    Value result = aten::DispatchRowsOp::create(builder, rows.getLoc(), rows, owner, shares.batches,
                                                shares.parts, shares.granule);
    return result;
  }

  /// What an operand with the rows has become.
  Value movedRows(Value rows) {
    Value &known = values[rows];
    if (known)
      return known;
    Value table = lookedUpBy(rows.getDefiningOp(), region.index);
    if (!table)
      return known = dispatch(rows);
    Value at = emit.binary<aten::MaximumOp>(ownIndex, emit.integer(0, i64));
    Value found = aten::IndexSelectOp::create(builder, rows.getLoc(), table, 0, at);
    return known = whereThere(found, aten::typeOf(found).getRank());
  }

  /// The tensor, for results of so many dims, and zeros for rows that are not there: its gradient
  /// has no part of them, where derivatives may be infinite.
  Value whereThere(Value tensor, int64_t rank) {
    Value mask = isThere;
    for (int64_t dim = 1; dim < rank; ++dim)
      mask = emit.unsqueeze(mask, dim);
    return emit.where(mask, tensor, emit.scalar(0, aten::elementTypeOf(tensor)));
  }

  /// Whether a tensor that is the same for all rows may have a gradient.
  static bool mayLearn(Value tensor) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!type || !isa<FloatType>(type.getElementType()))
      return false;
    while (Operation *op = tensor.getDefiningOp()) {
      if (isa<aten::ConstantOp>(op))
        return false;
      if (!viewKindOf(op))
        break;
      tensor = op->getOperand(0);
    }
    return true;
  }

  /// What other operands of an op are for moved rows; false where that cannot be said.
  bool moveOthers(Operation *op, ArrayRef<unsigned> rows, SmallVectorImpl<Value> &operands) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    bool isElementwise = kernel && kernel.getKernelForm() == KernelForm::Elementwise;
    for (auto [number, operand] : llvm::enumerate(operands)) {
      if (llvm::is_contained(rows, number) || !mayLearn(operand))
        continue;
      if (!isElementwise)
        return false;
      operand = whereThere(operand, aten::typeOf(op->getResult(0)).getRank());
    }
    return true;
  }

  bool clone(Operation *op) {
    builder.setInsertionPoint(op);
    SmallVector<Value> operands(op->getOperands());
    const bool isProduct = region.isProduct(op);
    SmallVector<unsigned> rows = rowOperands(region, op);
    if (!isProduct && !moveOthers(op, rows, operands))
      return false;
    for (unsigned number : rows)
      operands[number] = movedRows(operands[number]);
    if (isProduct)
      operands[2] = ownIndex;
    Operation *copy = builder.clone(*op);
    copies.push_back(copy);
    copy->setOperands(operands);
    for (auto [old, result] : llvm::zip_equal(op->getResults(), copy->getResults())) {
      auto type = cast<RankedTensorType>(old.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape.front() = moved;
      result.setType(RankedTensorType::get(shape, type.getElementType(), type.getEncoding()));
      values[old] = result;
    }
    if (isProduct) {
      cast<aten::IndexedMmOp>(copy).setSorted(false);
      copy->setAttr(aten::kRowPartsAttr,
                    builder.getDenseI64ArrayAttr({shares.batches, shares.parts}));
    }
    if (auto view = dyn_cast<aten::ViewOp>(copy))
      setRows(view);
    else if (auto expand = dyn_cast<aten::ExpandOp>(copy))
      setRows(expand);
    auto inferred = dyn_cast<InferTypeOpInterface>(copy);
    return inferred && succeeded(refines(inferred, copy));
  }

  /// Sizes that the op itself says.
  template <typename Op> void setRows(Op op) {
    SmallVector<int64_t> sizes(op.getStaticSize());
    if (!sizes.empty() && sizes.front() == region.rows())
      sizes.front() = moved;
    op.setStaticSize(sizes);
  }

  static LogicalResult refines(InferTypeOpInterface inferred, Operation *op) {
    SmallVector<Type> types;
    if (failed(inferred.inferReturnTypes(op->getContext(), std::nullopt, op->getOperands(),
                                         op->getAttrDictionary(), op->getPropertiesStorage(),
                                         op->getRegions(), types)))
      return failure();
    return success(types == llvm::to_vector(op->getResultTypes()));
  }

  RowRegion &region;
  Shares shares;
  OpBuilder builder;
  Emitter emit;
  Type i64;
  int64_t moved; ///< rows on all parts
  Value owner, ownIndex;
  Value isThere; ///< for each row that a part has room for
  llvm::DenseMap<Value, Value> values;
  SmallVector<Operation *> copies;
};

class DispatchRowsPass : public shardc::impl::DispatchRowsBase<DispatchRowsPass> {
public:
  using DispatchRowsBase::DispatchRowsBase;

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || !function.getBody().hasOneBlock())
      return;
    SmallVector<RowRegion> regions = findRowRegions(function);
    if (regions.empty())
      return;
    FailureOr<Mesh> mesh = requireMesh(function);
    if (failed(mesh))
      return signalPassFailure();
    FailureOr<FunctionGraph> source = buildFunctionGraph(function, *mesh);
    if (failed(source))
      return signalPassFailure();
    PlacedGraph placed = placeGraph(source->graph);
    if (!placed.errors.empty())
      return; // placement tells what is wrong
    Outlook outlook(*source, placed);
    SmallVector<std::pair<SmallVector<aten::IndexedMmOp>, Shares>> found;
    for (RowRegion &region : regions)
      if (std::optional<Shares> shares = sharesOf(region, outlook))
        found.emplace_back(region.products, *shares);
    // What is moved for one region may be what another reads: each is looked at as it is then.
    for (auto &[products, shares] : found)
      if (std::optional<RowRegion> region = findRowRegion(function, products))
        numRegions += RegionMover(*region, shares).run();
    if (!found.empty())
      aten::eraseUnused(function);
  }
};

} // namespace
