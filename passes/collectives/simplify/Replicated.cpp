// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/simplify/Rules.h"

#include "dialects/aten/Emitter.h"
#include "passes/collectives/analysis/Transfers.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Where parts of these extents begin.
static SmallVector<int64_t> beginnings(ArrayRef<int64_t> extents) {
  SmallVector<int64_t> begins;
  int64_t begin = 0;
  for (int64_t extent : extents) {
    begins.push_back(begin);
    begin += extent;
  }
  return begins;
}

/// A bound of a slice by device, in [0, size].
static std::vector<int64_t> boundByDevice(RankValues &ranks, Value dynamic, int64_t fixed,
                                          int64_t size) {
  std::vector<int64_t> values;
  if (dynamic)
    values = ranks.of(dynamic).vec();
  else
    values.assign(ranks.getDevices().size(), fixed);
  for (int64_t &value : values)
    value = std::clamp(value < 0 ? value + size : value, int64_t(0), size);
  return values;
}

std::optional<SmallVector<int64_t>>
shardc::findOwnParts(aten::SliceOp slice, GroupAttrInterface group, RankValues &ranks) {
  int64_t size = cast<RankedTensorType>(slice.getSelf().getType()).getDimSize(slice.getDim());
  if (slice.getStep() != 1 || ShapedType::isDynamic(size))
    return std::nullopt;
  std::vector<int64_t> starts =
      boundByDevice(ranks, slice.getStart(), slice.getStaticStart(), size);
  std::vector<int64_t> ends = boundByDevice(ranks, slice.getEnd(), slice.getStaticEnd(), size);
  Devices &devices = ranks.getDevices();
  if (starts.empty() || ends.empty())
    return std::nullopt;
  SmallVector<int64_t> extents(group.getGroupSize(), -1);
  for (int64_t device = 0; device < devices.size(); ++device) {
    std::optional<int64_t> position = devices.position(group, device);
    int64_t extent = std::max(int64_t(0), ends[device] - starts[device]);
    if (!position || (extents[*position] >= 0 && extents[*position] != extent))
      return std::nullopt;
    extents[*position] = extent;
  }
  if (llvm::is_contained(extents, -1))
    return std::nullopt;
  SmallVector<int64_t> begins = beginnings(extents);
  if (begins.back() + extents.back() != size)
    return std::nullopt;
  for (int64_t device = 0; device < devices.size(); ++device) {
    int64_t position = *devices.position(group, device);
    if (extents[position] != 0 && starts[device] != begins[position])
      return std::nullopt;
  }
  return extents;
}

namespace {

/// slice(all_gather x, own part) -> x
struct GatherThenSlice : SimplifyRule<aten::SliceOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(aten::SliceOp op, PatternRewriter &rewriter) const override {
    auto gather = singleCollective<AllGatherOp>(op.getSelf());
    if (!gather || gather.getDims()[0] != static_cast<int64_t>(op.getDim()) ||
        gather.getTensors()[0].getType() != op.getType())
      return failure();
    CollectiveOpInterface collective(gather);
    std::optional<SmallVector<int64_t>> held = extentsByPosition(
        collective.getConcatExtents(0), collective.getResultTensorType(0).getDimSize(op.getDim()),
        gather.getGroup().getGroupSize());
    if (!held || held != findOwnParts(op, gather.getGroup(), around.ranks))
      return failure();
    rewriter.replaceOp(op, gather.getTensors()[0]);
    return success();
  }
};

/// all_gather of a value that all ranks hold -> copies side by side
struct GatherOfReplicated : SimplifyRule<AllGatherOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(AllGatherOp op, PatternRewriter &rewriter) const override {
    if (!singleCollective<AllGatherOp>(op->getNumResults() ? op->getResult(0) : Value()))
      return failure();
    Value tensor = op.getTensors()[0];
    auto type = cast<RankedTensorType>(tensor.getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t dim = op.getDims()[0], size = op.getGroup().getGroupSize();
    // Of one size everywhere, or it would not be one value.
    if (!type.hasStaticShape() || result.getDimSize(dim) != type.getDimSize(dim) * size ||
        !around.uniformity.isUniform(tensor, op.getGroup()))
      return failure();
    SmallVector<Value> copies(size, tensor);
    rewriter.replaceOpWithNewOp<aten::CatOp>(op, result, copies, dim);
    return success();
  }
};

/// The sum, average, ... of `count` equal values; null where there is no op for it.
Value reduceEqual(Emitter &emit, Value value, Reduction reduction, int64_t count) {
  Type elementType = cast<RankedTensorType>(value.getType()).getElementType();
  switch (reduction) {
  case Reduction::Sum:
    if (elementType.isInteger(1))
      return nullptr;
    return emit.mul(value, emit.integer(count, elementType));
  case Reduction::Avg:
  case Reduction::Min:
  case Reduction::Max:
    return value;
  default:
    return nullptr;
  }
}

/// all_reduce sum of a value that all n ranks hold -> n times the value
struct ReduceOfReplicated : SimplifyRule<AllReduceOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(AllReduceOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || CollectiveOpInterface(op).isAsync() ||
        !around.uniformity.isUniform(op.getTensors()[0], op.getGroup()))
      return failure();
    Emitter emit(rewriter, op.getLoc());
    Value value = reduceEqual(emit, op.getTensors()[0], op.getReduction().getValue(),
                              op.getGroup().getGroupSize());
    if (!value)
      return failure();
    rewriter.replaceOp(op, value);
    return success();
  }
};

/// reduce_scatter sum of a value that all n ranks hold -> n times the rank's own part
struct ScatterOfReplicated : SimplifyRule<ReduceScatterOp> {
  using SimplifyRule::SimplifyRule;
  LogicalResult apply(ReduceScatterOp op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || CollectiveOpInterface(op).isAsync() ||
        !around.uniformity.isUniform(op.getTensors()[0], op.getGroup()))
      return failure();
    Value tensor = op.getTensors()[0];
    int64_t dim = op.getDims()[0];
    std::optional<SmallVector<int64_t>> extents = extentsByPosition(
        CollectiveOpInterface(op).getSplitExtents(0),
        cast<RankedTensorType>(tensor.getType()).getDimSize(dim), op.getGroup().getGroupSize());
    Devices &devices = around.ranks.getDevices();
    std::vector<int64_t> starts, ends;
    for (int64_t device = 0; extents && device < devices.size(); ++device) {
      std::optional<int64_t> position = devices.position(op.getGroup(), device);
      if (!position)
        return failure();
      starts.push_back(beginnings(*extents)[*position]);
      ends.push_back(starts.back() + (*extents)[*position]);
    }
    if (starts.empty() || !isSupported(op))
      return failure();
    Emitter emit(rewriter, op.getLoc());
    Value part = emit.slice(tensor, dim, around.ranks.build(rewriter, op.getLoc(), starts),
                            around.ranks.build(rewriter, op.getLoc(), ends));
    part.setType(cast<RankedTensorType>(op->getResult(0).getType()));
    rewriter.replaceOp(
        op, reduceEqual(emit, part, op.getReduction().getValue(), op.getGroup().getGroupSize()));
    return success();
  }

  static bool isSupported(ReduceScatterOp op) {
    Reduction reduction = op.getReduction().getValue();
    auto type = cast<RankedTensorType>(op.getTensors()[0].getType());
    return reduction == Reduction::Sum ? !type.getElementType().isInteger(1)
                                       : reduction != Reduction::Prod;
  }
};

} // namespace

void shardc::populateReplicatedRules(RewritePatternSet &patterns, SimplifyContext &around,
                                     SimplifyCounts counts) {
  MLIRContext *context = patterns.getContext();
  patterns.add<GatherThenSlice>(context, around, counts.gatherSlices);
  patterns.add<GatherOfReplicated>(context, around, counts.gatherReplicated);
  patterns.add<ReduceOfReplicated, ScatterOfReplicated>(context, around, counts.reduceReplicated);
}
