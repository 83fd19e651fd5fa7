// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/CollectiveTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

void shardc::dist::setDeliveredType(CollectiveOpInterface op, unsigned tensor,
                                    RankedTensorType type) {
  op->getResult(tensor).setType(op.isAsync() ? Type(FutureType::get(type)) : Type(type));
}

//===------------------------------------------------------------------------------------------===//
// Constant extents
//===------------------------------------------------------------------------------------------===//

static std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!value || !matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

/// The list with constants filled in; the operands that are left are added to `sizes`.
static Attribute foldList(Builder &builder, ArrayRef<int64_t> extents, ValueRange operands,
                          SmallVectorImpl<Value> &sizes) {
  SmallVector<int64_t> values(extents);
  for (int64_t &value : values) {
    if (!ShapedType::isDynamic(value))
      continue;
    Value operand = operands.front();
    operands = operands.drop_front();
    if (std::optional<int64_t> constant = constantOf(operand))
      value = *constant;
    else
      sizes.push_back(operand);
  }
  return builder.getDenseI64ArrayAttr(values);
}

static void setExtents(Operation *op, ArrayAttr split, ArrayAttr concat) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<AllGatherOp, PermuteOp>([&](auto op) { op.setExtentsAttr(concat); })
      .Case([&](ReduceScatterOp op) { op.setExtentsAttr(split); })
      .Case([&](AllToAllOp op) {
        op.setSplitExtentsAttr(split);
        op.setConcatExtentsAttr(concat);
      });
}

/// As an attribute of the op: absent where no tensor has a list.
static ArrayAttr listsAttr(Builder &builder, ArrayRef<Attribute> lists) {
  auto isEmpty = [](Attribute list) { return cast<DenseI64ArrayAttr>(list).empty(); };
  return llvm::all_of(lists, isEmpty) ? ArrayAttr() : builder.getArrayAttr(lists);
}

void shardc::dist::foldConstantExtents(CollectiveOpInterface op) {
  if (llvm::none_of(op.getSizes(), [](Value size) { return constantOf(size).has_value(); }))
    return;
  Builder builder(op->getContext());
  SmallVector<Value> operands(op.getTensors()), sizes;
  SmallVector<Attribute> split, concat;
  SmallVector<std::pair<unsigned, int64_t>> fullExtents;
  for (auto [i, tensor] : llvm::enumerate(getTensorSizes(op))) {
    split.push_back(foldList(builder, op.getSplitExtents(i), tensor.splitExtents, sizes));
    concat.push_back(foldList(builder, op.getConcatExtents(i), tensor.concatExtents, sizes));
    if (std::optional<int64_t> full = constantOf(tensor.full))
      fullExtents.emplace_back(i, *full);
    else if (tensor.full)
      sizes.push_back(tensor.full);
  }
  int32_t numTensors = static_cast<int32_t>(operands.size());
  int32_t numSizes = static_cast<int32_t>(sizes.size());
  operands.append(sizes);
  op->setOperands(operands);
  op->setAttr("operandSegmentSizes", builder.getDenseI32ArrayAttr({numTensors, numSizes}));
  setExtents(op, listsAttr(builder, split), listsAttr(builder, concat));
  for (auto [i, full] : fullExtents) {
    RankedTensorType type = op.getResultTensorType(i);
    SmallVector<int64_t> shape(type.getShape());
    shape[op.getConcatDim(i)] = full;
    setDeliveredType(op, i, type.clone(shape));
  }
}

//===------------------------------------------------------------------------------------------===//
// Result types
//===------------------------------------------------------------------------------------------===//

/// The extent at a position: of the list, or PyTorch's chunk (L3).
static int64_t extentAt(ArrayRef<int64_t> extents, int64_t full, int64_t groupSize,
                        std::optional<int64_t> position) {
  if (!extents.empty())
    return position ? extents[*position]
                    : (llvm::all_equal(extents) ? extents.front() : ShapedType::kDynamic);
  if (ShapedType::isDynamic(full))
    return full;
  if (!position)
    return full % groupSize ? ShapedType::kDynamic : full / groupSize;
  int64_t chunk = ceilDiv(full, groupSize);
  return std::clamp<int64_t>(full - *position * chunk, 0, chunk);
}

static int64_t sumOf(ArrayRef<int64_t> extents) {
  if (extents.empty() || llvm::any_of(extents, ShapedType::isDynamic))
    return ShapedType::kDynamic;
  return std::accumulate(extents.begin(), extents.end(), int64_t(0));
}

/// What a permute delivers: its source's extent, or this rank's own (as zeros).
static int64_t permutedExtent(PermuteOp op, ArrayRef<int64_t> extents,
                              std::optional<int64_t> position) {
  if (!position)
    return llvm::all_equal(extents) ? extents.front() : ShapedType::kDynamic;
  ArrayRef<int64_t> pairs = op.getPairs();
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    if (pairs[i + 1] == *position)
      return extents[pairs[i]];
  return extents[*position];
}

RankedTensorType shardc::dist::inferDeliveredType(CollectiveOpInterface op, unsigned tensor,
                                                  std::optional<int64_t> position) {
  RankedTensorType operand = op.getOperandType(tensor), result = op.getResultTensorType(tensor);
  int64_t split = op.getSplitDim(tensor), concat = op.getConcatDim(tensor);
  ArrayRef<int64_t> splitExtents = op.getSplitExtents(tensor);
  ArrayRef<int64_t> concatExtents = op.getConcatExtents(tensor);
  auto permute = dyn_cast<PermuteOp>(op.getOperation());
  SmallVector<int64_t> shape(result.getShape());
  for (auto [i, extent] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(extent))
      continue;
    int64_t dim = static_cast<int64_t>(i), before = operand.getDimSize(dim);
    if (permute && dim == concat)
      extent = permutedExtent(permute, concatExtents, position);
    else if (dim == concat && (dim != split || !splitExtents.empty()))
      extent = sumOf(concatExtents);
    else if (dim == split && dim != concat)
      extent = extentAt(splitExtents, before, op.getGroup().getGroupSize(), position);
    else
      extent = before;
  }
  return result.clone(shape);
}
