// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Group norm over sharded dims. The channels are (groups, channels of a group), so mesh axes may
// share out whole groups, in any numbers, or the channels inside every group; others may share out
// positions. Where a rank has whole groups and as many as every other, it is the same op. Else it
// is written out: groups become a dim of their own, and the two sums of a group are reduced over
// the ranks that share it and divided by the global count (G6), in two passes as in
// Normalization.cpp.

#include "passes/localize/ChannelGroups.h"
#include "passes/localize/Models.h"

#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The op on the groups of one rank, where the number of groups and the sizes of the dims allow it.
LocalValues asSameOp(Localizer &localizer, OpBuilder &builder, ValueRange operands,
                     int64_t numGroups) {
  LocalValues values = sameOp(localizer, builder, operands);
  if (succeeded(values))
    cast<aten::GroupNormOp>(values->front().getDefiningOp()).setNumGroups(numGroups);
  return values;
}

struct GroupNormModel : LocalizeModel<GroupNormModel, aten::GroupNormOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::GroupNormOp op,
                         ValueRange operands) {
    int64_t rank = localizer.globalOperandType(0).getRank();
    auto numGroups = static_cast<int64_t>(op.getNumGroups());
    SmallVector<int64_t> positions = llvm::to_vector(llvm::seq<int64_t>(2, rank));
    SmallVector<unsigned> axes = localizer.operandAxes(0, positions);
    if (axes.empty() && localizer.operandAxes(0, 1).empty())
      return sameOp(localizer, builder, operands);
    FailureOr<ChannelGroups> local =
        localGroups(localizer, builder, localizer.operandSize(builder, 0, 1),
                    localizer.operandLayout(0)->splitOfDim(1), numGroups);
    if (failed(local))
      return failure();
    llvm::append_range(axes, local->sharedBy);
    std::optional<int64_t> fixed = getConstantIntValue(local->groups);
    if (axes.empty() && fixed)
      return asSameOp(localizer, builder, operands, *fixed);
    llvm::sort(axes);
    return writtenOut(localizer, builder, op, operands, *local, axes);
  }

  static LocalValues writtenOut(Localizer &localizer, OpBuilder &builder, aten::GroupNormOp op,
                                ValueRange operands, const ChannelGroups &local,
                                ArrayRef<unsigned> axes) {
    Emitter emit = localizer.emitter(builder);
    Type resultType = localizer.localResultType(0).getElementType();
    Type type = Emitter::accumulator(resultType);
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    SmallVector<OpFoldResult> grouped{sizes[0], local.groups, local.channels};
    llvm::append_range(grouped, ArrayRef(sizes).drop_front(2));
    auto ofGroup = llvm::to_vector(llvm::seq<int64_t>(2, static_cast<int64_t>(grouped.size())));
    Value count = countOf(localizer, builder, static_cast<int64_t>(op.getNumGroups()), type);
    // In the order of aten.mean, as in Normalization.cpp.
    auto mean = [&](Value x) {
      Value mean = emit.div(emit.sum(x, ofGroup, /*keepdim=*/true), count);
      return axes.empty() ? mean : localizer.allReduce(builder, mean, axes, Reduction::Sum);
    };
    Value x = emit.view(emit.cast(operands[0], type), grouped);
    Value centered = emit.sub(x, mean(x));
    Value variance = mean(emit.mul(centered, centered));
    Value eps = emit.scalar(op.getEps().convertToDouble(), type);
    Value y = emit.mul(centered, emit.unary<aten::RsqrtOp>(emit.add(variance, eps)));
    y = emit.view(y, sizes);
    // By channel, and the same for all positions.
    SmallVector<OpFoldResult> perChannel(sizes.size() - 1, builder.getIndexAttr(1));
    perChannel.front() = sizes[1];
    unsigned next = 1;
    if (op.getWeight())
      y = emit.mul(y, emit.view(emit.cast(operands[next++], type), perChannel));
    if (op.getBias())
      y = emit.add(y, emit.view(emit.cast(operands[next], type), perChannel));
    return single(emit.cast(y, resultType));
  }

  /// Elements of a group, on all ranks together, as a 0-dim tensor.
  static Value countOf(Localizer &localizer, OpBuilder &builder, int64_t numGroups, Type type) {
    int64_t rank = localizer.globalOperandType(0).getRank();
    OpFoldResult all =
        localizer.globalCount(builder, 0, llvm::to_vector(llvm::seq<int64_t>(1, rank)));
    Emitter emit = localizer.emitter(builder);
    if (std::optional<int64_t> fixed = getConstantIntValue(all))
      return emit.scalar(static_cast<double>(*fixed / numGroups), type);
    LocalIndices indices = localizer.indices(builder);
    return emit.ofIndex(indices.ceilDiv(cast<Value>(all), indices.constant(numGroups)), type);
  }
};

} // namespace

void shardc::attachGroupNormModels(MLIRContext *context) {
  attachModel<aten::GroupNormOp, GroupNormModel>(context);
}
