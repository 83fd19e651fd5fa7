// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/KnownLookups.h"

#include "dialects/aten/OwnRows.h"

using namespace mlir;

namespace shardc::aten {

std::optional<SmallVector<int64_t>> constantPositions(IndexSelectOp op) {
  // A torch.tensor of the forward is copied before it is used.
  Value index = lookThroughIdentities(op.getIndex());
  while (isa_and_nonnull<CloneOp, AliasOp>(index.getDefiningOp()))
    index = lookThroughIdentities(index.getDefiningOp()->getOperand(0));
  auto constant = index.getDefiningOp<ConstantOp>();
  auto numbers =
      constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  ArrayRef<int64_t> self = shapeOf(op.getSelf());
  if (!numbers || self.empty() || ShapedType::isDynamic(self[op.getDim()]))
    return std::nullopt;
  SmallVector<int64_t> positions;
  for (const APInt &number : numbers) {
    positions.push_back(number.getSExtValue());
    if (positions.back() < 0 || positions.back() >= self[op.getDim()])
      return std::nullopt;
  }
  return positions;
}

std::optional<SmallVector<int64_t>> ascendingPositions(IndexSelectOp op) {
  if (shapeOf(op.getIndex()).size() != 1 || shapeOf(op.getSelf()).empty())
    return std::nullopt;
  // Of few rows of a long table, it is less to do something at these rows alone.
  constexpr int64_t kSparse = 16;
  int64_t count = shapeOf(op.getIndex()).front(), rows = shapeOf(op.getSelf())[op.getDim()];
  if (count < 2 || rows < 2 || rows / kSparse > count)
    return std::nullopt;
  std::optional<SmallVector<int64_t>> positions = constantPositions(op);
  if (positions && !llvm::is_sorted(*positions))
    return std::nullopt;
  return positions;
}

std::vector<Run> rowsAt(ArrayRef<SmallVector<int64_t>> lookups, Run part) {
  constexpr size_t kMostRuns = 4;
  SmallVector<int64_t> rows;
  for (ArrayRef<int64_t> positions : lookups)
    llvm::append_range(rows, positions.slice(part.begin, part.size()));
  llvm::sort(rows);
  std::vector<Run> runs;
  for (int64_t position : rows)
    if (runs.empty() || runs.back().end < position)
      runs.push_back({position, position + 1});
    else
      runs.back().end = position + 1;
  if (runs.size() > kMostRuns)
    runs = {{runs.front().begin, runs.back().end}};
  return runs;
}

template <typename T>
static Value constantVector(Emitter &emit, Type element, ArrayRef<T> numbers) {
  auto type = RankedTensorType::get({static_cast<int64_t>(numbers.size())}, element);
  return ConstantOp::create(emit.getBuilder(), emit.getLoc(), type,
                            DenseElementsAttr::get(type, numbers));
}

Value vectorOf(Emitter &emit, ArrayRef<int64_t> numbers) {
  return constantVector(emit, emit.getBuilder().getI64Type(), numbers);
}

Value vectorOf(Emitter &emit, ArrayRef<double> numbers) {
  return constantVector(emit, emit.getBuilder().getF64Type(), numbers);
}

namespace {
/// A tensor times constant weights along a dim.
struct Weighted {
  Value tensor;
  SmallVector<APFloat> weights; ///< empty: all are 1
};
} // namespace

/// Numbers that a tensor of this shape is multiplied by along `dim`, one for each of its elements;
/// empty where it is something else.
static SmallVector<APFloat> weightsAlong(Value factor, int64_t dim, ArrayRef<int64_t> product) {
  ArrayRef<int64_t> shape = shapeOf(factor);
  Value vector = lookThroughIdentities(factor);
  if (auto view = vector.getDefiningOp<ViewOp>())
    vector = lookThroughIdentities(view.getSelf());
  auto constant = vector.getDefiningOp<ConstantOp>();
  auto numbers =
      constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  bool isAlong = shape.size() == product.size() - static_cast<size_t>(dim) && !shape.empty() &&
                 shape.front() == product[dim];
  if (!numbers || !isAlong || shape.front() != numbers.getNumElements())
    return {};
  return llvm::to_vector(numbers.getValues<APFloat>());
}

/// Of a product that has the size and type of its tensor.
static Weighted takeApart(Value product, int64_t dim) {
  auto mul = product.getDefiningOp<MulOp>();
  for (unsigned i = 0; mul && i < 2; ++i) {
    Value tensor = mul->getOperand(i), factor = mul->getOperand(1 - i);
    Type element = elementTypeOf(product);
    if (shapeOf(tensor) != shapeOf(product) || elementTypeOf(tensor) != element ||
        elementTypeOf(factor) != element)
      continue;
    SmallVector<APFloat> weights = weightsAlong(factor, dim, shapeOf(product));
    if (!weights.empty())
      return {tensor, std::move(weights)};
  }
  return {product, {}};
}

Value sumsAt(Emitter &emit, Value values, ArrayRef<int64_t> positions, int64_t dim, int64_t size) {
  constexpr int64_t kMostTerms = 8;
  SmallVector<int64_t> first(size), count(size, 0);
  for (auto [i, position] : llvm::enumerate(positions))
    if (count[position]++ == 0)
      first[position] = static_cast<int64_t>(i);
  int64_t most = *llvm::max_element(count);
  if (most > kMostTerms)
    return Value();
  // A row without elements takes one of no matter, so that positions ascend.
  for (int64_t row = 1; row < size; ++row)
    if (count[row] == 0)
      first[row] = first[row - 1] + std::max<int64_t>(count[row - 1] - 1, 0);
  // Elements are looked up before they are weighted, so that the terms of several such sums have
  // their rows in common.
  OpBuilder &builder = emit.getBuilder();
  Weighted source = takeApart(values, dim);
  auto along = [&](Type element, auto numbers) {
    auto type = RankedTensorType::get({size}, element);
    return ConstantOp::create(builder, emit.getLoc(), type,
                              DenseElementsAttr::get(type, ArrayRef(numbers)));
  };
  SmallVector<int64_t> after(typeOf(values).getRank() - dim, 1);
  after.front() = size;
  Value sum;
  for (int64_t term = 0; term < most; ++term) {
    SmallVector<int64_t> at;
    SmallVector<bool> has;
    for (int64_t row = 0; row < size; ++row) {
      has.push_back(term < count[row]);
      at.push_back(first[row] + std::min(term, std::max<int64_t>(count[row] - 1, 0)));
    }
    Value read =
        IndexSelectOp::create(builder, emit.getLoc(), source.tensor, dim, vectorOf(emit, at));
    SmallVector<OpFoldResult> sizes = getAsIndexOpFoldResult(builder.getContext(), after);
    Type element = elementTypeOf(values);
    if (!source.weights.empty()) {
      auto weights =
          llvm::map_to_vector(at, [&](int64_t position) { return source.weights[position]; });
      read = emit.mul(read, emit.view(along(element, weights), sizes));
    }
    if (llvm::is_contained(has, false))
      read = emit.where(emit.view(along(builder.getI1Type(), has), sizes), read,
                        emit.scalar(0, element));
    sum = sum ? emit.add(sum, read) : read;
  }
  return sum;
}

} // namespace shardc::aten
