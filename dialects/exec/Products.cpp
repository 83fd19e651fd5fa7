// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products, attention and sums at computed positions: which shapes and strides go together.

#include "dialects/exec/Internal.h"

using namespace mlir;
using namespace shardc::exec;

static bool isFloat(Type element) { return isa<FloatType>(element); }

void GemmOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : (*this)->getOpOperands())
    if (operand.get() != getC() || !getBeta().isZero())
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
  effects.emplace_back(MemoryEffects::Write::get(), &getCMutable());
}

/// Whether the strides of dims `outer` and `inner` may be those of a matrix whose rows are dense.
/// The stride of a dim of one element says nothing.
static bool mayBeDenseRows(MemRefType type, int64_t inner) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  int64_t size = type.getDimSize(inner);
  return agree(strides[inner], 1) || size == 1 || size == 0;
}

LogicalResult GemmOp::verify() {
  MemRefType a = getA().getType(), b = getB().getType(), c = getC().getType();
  int64_t rank = c.getRank();
  if (rank != 2 && rank != 3)
    return emitOpError("has a result of ") << rank << " dims, not 2 or 3";
  if (a.getRank() != rank || b.getRank() != rank)
    return emitOpError("has operands of ")
           << a.getRank() << " and " << b.getRank() << " dims for a result of " << rank;
  Type element = c.getElementType();
  if (a.getElementType() != element || b.getElementType() != element)
    return emitOpError("mixes element types");
  if (!isFloat(element))
    return emitOpError("multiplies floating-point matrices, not ones of ") << element;
  if (!agree(a.getDimSize(rank - 2), c.getDimSize(rank - 2)) ||
      !agree(b.getDimSize(rank - 1), c.getDimSize(rank - 1)) ||
      !agree(a.getDimSize(rank - 1), b.getDimSize(rank - 2)))
    return emitOpError("has shapes that do not multiply: ") << a << ", " << b << " -> " << c;
  if (rank == 3 &&
      (!agree(a.getDimSize(0), c.getDimSize(0)) || !agree(b.getDimSize(0), c.getDimSize(0))))
    return emitOpError("has different batch sizes: ") << a << ", " << b << " -> " << c;
  if (getBias()) {
    MemRefType bias = getBias().getType();
    if (bias.getRank() != 1 || bias.getElementType() != element ||
        !agree(bias.getDimSize(0), c.getDimSize(rank - 1)))
      return emitOpError("has a bias of type ") << bias << " for " << c;
  }
  for (MemRefType operand : {a, b})
    if (!mayBeDenseRows(operand, rank - 1) && !mayBeDenseRows(operand, rank - 2))
      return emitOpError("has the operand ") << operand << ", of which neither matrix stride is 1";
  if (!mayBeDenseRows(c, rank - 1))
    return emitOpError("has the result ") << c << ", whose last stride is not 1";
  return success();
}

static bool sameDim(MemRefType x, int64_t i, MemRefType y, int64_t j) {
  return agree(x.getDimSize(i), y.getDimSize(j));
}

/// What both directions of attention ask of the memory of the forward; `logsumexp` may be null.
template <typename OpT> static LogicalResult verifyAttention(OpT op, MemRefType logsumexp) {
  MemRefType query = op.getQuery().getType(), key = op.getKey().getType(),
             value = op.getValue().getType(), out = op.getOut().getType();
  auto mask = op.getMask() ? cast<MemRefType>(op.getMask().getType()) : MemRefType();
  for (MemRefType type : {query, key, value, out, mask})
    if (type && type.getRank() != 4)
      return op.emitOpError("takes memory of 4 dims (batch, heads, rows, columns), not ") << type;
  Type element = query.getElementType();
  if (!isFloat(element))
    return op.emitOpError("works on floating-point numbers, not on ") << element;
  Type sums = element.isF64() ? element : Float32Type::get(op.getContext());
  Type ofOut = isa<AttentionOp>(op) && op.getPartial() ? sums : element;
  for (auto [type, wanted] :
       {std::pair(key, element), std::pair(value, element), std::pair(out, ofOut)})
    if (type.getElementType() != wanted)
      return op.emitOpError("mixes the element types ")
             << wanted << " and " << type.getElementType();
  if (op.getFirst() && !op.getCausal())
    return op.emitOpError("says where its first query is among the keys, and is not causal");
  for (MemRefType type : {key, value, out})
    if (!sameDim(query, 0, type, 0))
      return op.emitOpError("has different batch sizes: ") << query << " and " << type;
  if (!sameDim(query, 3, key, 3))
    return op.emitOpError("has queries and keys of different depth: ") << query << " and " << key;
  if (!sameDim(key, 1, value, 1) || !sameDim(key, 2, value, 2))
    return op.emitOpError("has another number of keys than of values: ") << key << " and " << value;
  if (!sameDim(query, 1, out, 1) || !sameDim(query, 2, out, 2) || !sameDim(value, 3, out, 3))
    return op.emitOpError("has a result of ") << out << " for " << query << " and " << value;
  int64_t heads = query.getDimSize(1), groups = key.getDimSize(1);
  if (!ShapedType::isDynamic(heads) && !ShapedType::isDynamic(groups) &&
      (groups == 0 ? heads != 0 : heads % groups != 0))
    return op.emitOpError("has ") << heads << " heads of queries, no multiple of the " << groups
                                  << " heads of keys";
  if (logsumexp) {
    bool fits = logsumexp.getRank() == 3 && logsumexp.getElementType() == sums;
    for (int64_t i = 0; fits && i < 3; ++i)
      fits = sameDim(logsumexp, i, query, i);
    if (!fits)
      return op.emitOpError("has a logsumexp of ")
             << logsumexp << ", not of " << sums << " for each query of " << query;
  }
  if (!mask)
    return success();
  Type bit = mask.getElementType();
  if (!bit.isSignlessInteger(8) && !isFloat(bit))
    return op.emitOpError("has a mask of ") << bit << ", not of i8 or floating-point numbers";
  if (!sameDim(mask, 0, query, 0) || !sameDim(mask, 1, query, 1) || !sameDim(mask, 2, query, 2) ||
      !sameDim(mask, 3, key, 2))
    return op.emitOpError("has a mask of ") << mask << " for " << query << " and " << key;
  return success();
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, getLogsumexp() ? cast<MemRefType>(getLogsumexp().getType())
                                               : MemRefType());
}

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyAttention(*this, getLogsumexp().getType())))
    return failure();
  Type element = getPartial() ? getLogsumexp().getType().getElementType()
                              : getQuery().getType().getElementType();
  auto isAlike = [](MemRefType gradient, MemRefType of, Type element) {
    bool alike = gradient.getRank() == 4 && gradient.getElementType() == element;
    for (int64_t i = 0; alike && i < 4; ++i)
      alike = sameDim(gradient, i, of, i);
    return alike;
  };
  std::pair<MemRefType, MemRefType> pairs[] = {{getGradQuery().getType(), getQuery().getType()},
                                               {getGradKey().getType(), getKey().getType()},
                                               {getGradValue().getType(), getValue().getType()}};
  if (!isAlike(getGradOut().getType(), getOut().getType(), getOut().getType().getElementType()))
    return emitOpError("has a cotangent of ")
           << getGradOut().getType() << " for " << getOut().getType();
  for (auto [gradient, of] : pairs)
    if (!isAlike(gradient, of, element))
      return emitOpError("has a cotangent of ") << gradient << " for " << of;
  return success();
}

LogicalResult ScatterOp::verify() {
  MemRefType out = getOut().getType(), source = getSource().getType(),
             values = getValues().getType();
  auto alike = [](MemRefType x, MemRefType y) {
    return x.getRank() == y.getRank() &&
           llvm::all_of(llvm::zip(x.getShape(), y.getShape()),
                        [](auto sizes) { return agree(std::get<0>(sizes), std::get<1>(sizes)); });
  };
  if (!alike(source, out) || source.getElementType() != out.getElementType())
    return emitOpError("copies ") << source << " to " << out;
  if (values.getElementType() != out.getElementType())
    return emitOpError("combines elements of ") << values << " with those of " << out;
  if (!llvm::is_contained({"add", "assign", "multiply", "max", "min", "umax", "umin"},
                          getCombine()))
    return emitOpError("has no way \"") << getCombine() << "\" to combine elements";
  if (out.getRank() == 0)
    return emitOpError("has no dim with positions");
  for (Type index : getIndices().getTypes()) {
    auto type = cast<MemRefType>(index);
    if (!type.getElementType().isSignlessInteger() || !alike(type, values))
      return emitOpError("has positions ") << type << " for values " << values;
  }
  ArrayRef<int64_t> loops = getLoops();
  auto isLoop = [&](int64_t loop) { return loop >= -1 && loop < values.getRank(); };
  if (static_cast<int64_t>(loops.size()) != out.getRank() || !llvm::all_of(loops, isLoop) ||
      llvm::count(loops, -1) != static_cast<int64_t>(getIndices().size()))
    return emitOpError("needs for each dim of ")
           << out << " one of the dims of " << values << ", or -1 for each of the "
           << getIndices().size() << " indices; got [" << loops << "]";
  return success();
}

LogicalResult SortOp::verify() {
  MemRefType source = getSource().getType(), values = getValues().getType(),
             positions = getPositions().getType();
  auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= source.getRank())
    return emitOpError("has no dim ") << dim << " in " << source;
  auto fits = [&](MemRefType type) {
    bool alike = type.getRank() == source.getRank();
    for (int64_t i = 0; alike && i < source.getRank(); ++i) {
      int64_t size = type.getDimSize(i), whole = source.getDimSize(i);
      alike = agree(size, whole) || (i == dim && size < whole);
    }
    return alike;
  };
  if (values.getElementType() != source.getElementType() || !fits(values))
    return emitOpError("sorts ") << source << " into " << values;
  if (!positions.getElementType().isSignlessInteger(64) || !fits(positions))
    return emitOpError("has positions ") << positions << " for " << source;
  return success();
}
