// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention with sharded batch, heads and queries. Keys stay whole: their softmax would need a
// combination of partial results, which this op's local form does not have. In the backward, what a
// rank's queries make for all keys is a partial sum.

#include "passes/localize/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

/// With grouped queries, every rank must find the keys of query head i at its own head i / (query
/// heads / key heads).
LogicalResult checkHeads(Localizer &localizer, unsigned queryNumber) {
  int64_t dim = localizer.globalOperandType(queryNumber).getRank() - 3;
  SplitDim query = localizer.operandDim(queryNumber, dim),
           key = localizer.operandDim(queryNumber + 1, dim);
  if (query.split.empty() && key.split.empty())
    return success();
  auto refuse = [&] {
    localizer.refuse() << "a rank has queries without the heads of keys that they attend to";
    return failure();
  };
  if (query.size == 0)
    return success();
  if (query.size == kDynamic || key.size == kDynamic || key.size == 0 || query.size % key.size != 0)
    return refuse();
  const Mesh &mesh = localizer.getMesh().getValue();
  for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p) {
    Coordinate coordinate = mesh.coordinateOfPosition(p);
    std::vector<Run> queries = query.split.runs(query.size, coordinate);
    std::vector<Run> keys = key.split.runs(key.size, coordinate);
    int64_t have = query.split.extent(query.size, coordinate);
    int64_t heads = key.split.extent(key.size, coordinate);
    if (have == 0)
      continue;
    if (heads == 0 || have % heads != 0)
      return refuse();
    for (int64_t i = 0; i < have; ++i)
      if (globalIndexOf(keys, i / (have / heads)) !=
          globalIndexOf(queries, i) / (query.size / key.size))
        return refuse();
  }
  return success();
}

LogicalResult checkDropout(Localizer &localizer, const llvm::APFloat &dropout) {
  if (dropout.isZero())
    return success();
  localizer.refuse() << "attention with dropout draws random numbers; export the model in "
                        "evaluation mode";
  return failure();
}

/// Query, key and value may differ in the number of dims in front.
int64_t sequenceDim(Localizer &localizer, unsigned operand) {
  return localizer.globalOperandType(operand).getRank() - 2;
}

/// [queries, keys]: query i sees keys j <= i, with i its global position.
Value maskByPosition(Localizer &localizer, OpBuilder &builder, unsigned queryNumber,
                     unsigned keyNumber) {
  Emitter emit = localizer.emitter(builder);
  int64_t queries = sequenceDim(localizer, queryNumber), keys = sequenceDim(localizer, keyNumber);
  Value query =
      globalRange(localizer, builder, localizer.operandSize(builder, queryNumber, queries),
                  localizer.operandLayout(queryNumber)->splitOfDim(queries));
  Value key =
      globalRange(localizer, builder, localizer.operandSize(builder, keyNumber, keys), DimSplit());
  OpFoldResult rows = localizer.operandSizes(builder, queryNumber)[queries];
  OpFoldResult columns = localizer.operandSizes(builder, keyNumber)[keys];
  return emit.binary<aten::LeOp>(alongDim(emit, key, columns, 1, 2),
                                 alongDim(emit, query, rows, 0, 2));
}

/// The op with queries that are some of all, of which operand `queryNumber` is the first, followed
/// by the keys: where it is causal, a mask says which keys each query sees.
template <typename OpT>
LocalValues withLocalQueries(Localizer &localizer, OpBuilder &builder, OpT op, ValueRange operands,
                             unsigned queryNumber) {
  if (!op.getIsCausal() ||
      localizer.operandAxes(queryNumber, sequenceDim(localizer, queryNumber)).empty())
    return sameOp(localizer, builder, operands);
  if (op.getAttnMask()) {
    localizer.refuse() << "is causal and has a mask, too; make the mask causal";
    return failure();
  }
  OperationState state(op.getLoc(), op->getName());
  state.addOperands(operands);
  state.addOperands(maskByPosition(localizer, builder, queryNumber, queryNumber + 1));
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    state.addTypes(localizer.localResultType(i));
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase(op.getIsCausalAttrName());
  state.addAttributes(attributes);
  return SmallVector<Value>(builder.create(state)->getResults());
}

template <typename OpT> struct AttentionModel : LocalizeModel<AttentionModel<OpT>, OpT> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, OpT op, ValueRange operands) {
    if (failed(checkDropout(localizer, op.getDropoutP())))
      return failure();
    if (!localizer.operandAxes(1, sequenceDim(localizer, 1)).empty() ||
        !localizer.operandAxes(2, sequenceDim(localizer, 2)).empty()) {
      localizer.refuse() << "the sequence of keys and values is sharded; gather it before, and "
                            "shard the queries instead";
      return failure();
    }
    if (op.getEnableGqa() && failed(checkHeads(localizer, /*queryNumber=*/0)))
      return failure();
    return withLocalQueries(localizer, builder, op, operands, /*queryNumber=*/0);
  }
};

struct AttentionBackwardModel
    : LocalizeModel<AttentionBackwardModel, aten::ScaledDotProductFlashAttentionBackwardOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder,
                         aten::ScaledDotProductFlashAttentionBackwardOp op, ValueRange operands) {
    if (failed(checkDropout(localizer, op.getDropoutP())) ||
        (op.getEnableGqa() && failed(checkHeads(localizer, /*queryNumber=*/1))))
      return failure();
    return withLocalQueries(localizer, builder, op, operands, /*queryNumber=*/1);
  }
};

} // namespace

void shardc::attachAttentionModels(MLIRContext *context) {
  attachModel<aten::ScaledDotProductAttentionOp, AttentionModel<aten::ScaledDotProductAttentionOp>>(
      context);
  attachModel<aten::ScaledDotProductFlashAttentionOp,
              AttentionModel<aten::ScaledDotProductFlashAttentionOp>>(context);
  attachModel<aten::ScaledDotProductFlashAttentionBackwardOp, AttentionBackwardModel>(context);
}
