// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Grouped.h"
#include "dialects/aten/Rules.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Grouped.cpp.inc"

namespace shardc::aten {

/// The number of rows, which the index has one number for each of.
static FailureOr<Dim> rowsOf(Inference &inference, ArrayRef<Dim> self, Value index) {
  Shape numbers = inference.sizesOf(index);
  if (self.size() != 2 || numbers.size() != 1)
    return inference.error("needs rows in two dims and an index of one, not ", self.size(), " and ",
                           numbers.size());
  return inference.same(self.front(), numbers.front(), "numbers of rows");
}

/// Of each row with one of `matrices`.
static std::optional<double> flops(Operation *op, ArrayRef<int64_t> rows, int64_t columns,
                                   int64_t matrices) {
  double count = 2;
  for (int64_t size : {rows[0], rows[1], columns}) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    count *= static_cast<double>(size);
  }
  auto all = op->getAttrOfType<IntegerAttr>(kAllMatricesAttr);
  if (all && all.getInt() > 0 && !ShapedType::isDynamic(matrices))
    count *= static_cast<double>(matrices) / static_cast<double>(all.getInt());
  return count;
}

LogicalResult IndexedMmOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf()), matrices = inference.sizesOf(op.getMat2());
  FailureOr<Dim> rows = rowsOf(inference, self, op.getIndex());
  FailureOr<Type> type = inference.sameElementType({op.getSelf(), op.getMat2()});
  if (failed(rows) || failed(type))
    return failure();
  if (matrices.size() != 3)
    return inference.error("needs matrices in three dims, not ", matrices.size());
  if (failed(inference.same(self[1], matrices[1], "contracted dims")))
    return failure();
  return inference.result({*rows, matrices[2]}, *type);
}

std::optional<double> IndexedMmOp::getFlops() {
  ArrayRef<int64_t> matrices = shapeOf(getMat2());
  return flops(*this, shapeOf(getSelf()), matrices[2], matrices[0]);
}

namespace {

/// The factors of rows and matrices, which are one part for each row of a part where rows have been
/// taken to the parts that own them.
struct RowFactors {
  DimFactors rows, matrices;

  RowFactors(RuleBuilder &builder, Operation *op, int64_t size, int64_t groups, bool isSummed) {
    auto [batches, parts] = rowPartsOf(op);
    bool fits = !ShapedType::isDynamic(size) && !ShapedType::isDynamic(groups) &&
                size % (batches * parts) == 0 && groups % parts == 0;
    if (!fits)
      batches = parts = 1;
    FactorKind ofRows = isSummed ? FactorKind::Reducing : FactorKind::Parallel,
               ofMatrices = isSummed ? FactorKind::Parallel : FactorKind::Reducing;
    auto add = [&](DimFactors &factors, int64_t count, FactorKind kind) {
      if (count != 1)
        factors.push_back(builder.factor(count, kind));
    };
    add(rows, batches, ofRows);
    add(rows, parts, FactorKind::Parallel);
    if (parts != 1)
      matrices.push_back(rows.back());
    add(rows, parts == 1 && batches == 1 ? size : size / (batches * parts), ofRows);
    add(matrices, parts == 1 ? groups : groups / parts, ofMatrices);
    for (unsigned factor : matrices)
      builder.at(factor).inOnePiece = true;
  }
};

DimFactors factorsOf(RuleBuilder &builder, int64_t size, FactorKind kind = FactorKind::Parallel) {
  return size == 1 ? DimFactors{} : DimFactors{builder.factor(size, kind)};
}

} // namespace

std::pair<int64_t, int64_t> rowPartsOf(Operation *op) {
  auto parts = op->getAttrOfType<DenseI64ArrayAttr>(kRowPartsAttr);
  bool isUsable = parts && parts.size() == 2 && parts[0] > 0 && parts[1] > 0;
  return isUsable ? std::pair(parts[0], parts[1]) : std::pair<int64_t, int64_t>(1, 1);
}

void copyRowParts(Operation *like, Operation *op) {
  if (Attribute parts = like->getAttr(kRowPartsAttr))
    op->setAttr(kRowPartsAttr, parts);
}

ShardingRule IndexedMmOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  ArrayRef<int64_t> self = shapeOf(getSelf()), matrices = shapeOf(getMat2());
  RowFactors dims(builder, *this, self[0], matrices[0], /*isSummed=*/false);
  DimFactors k = factorsOf(builder, self[1], FactorKind::Reducing),
             n = factorsOf(builder, matrices[2]);
  builder.operandDim(0, 0, dims.rows).operandDim(0, 1, k);
  builder.operandDim(1, 0, dims.matrices).operandDim(1, 1, k).operandDim(1, 2, n);
  builder.operandDim(2, 0, dims.rows);
  builder.resultDim(0, 0, dims.rows).resultDim(0, 1, n);
  return builder.linear(0).linear(1).build();
}

LogicalResult IndexedOuterOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf()), other = inference.sizesOf(op.getOther());
  FailureOr<Dim> rows = rowsOf(inference, self, op.getIndex());
  FailureOr<Type> type = inference.sameElementType({op.getSelf(), op.getOther()});
  if (failed(rows) || failed(type))
    return failure();
  if (other.size() != 2 || failed(inference.same(*rows, other.front(), "numbers of rows")))
    return inference.error("needs rows in two dims on both sides");
  if (op.getStaticGroups().size() != 1)
    return inference.error("has one number of groups, not ", op.getStaticGroups().size());
  if (failed(inference.checkDynamicList(op.getStaticGroups(), op.getGroups(), "groups")))
    return failure();
  Dim groups = inference.given(op.getStaticGroups(), op.getGroups()).front();
  return inference.result({groups, self[1], other[1]}, *type);
}

std::optional<double> IndexedOuterOp::getFlops() {
  return flops(*this, shapeOf(getSelf()), shapeOf(getOther())[1], shapeOf(getResult())[0]);
}

ShardingRule IndexedOuterOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  ArrayRef<int64_t> result = shapeOf(getResult());
  RowFactors dims(builder, *this, shapeOf(getSelf()).front(), result[0], /*isSummed=*/true);
  DimFactors m = factorsOf(builder, result[1]), n = factorsOf(builder, result[2]);
  for (unsigned operand : {0, 1, 2})
    builder.operandDim(operand, 0, dims.rows);
  builder.operandDim(0, 1, m).operandDim(1, 1, n);
  builder.resultDim(0, 0, dims.matrices).resultDim(0, 1, m).resultDim(0, 2, n);
  return builder.linear(0).linear(1).build();
}

/// Of rows, or of what the parts have of them.
template <typename Adaptor>
static LogicalResult inferRows(Inference &inference, Adaptor op, bool isDispatch) {
  Value self = op.getSelf(), owner = op.getOwner();
  auto batches = static_cast<int64_t>(op.getBatches()), parts = static_cast<int64_t>(op.getParts());
  auto granule = static_cast<int64_t>(op.getGranule());
  Shape shape = inference.sizesOf(self), numbers = inference.sizesOf(owner);
  if (shape.empty() || numbers.size() != 1)
    return inference.error("needs rows, and owners in one dim");
  std::optional<int64_t> held = shape.front().number(), rows = numbers.front().number();
  if (rows && *rows % (batches * granule))
    return inference.error("has ", *rows, " rows in ", batches, " blocks, and ", granule,
                           " stay together");
  auto ofParts = [&](Dim count) { return count.number() ? Dim(*count.number() * parts) : Dim(); };
  FailureOr<Dim> due = inference.same(
      shape.front(), isDispatch ? numbers.front() : ofParts(numbers.front()), "numbers of rows");
  if (failed(due))
    return failure();
  if (isDispatch)
    shape.front() = ofParts(*due);
  else
    shape.front() = rows || !held ? numbers.front() : Dim(*held / parts);
  return inference.result(shape, elementTypeOf(self));
}

/// Rows go from one shard to another along one factor. Where rows can be cut into as many equal
/// pieces as there are parts, it is the number of parts, and what is in a piece stays together;
/// otherwise it has one size among the rows and another among the parts.
template <typename Op> static ShardingRule ruleOfRows(Op op, bool isDispatch) {
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> shape = shapeOf(op.getSelf());
  auto batches = static_cast<int64_t>(op.getBatches()), parts = static_cast<int64_t>(op.getParts());
  auto granule = static_cast<int64_t>(op.getGranule());
  // Of unknown numbers of rows nothing is said.
  int64_t all = shapeOf(op.getOwner()).front(), rows = all / batches;
  bool isKnown = !ShapedType::isDynamic(all) && !ShapedType::isDynamic(shape.front()) &&
                 !ShapedType::isDynamic(shapeOf(op.getResult()).front());
  DimFactors ofRows, ofParts;
  auto add = [&](DimFactors &dim, int64_t size) {
    if (size != 1)
      dim.push_back(builder.factor(size, FactorKind::NeedReplication));
  };
  // `moved` is in elements of the result for each point of the factor.
  if (rows > 0 && rows % (parts * granule) == 0 && parts > 1) {
    // The parts of all blocks, one after the other: a rank has some that follow each other.
    unsigned part = builder.factor(batches * parts, FactorKind::Cooperative);
    builder.at(part).moved = batches * (isDispatch ? 1 : parts);
    builder.at(part).inOnePiece = true;
    ofRows.push_back(part);
    ofParts.push_back(part);
    add(ofRows, rows / parts);
    add(ofParts, rows);
  } else if (rows > granule && batches == 1) {
    int64_t size = std::max(rows / granule, parts);
    unsigned piece = builder.factor(size, FactorKind::Neighbouring);
    builder.at(piece).moved = isDispatch ? llvm::divideCeil(size, parts) : size;
    builder.at(piece).inOnePiece = true;
    ofRows.push_back(piece);
    ofParts.push_back(piece);
    add(ofRows, granule);
    add(ofParts, rows);
  } else {
    if (rows > 0)
      ofRows = ofParts = factorsOf(builder, batches);
    add(ofRows, rows);
    add(ofParts, rows * parts);
  }
  if (isKnown) {
    builder.operandDim(0, 0, isDispatch ? ofRows : ofParts).operandDim(1, 0, ofRows);
    builder.resultDim(0, 0, isDispatch ? ofParts : ofRows);
  }
  for (int64_t d = 1; d < static_cast<int64_t>(shape.size()); ++d) {
    DimFactors factors = factorsOf(builder, shape[d]);
    builder.operandDim(0, d, factors).resultDim(0, d, factors);
  }
  return builder.linear(0).build();
}

LogicalResult DispatchRowsOp::infer(Inference &inference, Adaptor op) {
  return inferRows(inference, op, /*isDispatch=*/true);
}
ShardingRule DispatchRowsOp::getShardingRule() { return ruleOfRows(*this, /*isDispatch=*/true); }

LogicalResult CollectRowsOp::infer(Inference &inference, Adaptor op) {
  return inferRows(inference, op, /*isDispatch=*/false);
}
ShardingRule CollectRowsOp::getShardingRule() { return ruleOfRows(*this, /*isDispatch=*/false); }

} // namespace shardc::aten
