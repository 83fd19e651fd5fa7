// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/placement/FunctionGraph.h"
#include "passes/placement/Passes.h"
#include "passes/placement/core/Place.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/OwnRows.h"
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

/// Ops between a gather of tokens and the product that reads them: more are not looked at.
constexpr unsigned kMostSteps = 64;

/// Products whose rows name matrices by one index, and the ops between them, which work row by row.
struct RowRegion {
  Value index; ///< of all products
  SmallVector<aten::IndexedMmOp> products;
  llvm::SetVector<Operation *> ops; ///< in the order of the block, products among them
  /// Rows that ops of the region read and others make.
  llvm::SetVector<Value> inputs;
  /// Rows that ops of the region make and others read.
  llvm::SetVector<Value> outputs;
};

int64_t rowsOf(const RowRegion &region) { return aten::shapeOf(region.index).front(); }

/// The lookup of a row for each index, of a tensor that has one for each matrix (biases).
Value lookedUpBy(Operation *op, Value index) {
  auto isIndex = [&](Value at) { return aten::lookThroughIdentities(at) == index; };
  if (auto select = dyn_cast_or_null<aten::IndexSelectOp>(op))
    return select.getDim() == 0 && isIndex(select.getIndex()) ? select.getSelf() : Value();
  if (auto lookup = dyn_cast_or_null<aten::IndexOp>(op))
    return lookup.getIndicesAt() == ArrayRef<int64_t>(0) && isIndex(lookup.getIndices().front())
               ? lookup.getSelf()
               : Value();
  return nullptr;
}

/// The operands that have the rows of an op along their first dim, as its results do; nothing where
/// the op does not work row by row.
std::optional<SmallVector<unsigned>> rowOperands(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  bool isRowByRow =
      isMemoryEffectFree(op) && !isa<aten::TrilOp, aten::TriuOp>(op) &&
      (viewKindOf(op) || (kernel && llvm::is_contained({KernelForm::Elementwise, KernelForm::Rows,
                                                        KernelForm::Scan, KernelForm::Product},
                                                       kernel.getKernelForm())));
  if (!isRowByRow)
    return std::nullopt;
  SmallVector<unsigned> rows;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type || type.getRank() == 0)
      continue;
    std::optional<SmallVector<int64_t>> dims =
        aten::rowDimsOfResults(op, operand.getOperandNumber(), 0);
    if (dims && llvm::all_of(*dims, [](int64_t dim) { return dim == 0; }))
      rows.push_back(operand.getOperandNumber());
  }
  return rows;
}

/// The products by `index`, and what leads from one to the next.
RowRegion findRegion(func::FuncOp function, Value index, ArrayRef<aten::IndexedMmOp> products) {
  RowRegion region;
  region.index = index;
  region.products.assign(products.begin(), products.end());
  Block &block = function.getBody().front();
  llvm::DenseSet<Value> reached; // from a product
  SmallVector<Operation *> candidates;
  for (Operation &op : block) {
    bool isProduct = llvm::is_contained(products, &op);
    if (!isProduct) {
      if (llvm::none_of(op.getOperands(), [&](Value x) { return reached.contains(x); }))
        continue;
      std::optional<SmallVector<unsigned>> rows = rowOperands(&op);
      bool goesOn =
          rows && !isa<dist::ConstrainOp>(op) &&
          llvm::all_of(op.getOpOperands(), [&](OpOperand &x) {
            return !reached.contains(x.get()) || llvm::is_contained(*rows, x.getOperandNumber());
          });
      if (!goesOn)
        continue;
    }
    candidates.push_back(&op);
    reached.insert_range(op.getResults());
  }
  llvm::DenseSet<Operation *> kept;
  for (Operation *op : llvm::reverse(candidates)) {
    bool leads = llvm::is_contained(products, op) ||
                 llvm::any_of(op->getUsers(), [&](Operation *user) { return kept.contains(user); });
    if (leads)
      kept.insert(op);
  }
  for (Operation *op : candidates)
    if (kept.contains(op))
      region.ops.insert(op);
  for (Operation *op : region.ops) {
    SmallVector<unsigned> rows = {0};
    if (!isa<aten::IndexedMmOp>(op))
      rows = *rowOperands(op);
    for (unsigned number : rows) {
      Value operand = op->getOperand(number);
      if (!region.ops.contains(operand.getDefiningOp()) &&
          !lookedUpBy(operand.getDefiningOp(), index))
        region.inputs.insert(operand);
    }
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !region.ops.contains(user); }))
        region.outputs.insert(result);
  }
  return region;
}

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
    for (size_t i = 0; i < seen.size() && i < kMostSteps; ++i)
      for (OpOperand &operand : seen[i]->getOpOperands()) {
        if (isGathered(operand, axis))
          return bytesOf(beforeViews(operand.get(), axis));
        if (Operation *op = operand.get().getDefiningOp())
          seen.insert(op);
      }
    return std::nullopt;
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
};

/// The axis that shares out the matrices of all products in equal parts, where each of its ranks
/// would gather the rows of all; nothing where none is, or a gather costs less.
std::optional<Shares> sharesOf(RowRegion &region, const Outlook &outlook, const Mesh &mesh) {
  std::optional<unsigned> axis;
  Shares shares;
  for (aten::IndexedMmOp &product : region.products) {
    const Layout *matrices = outlook.operand(product.getMat2Mutable()),
                 *rows = outlook.operand(product.getSelfMutable());
    int64_t count = aten::shapeOf(product.getMat2()).front();
    if (!matrices || !rows)
      return std::nullopt;
    DimSplit split = matrices->splitOfDim(0), ofRows = rows->splitOfDim(0);
    if (split.axes.size() != 1 || !split.axes.front().isPlainChunk() ||
        count % split.axes.front().count)
      return std::nullopt;
    int64_t batches = 1;
    for (const AxisSplit &other : ofRows.axes) {
      if (!other.isPlainChunk() || other.axis == split.axes.front().axis)
        return std::nullopt;
      batches *= other.count;
    }
    bool isSame = !axis || (*axis == split.axes.front().axis && shares.batches == batches);
    if (!isSame)
      return std::nullopt;
    axis = split.axes.front().axis;
    shares = {batches, split.axes.front().count};
  }
  if (!axis || shares.parts < 2 || rowsOf(region) % shares.batches)
    return std::nullopt;
  for (Value input : region.inputs) {
    std::optional<double> gathered = outlook.gatheredFor(input, region.ops, *axis);
    if (!gathered || Outlook::bytesOf(input) / double(shares.parts) >= *gathered)
      continue;
    // The rows of a token are on the rank that has the token.
    double repeated = *gathered > 0 ? Outlook::bytesOf(input) / *gathered : 1;
    if (repeated >= 1 && repeated == std::floor(repeated))
      shares.granule = static_cast<int64_t>(repeated);
    if (const Layout *made = outlook.tensor(input))
      for (const AxisSplit &split : made->splitOfDim(0).axes)
        shares.granule = std::lcm(shares.granule, split.granule);
    bool fits = rowsOf(region) % (shares.batches * shares.granule) == 0;
    return fits ? std::optional(shares) : std::nullopt;
  }
  return std::nullopt;
}

/// The region on rows that are with the owners of their matrices.
class RegionMover {
public:
  RegionMover(RowRegion &region, Shares shares)
      : region(region), shares(shares), builder(region.ops.front()),
        emit(builder, region.ops.front()->getLoc()), i64(builder.getI64Type()),
        moved(rowsOf(region) * shares.parts) {}

  /// False, with nothing that is used changed, where an op of the region cannot have another number
  /// of rows.
  bool run() {
    int64_t matrices = aten::shapeOf(region.products.front().getMat2()).front();
    Value index = emit.cast(region.index, i64);
    owner = aten::DivOp::create(builder, emit.getLoc(), index,
                                emit.integer(matrices / shares.parts, i64),
                                builder.getStringAttr("floor"));
    // Rows that are not there name no matrix.
    Value one = emit.integer(1, i64);
    ownIndex = emit.sub(dispatch(emit.add(index, one)), one);
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
    return known = aten::IndexSelectOp::create(builder, rows.getLoc(), table, 0, at);
  }

  bool clone(Operation *op) {
    builder.setInsertionPoint(op);
    SmallVector<Value> operands(op->getOperands());
    auto product = dyn_cast<aten::IndexedMmOp>(op);
    SmallVector<unsigned> rows = product ? SmallVector<unsigned>{0} : *rowOperands(op);
    for (unsigned number : rows)
      operands[number] = movedRows(operands[number]);
    if (product)
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
    if (auto own = dyn_cast<aten::IndexedMmOp>(copy)) {
      own.setSorted(false);
      own->setAttr(aten::kRowPartsAttr,
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
    if (!sizes.empty() && sizes.front() == rowsOf(region))
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
    llvm::MapVector<Value, SmallVector<aten::IndexedMmOp>> products;
    for (auto product : function.getBody().front().getOps<aten::IndexedMmOp>())
      if (aten::typeOf(product.getSelf()).hasStaticShape() &&
          aten::typeOf(product.getMat2()).hasStaticShape() &&
          !product->hasAttr(aten::kRowPartsAttr))
        products[aten::lookThroughIdentities(product.getIndex())].push_back(product);
    if (products.empty())
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
    SmallVector<std::pair<RowRegion, Shares>> found;
    for (auto &[index, own] : products) {
      if (aten::typeOf(index).getRank() != 1)
        continue;
      RowRegion region = findRegion(function, index, own);
      if (std::optional<Shares> shares = sharesOf(region, outlook, *mesh))
        found.emplace_back(std::move(region), *shares);
    }
    for (auto &[region, shares] : found)
      numRegions += RegionMover(region, shares).run();
    if (!found.empty())
      aten::eraseUnused(function);
  }
};

} // namespace
