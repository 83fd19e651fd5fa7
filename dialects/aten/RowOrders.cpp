// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/RowOrders.h"

#include "dialects/aten/DimOrigins.h"
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/OwnRows.h"
#include "dialects/aten/Sorting.h"
#include "dialects/aten/Writing.h"
#include "dialects/interfaces/IdentityOpInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// More ops than these in between are left alone.
constexpr size_t kMostOps = 4096;

/// A lookup of rows along the first dim, at positions in one dim.
struct RowLookup {
  Operation *op = nullptr;
  Value rows, at;

  static std::optional<RowLookup> of(Operation *op) {
    RowLookup found;
    found.op = op;
    if (auto index = dyn_cast_or_null<IndexOp>(op);
        index && index.getIndicesAt() == ArrayRef<int64_t>(0)) {
      found.rows = index.getSelf();
      found.at = index.getIndices().front();
    } else if (auto select = dyn_cast_or_null<IndexSelectOp>(op); select && select.getDim() == 0) {
      found.rows = select.getSelf();
      found.at = select.getIndex();
    } else {
      return std::nullopt;
    }
    return shapeOf(found.at).size() == 1 ? std::optional(found) : std::nullopt;
  }
};

/// The sort of all elements of a vector whose positions these are.
SortOp sortOf(Value positions) {
  auto sort = positions.getDefiningOp<SortOp>();
  bool isWhole = sort && positions == sort.getIndices() && shapeOf(positions).size() == 1 &&
                 (!sort.getCount() || sort.getCount() == shapeOf(sort.getSelf()).front());
  return isWhole ? sort : SortOp();
}

/// Of numbers of which each differs from the others.
bool isRange(Value x) {
  auto range = x.getDefiningOp<ArangeOp>();
  Type type = elementTypeOf(x);
  return range && (type.isSignlessInteger(32) || type.isSignlessInteger(64)) &&
         range.getStaticStart() == 0 && !range.getStart() && range.getStep() == 1;
}

/// The permutation of which this is the inverse; null where none is known.
Value inverseOf(Value positions);

bool isPermutation(Value positions) { return sortOf(positions) || inverseOf(positions); }

Value inverseOf(Value positions) {
  Value of;
  if (SortOp sort = sortOf(positions); sort && !sort.getDescending()) {
    of = lookThroughIdentities(sort.getSelf());
  } else if (auto write = positions.getDefiningOp<IndexWriteOp>()) {
    ArrayRef<int64_t> size = shapeOf(positions);
    Value values = lookThroughIdentities(write.getValues());
    if (write.getIndicesAt() != ArrayRef<int64_t>(0) || size.size() != 1 ||
        ShapedType::isDynamic(size.front()) || shapeOf(values) != size || !isRange(values))
      return nullptr;
    of = lookThroughIdentities(write.getIndices().front());
    if (shapeOf(of) != size)
      return nullptr;
  }
  // A permutation that is sorted twice is what it was.
  return of && (sortOf(of) || of.getDefiningOp<IndexWriteOp>()) && isPermutation(of) ? of : Value();
}

/// What tensors are with their rows taken at the positions of one permutation.
class RowTaker {
public:
  RowTaker(Operation *root, Value at) : root(root), at(lookThroughIdentities(at)) {}

  /// Whether `rows[at]` along `dim` follows from tensors that are in no such order.
  bool canTake(Value rows, int64_t dim) { return reach(rows, dim) && isUsedHereOnly(); }

  Value take(OpBuilder &builder, Value rows, int64_t dim) {
    if (Value taken = values.lookup({rows, dim}))
      return taken;
    Value taken = build(builder, rows, dim);
    return values[{rows, dim}] = taken;
  }

private:
  using Rows = std::pair<Value, int64_t>;
  /// The dims that have the rows of one result: none for an operand that is the same for all.
  using OperandDims = SmallVector<std::optional<int64_t>>;

  bool undoes(Value positions) const {
    positions = lookThroughIdentities(positions);
    return inverseOf(positions) == at || inverseOf(at) == positions;
  }

  /// What ends the search: rows that are known in the order that is asked for.
  Value known(Value rows) const {
    if (auto lookup = RowLookup::of(rows.getDefiningOp());
        lookup && undoes(lookup->at) && lookup->rows.getType() == rows.getType() &&
        hasAllRows(*lookup))
      return lookup->rows;
    if (SortOp sort = sortOf(at); sort && sort.getSelf() == rows)
      return sort.getValues();
    if (auto sort = rows.getDefiningOp<SortOp>();
        sort && rows == sort.getValues() && sortOf(sort.getIndices()) && undoes(sort.getIndices()))
      return sort.getSelf();
    return nullptr;
  }

  /// Whether the permutation has a position for each of the rows, and not for the first of more.
  static bool hasAllRows(const RowLookup &lookup) {
    DimSizes sizes;
    if (sizes.of(lookup.rows, 0) == sizes.of(lookup.at, 0))
      return true;
    // One row for each element that was sorted.
    Value positions = lookThroughIdentities(lookup.at), inverse = inverseOf(positions);
    auto product = lookup.rows.getDefiningOp<IndexedMmOp>();
    SortOp sorts[] = {sortOf(positions), inverse ? sortOf(inverse) : SortOp()};
    return product && llvm::any_of(sorts, [&](SortOp sort) {
             return sort && (product.getIndex() == sort.getSelf() ||
                             product.getIndex() == sort.getValues());
           });
  }

  static bool has(const TensorFactors &tensor, unsigned factor) {
    return llvm::any_of(tensor, [&](auto &factors) { return llvm::is_contained(factors, factor); });
  }

  static std::optional<OperandDims> operandDims(OpResult rows, int64_t dim) {
    Operation *op = rows.getOwner();
    if (!worksRowByRow(op))
      return std::nullopt;
    if (isa<IdentityOpInterface>(op))
      return OperandDims{dim};
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled)
      return std::nullopt;
    ShardingRule rule = ruled.getShardingRule();
    const DimFactors &factors = rule.results[rows.getResultNumber()][dim];
    if (factors.size() != 1 || rule.factors[factors.front()].kind != FactorKind::Parallel)
      return std::nullopt;
    // All results have the rows: they are taken together.
    for (auto [result, other] : llvm::zip_equal(op->getResults(), rule.results))
      if (dimOfFactor(other, factors.front()) != dim)
        return std::nullopt;
    OperandDims dims;
    int64_t size = shapeOf(rows)[dim];
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      dims.push_back(std::nullopt);
      if (!isa<RankedTensorType>(operand.getType()))
        continue;
      dims.back() = dimOfFactor(rule.operands[i], factors.front());
      bool fits = dims.back() ? shapeOf(operand)[*dims.back()] == size
                              : !has(rule.operands[i], factors.front());
      if (!fits)
        return std::nullopt;
    }
    bool any = llvm::any_of(dims, [](std::optional<int64_t> found) { return found.has_value(); });
    return any ? std::optional(dims) : std::nullopt;
  }

  bool reach(Value rows, int64_t dim) {
    auto [entry, isNew] = reached.try_emplace({rows, dim}, false);
    if (!isNew)
      return entry->second;
    bool all = reached.size() <= kMostOps && reachNew(rows, dim);
    return reached[{rows, dim}] = all;
  }
  bool reachNew(Value rows, int64_t dim) {
    if (dim == 0 && (undoes(rows) || known(rows)))
      return true;
    auto result = dyn_cast<OpResult>(rows);
    if (!result)
      return false;
    if (auto lookup = RowLookup::of(result.getOwner()); lookup && dim == 0) {
      moved.insert(result.getOwner());
      return reach(lookup->at, 0);
    }
    std::optional<OperandDims> dims = operandDims(result, dim);
    if (!dims)
      return false;
    moved.insert(result.getOwner());
    for (auto [operand, own] : llvm::zip(result.getOwner()->getOperands(), *dims))
      if (own && !reach(operand, *own))
        return false;
    return true;
  }

  /// Else it would be computed twice. Vectors of numbers are little work.
  bool isUsedHereOnly() const {
    return llvm::all_of(moved, [&](Operation *op) {
      return llvm::all_of(op->getResults(), [&](Value result) {
        return shapeOf(result).size() <= 1 || llvm::all_of(result.getUsers(), [&](Operation *user) {
                 return user == root || moved.contains(user) || isOpTriviallyDead(user);
               });
      });
    });
  }

  Value build(OpBuilder &builder, Value rows, int64_t dim) {
    Emitter emit(builder, rows.getLoc());
    if (dim == 0) {
      if (undoes(rows)) {
        auto index = [&](int64_t value) -> Value {
          return arith::ConstantIndexOp::create(builder, rows.getLoc(), value);
        };
        int64_t size = shapeOf(rows).front();
        Value length = ShapedType::isDynamic(size)
                           ? SymSizeOp::create(builder, rows.getLoc(), rows, 0)
                           : index(size);
        return emit.range(index(0), length, 1, elementTypeOf(rows));
      }
      if (Value found = known(rows))
        return found;
    }
    auto result = cast<OpResult>(rows);
    Operation *op = result.getOwner();
    OperandDims dims = {std::nullopt, 0}; // of a lookup: the positions
    if (!RowLookup::of(op) || dim != 0)
      dims = *operandDims(result, dim);
    SmallVector<Value> operands(op->getOperands());
    for (auto [operand, own] : llvm::zip(operands, dims))
      if (own)
        operand = take(builder, operand, *own);
    Operation *clone = builder.clone(*op);
    clone->setOperands(operands);
    if (auto product = dyn_cast<IndexedMmOp>(clone))
      product.setSorted(isAscending(product.getIndex()));
    for (auto [old, own] : llvm::zip_equal(op->getResults(), clone->getResults()))
      values[{old, dim}] = own;
    return clone->getResult(result.getResultNumber());
  }
  static bool isAscending(Value index) {
    auto sort = lookThroughIdentities(index).getDefiningOp<SortOp>();
    return sort && lookThroughIdentities(index) == sort.getValues() && !sort.getDescending() &&
           shapeOf(index).size() == 1;
  }

  Operation *root;
  Value at;
  llvm::DenseMap<Rows, bool> reached;
  llvm::DenseMap<Rows, Value> values;
  llvm::DenseSet<Operation *> moved;
};

} // namespace

bool undoRowOrder(Operation *op) {
  std::optional<RowLookup> lookup = RowLookup::of(op);
  if (!lookup || typeOf(lookup->rows).getEncoding() ||
      !isPermutation(lookThroughIdentities(lookup->at)))
    return false;
  RowTaker taker(op, lookup->at);
  if (!taker.canTake(lookup->rows, 0))
    return false;
  OpBuilder builder(op);
  Value taken = taker.take(builder, lookup->rows, 0);
  if (taken.getType() != op->getResult(0).getType())
    return false;
  op->getResult(0).replaceAllUsesWith(taken);
  op->erase();
  return true;
}

unsigned undoRowOrders(func::FuncOp function) {
  SmallVector<Operation *> lookups;
  function.walk([&](Operation *op) {
    if (RowLookup::of(op))
      lookups.push_back(op);
  });
  return llvm::count_if(lookups, undoRowOrder);
}

} // namespace shardc::aten
