// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Rules.h"
#include "dialects/aten/Sorting.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <limits>

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Sorting.cpp.inc"

namespace shardc::aten {

LogicalResult SortOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getSelf());
  if (shape.empty())
    return inference.error("needs a tensor of at least one dim");
  auto dim = static_cast<int64_t>(op.getDim());
  if (failed(inference.checkDim(dim, shape.size(), "dim")))
    return failure();
  if (std::optional<uint64_t> count = op.getCount()) {
    std::optional<int64_t> size = shape[dim].number();
    auto kept = static_cast<int64_t>(*count);
    if (size && kept > *size)
      return inference.error("keeps ", kept, " elements of a dim of size ", *size);
    shape[dim] = Dim(kept);
  }
  if (failed(inference.result(shape, elementTypeOf(op.getSelf()))))
    return failure();
  return inference.result(shape, IntegerType::get(inference.getContext(), 64));
}

unsigned sortKeyBits(Type elementType) {
  unsigned width = elementType.getIntOrFloatBitWidth();
  return std::max(isa<FloatType>(elementType) ? 32u : kSortDigitBits, width);
}

int64_t sortPositionBytes(int64_t size) {
  return size <= std::numeric_limits<int32_t>::max() ? 4 : 8;
}

bool isSortedAlone(ArrayRef<int64_t> shape, int64_t dim) {
  return !ShapedType::isDynamic(shape[dim]) && llvm::all_of(llvm::enumerate(shape), [&](auto size) {
    return size.value() == 1 || static_cast<int64_t>(size.index()) == dim;
  });
}

static int64_t bytesOf(Type elementType) {
  return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
}

/// What ranks tell each other to find the borders, in elements of this type: i64 counts for all
/// values of each digit and each border between shards, of which four ranks have three.
static int64_t searchedElements(Type elementType) {
  int64_t digits = sortKeyBits(elementType) / kSortDigitBits, values = (1 << kSortDigitBits) - 1;
  return digits * values * 3 * 8 / bytesOf(elementType);
}

/// Elements, and their positions where they are used.
static int64_t movedElements(SortOp op) {
  Type type = elementTypeOf(op.getSelf());
  int64_t size = shapeOf(op.getSelf())[op.getDim()];
  int64_t positions = op.getIndices().use_empty() ? 0 : size * sortPositionBytes(size);
  return size + positions / bytesOf(type);
}

ShardingRule SortOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  for (auto [i, size] : llvm::enumerate(shapeOf(getSelf()))) {
    int64_t dim = static_cast<int64_t>(i);
    if (size == 1)
      continue;
    if (dim == static_cast<int64_t>(getDim())) {
      // The first elements of each rank, and where they are. Whether a rank has as many is not
      // known of a dim of unknown size.
      if (std::optional<uint64_t> count = getCount(); count && !ShapedType::isDynamic(size)) {
        DimFactors factors{builder.factor(size, FactorKind::Cooperative)};
        builder.at(factors.front()).exchange = 2 * static_cast<int64_t>(*count);
        builder.operandDim(0, dim, factors).operandDimInOnePiece(0, dim);
      }
      // Alone, it is sorted where it is: the ranks agree on the values at the borders of the
      // result's shards and send each element once, with its position.
      if (!getCount() && isSortedAlone(shapeOf(getSelf()), dim)) {
        DimFactors factors{builder.factor(size, FactorKind::Cooperative)};
        builder.at(factors.front()).exchange = searchedElements(elementTypeOf(getSelf()));
        builder.at(factors.front()).moved = movedElements(*this);
        builder.operandDim(0, dim, factors)
            .operandDimInOnePiece(0, dim)
            .resultDim(0, dim, factors)
            .resultDim(1, dim, factors);
      }
      continue;
    }
    DimFactors factors{builder.factor(size)};
    builder.operandDim(0, dim, factors).resultDim(0, dim, factors).resultDim(1, dim, factors);
  }
  return builder.build();
}

} // namespace shardc::aten
