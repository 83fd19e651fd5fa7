// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/Transfers.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

static Transfer makeTransfer(CollectiveOpInterface op, unsigned tensor, const TensorSizes &sizes) {
  Transfer transfer;
  transfer.tensor = op.getTensors()[tensor];
  transfer.result = op.getResultTensorType(tensor);
  transfer.concatDim = op.getConcatDim(tensor);
  transfer.splitDim = op.getSplitDim(tensor);
  transfer.concatExtents = SmallVector<int64_t>(op.getConcatExtents(tensor));
  transfer.splitExtents = SmallVector<int64_t>(op.getSplitExtents(tensor));
  llvm::append_range(transfer.sizes, sizes.splitExtents);
  llvm::append_range(transfer.sizes, sizes.concatExtents);
  if (sizes.full)
    transfer.sizes.push_back(sizes.full);
  return transfer;
}

SmallVector<Transfer> shardc::getTransfers(CollectiveOpInterface op) {
  SmallVector<Transfer> transfers;
  for (auto [i, sizes] : llvm::enumerate(getTensorSizes(op)))
    transfers.push_back(makeTransfer(op, i, sizes));
  return transfers;
}

Transfer shardc::getTransfer(CollectiveOpInterface op, unsigned tensor) {
  return makeTransfer(op, tensor, getTensorSizes(op)[tensor]);
}

namespace {
/// The operands and attributes that collectives are built of.
struct Parts {
  Parts(OpBuilder &builder, ArrayRef<Transfer> transfers, bool async) : builder(builder) {
    for (const Transfer &transfer : transfers) {
      tensors.push_back(transfer.tensor);
      llvm::append_range(sizes, transfer.sizes);
      types.push_back(async ? Type(FutureType::get(transfer.result)) : Type(transfer.result));
      concatDims.push_back(transfer.concatDim);
      splitDims.push_back(transfer.splitDim);
      concat.push_back(builder.getDenseI64ArrayAttr(transfer.concatExtents));
      split.push_back(builder.getDenseI64ArrayAttr(transfer.splitExtents));
      hasConcat |= !transfer.concatExtents.empty();
      hasSplit |= !transfer.splitExtents.empty();
    }
  }
  DenseI64ArrayAttr concatDimsAttr() { return builder.getDenseI64ArrayAttr(concatDims); }
  DenseI64ArrayAttr splitDimsAttr() { return builder.getDenseI64ArrayAttr(splitDims); }
  /// Null where every list is that of chunks.
  ArrayAttr concatExtents() { return hasConcat ? builder.getArrayAttr(concat) : ArrayAttr(); }
  ArrayAttr splitExtents() { return hasSplit ? builder.getArrayAttr(split) : ArrayAttr(); }

  OpBuilder &builder;
  SmallVector<Value> tensors, sizes;
  SmallVector<Type> types;
  SmallVector<int64_t> concatDims, splitDims;
  SmallVector<Attribute> concat, split;
  bool hasConcat = false, hasSplit = false;
};
} // namespace

CollectiveOpInterface shardc::buildCollective(OpBuilder &builder, Location location,
                                              CollectiveOpInterface like, GroupAttrInterface group,
                                              ArrayRef<Transfer> transfers, bool async) {
  Parts p(builder, transfers, async);
  Operation *made =
      llvm::TypeSwitch<Operation *, Operation *>(like.getOperation())
          .Case([&](AllReduceOp op) {
            return AllReduceOp::create(builder, location, p.types, op.getReductionAttr(), p.tensors,
                                       group);
          })
          .Case([&](AllGatherOp) {
            return AllGatherOp::create(builder, location, p.types, p.tensors, p.sizes, group,
                                       p.concatDimsAttr(), p.concatExtents());
          })
          .Case([&](ReduceScatterOp op) {
            return ReduceScatterOp::create(builder, location, p.types, op.getReductionAttr(),
                                           p.tensors, p.sizes, group, p.splitDimsAttr(),
                                           p.splitExtents());
          })
          .Case([&](AllToAllOp) {
            return AllToAllOp::create(builder, location, p.types, p.tensors, p.sizes, group,
                                      p.splitDimsAttr(), p.concatDimsAttr(), p.splitExtents(),
                                      p.concatExtents());
          })
          .Case([&](BroadcastOp op) {
            return BroadcastOp::create(builder, location, p.types, p.tensors, group, op.getRoot());
          })
          .Case([&](PermuteOp op) {
            return PermuteOp::create(builder, location, p.types, p.tensors, p.sizes, group,
                                     op.getPairsAttr(), p.concatDimsAttr(), p.concatExtents());
          });
  return cast<CollectiveOpInterface>(made);
}

Value shardc::buildAllGather(OpBuilder &builder, Location location, GroupAttrInterface group,
                             const Transfer &transfer) {
  Parts p(builder, transfer, /*async=*/false);
  return AllGatherOp::create(builder, location, p.types, p.tensors, p.sizes, group,
                             p.concatDimsAttr(), p.concatExtents())
      .getResult(0);
}

Value shardc::buildReduceScatter(OpBuilder &builder, Location location, GroupAttrInterface group,
                                 Reduction reduction, const Transfer &transfer) {
  Parts p(builder, transfer, /*async=*/false);
  return ReduceScatterOp::create(builder, location, p.types,
                                 ReductionAttr::get(builder.getContext(), reduction), p.tensors,
                                 p.sizes, group, p.splitDimsAttr(), p.splitExtents())
      .getResult(0);
}

Value shardc::buildAllReduce(OpBuilder &builder, Location location, GroupAttrInterface group,
                             Reduction reduction, Value tensor) {
  return AllReduceOp::create(builder, location, TypeRange{tensor.getType()},
                             ReductionAttr::get(builder.getContext(), reduction),
                             ValueRange{tensor}, group)
      .getResult(0);
}

std::optional<SmallVector<int64_t>> shardc::extentsByPosition(ArrayRef<int64_t> list, int64_t full,
                                                              int64_t groupSize) {
  if (!list.empty()) {
    if (llvm::any_of(list, ShapedType::isDynamic))
      return std::nullopt;
    return SmallVector<int64_t>(list);
  }
  if (ShapedType::isDynamic(full))
    return std::nullopt;
  int64_t chunk = (full + groupSize - 1) / groupSize; // (L3)
  SmallVector<int64_t> extents;
  for (int64_t position = 0; position < groupSize; ++position)
    extents.push_back(std::clamp(full - position * chunk, int64_t(0), chunk));
  return extents;
}
