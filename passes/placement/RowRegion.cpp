// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/placement/RowRegion.h"

#include "dialects/aten/OwnRows.h"
#include "dialects/dist/Dist.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shardc;

int64_t RowRegion::rows() const { return aten::shapeOf(index).front(); }

bool RowRegion::isProduct(Operation *op) const { return llvm::is_contained(products, op); }

Value shardc::lookedUpBy(Operation *op, Value index) {
  auto isIndex = [&](Value at) { return aten::lookThroughIdentities(at) == index; };
  if (auto select = dyn_cast_or_null<aten::IndexSelectOp>(op))
    return select.getDim() == 0 && isIndex(select.getIndex()) ? select.getSelf() : Value();
  if (auto lookup = dyn_cast_or_null<aten::IndexOp>(op))
    return lookup.getIndicesAt() == ArrayRef<int64_t>(0) && isIndex(lookup.getIndices().front())
               ? lookup.getSelf()
               : Value();
  return nullptr;
}

/// Whether an op that is no product of the region may be part of it. Products by other indices know
/// rows that are not there as little as these do.
static bool mayBeBetween(Operation *op) {
  return op->getNumRegions() == 0 &&
         !isa<aten::IndexedMmOp, aten::IndexedOuterOp, dist::ConstrainOp>(op) &&
         aten::worksRowByRow(op);
}

SmallVector<unsigned> shardc::rowOperands(const RowRegion &region, Operation *op) {
  if (region.isProduct(op))
    return {0};
  SmallVector<unsigned> rows;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type || type.getRank() == 0 || type.getDimSize(0) != region.rows())
      continue;
    std::optional<SmallVector<int64_t>> dims =
        aten::rowDimsOfResults(op, operand.getOperandNumber(), 0);
    if (dims && llvm::all_of(*dims, [](int64_t dim) { return dim == 0; }))
      rows.push_back(operand.getOperandNumber());
  }
  return rows;
}

namespace {

class RegionFinder {
public:
  RegionFinder(func::FuncOp function, ArrayRef<aten::IndexedMmOp> products)
      : block(function.getBody().front()) {
    aten::IndexedMmOp first = products.front();
    region.products.assign(products.begin(), products.end());
    region.index = aten::lookThroughIdentities(first.getIndex());
    region.matrices = aten::shapeOf(first.getMat2()).front();
  }

  std::optional<RowRegion> run() {
    if (!collectReached())
      return std::nullopt;
    keepWhatLeadsToProducts();
    findBorders();
    return std::move(region);
  }

private:
  /// Whether a value is read as rows only, by an op to which it has come from a product.
  bool readsAsRows(Operation *op, ArrayRef<unsigned> rows) const {
    return llvm::all_of(op->getOpOperands(), [&](OpOperand &x) {
      return !reached.contains(x.get()) || llvm::is_contained(rows, x.getOperandNumber());
    });
  }

  /// False where a product reads in another way what comes from one.
  bool collectReached() {
    for (Operation &op : block) {
      bool isProduct = region.isProduct(&op);
      bool isReached = llvm::any_of(op.getOperands(), [&](Value x) { return reached.contains(x); });
      if (!isProduct && (!isReached || !mayBeBetween(&op)))
        continue;
      if (!readsAsRows(&op, rowOperands(region, &op))) {
        if (isProduct)
          return false;
        continue;
      }
      candidates.push_back(&op);
      reached.insert_range(op.getResults());
    }
    return true;
  }

  void keepWhatLeadsToProducts() {
    llvm::DenseSet<Operation *> kept;
    auto leads = [&](OpOperand &use) {
      return kept.contains(use.getOwner()) &&
             llvm::is_contained(rowOperands(region, use.getOwner()), use.getOperandNumber());
    };
    for (Operation *op : llvm::reverse(candidates))
      if (region.isProduct(op) || llvm::any_of(op->getUses(), leads))
        kept.insert(op);
    for (Operation *op : candidates)
      if (kept.contains(op))
        region.ops.insert(op);
  }

  void findBorders() {
    for (Operation *op : region.ops) {
      for (unsigned number : rowOperands(region, op)) {
        Value operand = op->getOperand(number);
        if (!region.ops.contains(operand.getDefiningOp()) &&
            !lookedUpBy(operand.getDefiningOp(), region.index))
          region.inputs.insert(operand);
      }
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(),
                         [&](Operation *user) { return !region.ops.contains(user); }))
          region.outputs.insert(result);
    }
  }

  Block &block;
  RowRegion region;
  llvm::DenseSet<Value> reached; ///< from a product
  SmallVector<Operation *> candidates;
};

} // namespace

std::optional<RowRegion> shardc::findRowRegion(func::FuncOp function,
                                               ArrayRef<aten::IndexedMmOp> products) {
  return RegionFinder(function, products).run();
}

SmallVector<RowRegion> shardc::findRowRegions(func::FuncOp function) {
  llvm::MapVector<std::pair<Value, int64_t>, SmallVector<aten::IndexedMmOp>> groups;
  for (auto product : function.getBody().front().getOps<aten::IndexedMmOp>()) {
    bool isKnown = aten::typeOf(product.getSelf()).hasStaticShape() &&
                   aten::typeOf(product.getMat2()).hasStaticShape();
    Value index = aten::lookThroughIdentities(product.getIndex());
    if (isKnown && aten::typeOf(index).getRank() == 1 && !product->hasAttr(aten::kRowPartsAttr))
      groups[{index, aten::shapeOf(product.getMat2()).front()}].push_back(product);
  }
  SmallVector<RowRegion> regions;
  for (auto &[key, products] : groups)
    if (std::optional<RowRegion> region = findRowRegion(function, products))
      regions.push_back(std::move(*region));
  return regions;
}
