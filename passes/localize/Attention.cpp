// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention with sharded batch, heads and queries. Keys stay whole: their softmax would need a
// combination of partial results, which this op's local form does not have. In the backward, what a
// rank's queries make for all keys is a partial sum.

#include "passes/localize/Models.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

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

/// The op with queries that are some of all, of which operand `queryNumber` is the first, followed
/// by key and value. Where it is causal, it is told where the rank's queries are among the keys;
/// where they are no range, a mask says which keys each query sees.
template <typename OpT> class WithLocalQueries {
public:
  WithLocalQueries(Localizer &localizer, OpBuilder &builder, OpT op, unsigned queryNumber)
      : localizer(localizer), builder(builder), op(op), queryNumber(queryNumber),
        queryDim(sequenceDim(localizer, queryNumber)) {}

  LocalValues run(ValueRange operands) {
    LocalValues results = sameOp(localizer, builder, operands);
    bool isWhole = localizer.operandAxes(queryNumber, queryDim).empty();
    if (failed(results) || !op.getIsCausal() || isWhole ||
        succeeded(setQueries(cast<OpT>(results->front().getDefiningOp()))))
      return results;
    return failure();
  }

private:
  LogicalResult setQueries(OpT local) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(local);
    LocalIndices indices = localizer.indices(builder);
    Value offset = indices.offset(localizer.operandSize(builder, queryNumber, queryDim),
                                  localizer.operandLayout(queryNumber)->splitOfDim(queryDim));
    if (offset) {
      OpFoldResult before = local.getMixedFirst();
      bool isFirst = isZeroInteger(before);
      setFirst(local, isFirst ? offset : indices.add(valueOf(before), offset));
      return success();
    }
    if (op.getAttnMask()) {
      localizer.refuse()
          << "is causal and has a mask, too, and a rank's queries are no range; make "
             "the mask causal";
      return failure();
    }
    local.getAttnMaskMutable().assign(maskByPosition(local.getMixedFirst()));
    local.setIsCausal(false);
    setFirst(local, {});
    return success();
  }

  void setFirst(OpT local, Value first) {
    local.setStaticFirst(first ? ShapedType::kDynamic : 0);
    local.getFirstMutable().clear();
    if (first)
      local.getFirstMutable().assign(first);
  }

  Value valueOf(OpFoldResult index) {
    return getValueOrCreateConstantIndexOp(builder, op.getLoc(), index);
  }

  /// [queries, keys]: query i sees keys j <= first + i, with i its global position.
  Value maskByPosition(OpFoldResult first) {
    Emitter emit = localizer.emitter(builder);
    unsigned keyNumber = queryNumber + 1;
    int64_t keyDim = sequenceDim(localizer, keyNumber);
    Value query =
        globalRange(localizer, builder, localizer.operandSize(builder, queryNumber, queryDim),
                    localizer.operandLayout(queryNumber)->splitOfDim(queryDim));
    if (!isZeroInteger(first))
      query = emit.add(query, emit.ofIndex(valueOf(first), builder.getI64Type()));
    Value key = globalRange(localizer, builder, localizer.operandSize(builder, keyNumber, keyDim),
                            DimSplit());
    OpFoldResult rows = localizer.operandSizes(builder, queryNumber)[queryDim];
    OpFoldResult columns = localizer.operandSizes(builder, keyNumber)[keyDim];
    return emit.binary<aten::LeOp>(alongDim(emit, key, columns, 1, 2),
                                   alongDim(emit, query, rows, 0, 2));
  }

  Localizer &localizer;
  OpBuilder &builder;
  OpT op;
  unsigned queryNumber;
  int64_t queryDim;
};

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
    return WithLocalQueries<OpT>(localizer, builder, op, /*queryNumber=*/0).run(operands);
  }
};

struct AttentionBackwardModel
    : LocalizeModel<AttentionBackwardModel, aten::ScaledDotProductFlashAttentionBackwardOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder,
                         aten::ScaledDotProductFlashAttentionBackwardOp op, ValueRange operands) {
    if (failed(checkDropout(localizer, op.getDropoutP())) ||
        (op.getEnableGqa() && failed(checkHeads(localizer, /*queryNumber=*/1))))
      return failure();
    return WithLocalQueries<aten::ScaledDotProductFlashAttentionBackwardOp>(localizer, builder, op,
                                                                            /*queryNumber=*/1)
        .run(operands);
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
