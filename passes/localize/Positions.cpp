// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Positions.h"

#include "dialects/aten/LookupSizes.h"

using namespace mlir;
using namespace shardc;

/// A position that no table has, counted from its start or from its end.
static Value outside(Emitter &emit, Type type) {
  auto integer = cast<IntegerType>(type);
  APInt value = integer.isUnsigned() ? APInt::getMaxValue(integer.getWidth())
                                     : APInt::getSignedMinValue(integer.getWidth());
  return emit.integer(integer.isUnsigned() ? static_cast<int64_t>(value.getZExtValue())
                                           : value.getSExtValue(),
                      type);
}

std::optional<LocalPositions> shardc::localPositions(Localizer &localizer, OpBuilder &builder,
                                                     Value index, int64_t dim, bool skips) {
  Emitter emit = localizer.emitter(builder);
  LocalIndices indices = localizer.indices(builder);
  GlobalSize size = localizer.operandSize(builder, 0, dim);
  DimSplit split = localizer.operandLayout(0)->splitOfDim(dim);
  Value offset = indices.offset(size, split);
  if (!offset) {
    localizer.refuse() << "dim " << dim << " is sharded in blocks; replicate it before";
    return std::nullopt;
  }
  Type type = aten::elementTypeOf(index);
  Value zero = emit.integer(0, type);
  Value extent = emit.ofIndex(indices.extent(size, split), type);
  Value local = emit.sub(index, emit.ofIndex(offset, type));
  Value mask = emit.binary<aten::BitwiseAndOp>(emit.binary<aten::GeOp>(local, zero),
                                               emit.binary<aten::LtOp>(local, extent));
  // What another rank holds is taken at a place of no matter; what none holds must not pass.
  Value end = emit.ofIndex(indices.global(size), type);
  Value found = emit.binary<aten::BitwiseAndOp>(emit.binary<aten::GeOp>(index, zero),
                                                emit.binary<aten::LtOp>(index, end));
  Value elsewhere = emit.where(found, skips ? extent : zero, outside(emit, type));
  return LocalPositions{emit.where(mask, local, elsewhere), mask, size.fixed()};
}

Value shardc::fromStart(Localizer &localizer, OpBuilder &builder, Value index, int64_t dim) {
  Emitter emit = localizer.emitter(builder);
  Type type = aten::elementTypeOf(index);
  Value size =
      emit.ofIndex(localizer.indices(builder).global(localizer.operandSize(builder, 0, dim)), type);
  Value isNegative = emit.binary<aten::LtOp>(index, emit.integer(0, type));
  return emit.where(isNegative, emit.add(index, size), index);
}

Value shardc::alignMask(Emitter &emit, Value mask, ArrayRef<int64_t> at, int64_t rank) {
  bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  int64_t before = adjacent ? at.front() : 0;
  int64_t after = rank - static_cast<int64_t>(at.size()) - before;
  int64_t dims = cast<RankedTensorType>(mask.getType()).getRank();
  for (int64_t i = 0; i < after; ++i)
    mask = emit.unsqueeze(mask, dims + i);
  return mask;
}

Value shardc::masked(Emitter &emit, Value values, Value mask) {
  return emit.where(mask, values, emit.integer(0, aten::elementTypeOf(values)));
}

void shardc::nameTableSizes(Operation *op, ArrayRef<int64_t> sizes) {
  op->setAttr(aten::kLookupSizesAttr, DenseI64ArrayAttr::get(op->getContext(), sizes));
}
