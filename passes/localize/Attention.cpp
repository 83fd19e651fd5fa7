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

/// Where a rank's queries end, if they are one range and no query is behind the last key: then no
/// query of the rank sees a key from there on, and the last one sees all before. Null otherwise.
Value endOfQueries(Localizer &localizer, OpBuilder &builder, unsigned queryNumber,
                   unsigned keyNumber) {
  int64_t dim = sequenceDim(localizer, queryNumber);
  GlobalSize queries = localizer.operandSize(builder, queryNumber, dim);
  GlobalSize keys = localizer.operandSize(builder, keyNumber, sequenceDim(localizer, keyNumber));
  bool isBehind = queries.size && keys.size && queries.size == keys.size;
  if (queries.fixed() != kDynamic && keys.fixed() != kDynamic)
    isBehind = queries.fixed() <= keys.fixed();
  if (!isBehind)
    return {};
  LocalIndices indices = localizer.indices(builder);
  const DimSplit &split = localizer.operandLayout(queryNumber)->splitOfDim(dim);
  Value first = indices.offset(queries, split);
  return first ? indices.add(first, indices.extent(queries, split)) : Value();
}

/// The op with queries that are some of all, of which operand `queryNumber` is the first, followed
/// by key and value. Where it is causal, the rank takes the keys up to its last query; where that
/// is not possible, a mask says which keys each query sees.
template <typename OpT> class WithLocalQueries {
public:
  WithLocalQueries(Localizer &localizer, OpBuilder &builder, OpT op, unsigned queryNumber)
      : localizer(localizer), builder(builder), op(op), queryNumber(queryNumber) {}

  LocalValues run(ValueRange operands) {
    if (!op.getIsCausal() ||
        localizer.operandAxes(queryNumber, sequenceDim(localizer, queryNumber)).empty())
      return sameOp(localizer, builder, operands);
    if (op.getLowerRight()) {
      localizer.refuse()
          << "counts causal attention from the last query, which only the forms that "
             "ranks compute do";
      return failure();
    }
    if (op.getAttnMask()) {
      localizer.refuse() << "is causal and has a mask, too; make the mask causal";
      return failure();
    }
    SmallVector<Value> with(operands);
    NamedAttrList attributes(op->getAttrDictionary());
    Value end = endOfQueries(localizer, builder, queryNumber, queryNumber + 1);
    if (end) {
      for (unsigned number : {queryNumber + 1, queryNumber + 2})
        with[number] = localizer.emitter(builder).slice(
            with[number], sequenceDim(localizer, number), builder.getIndexAttr(0), end);
      attributes.set(op.getLowerRightAttrName(), builder.getUnitAttr());
    } else {
      with.push_back(maskByPosition(localizer, builder, queryNumber, queryNumber + 1));
      attributes.erase(op.getIsCausalAttrName());
    }
    OperationState state(op.getLoc(), op->getName());
    state.addOperands(with);
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      state.addTypes(typeOf(i, with, bool(end)));
    state.addAttributes(attributes);
    SmallVector<Value> results(builder.create(state)->getResults());
    if (end && isBackward())
      for (unsigned number : {1, 2})
        results[number] = withZeros(results[number], number, end);
    return results;
  }

private:
  static constexpr bool isBackward() {
    return std::is_same_v<OpT, aten::ScaledDotProductFlashAttentionBackwardOp>;
  }

  /// The cotangents of keys and values are those of the keys that the op has.
  Type typeOf(unsigned result, ArrayRef<Value> with, bool hasSomeKeys) {
    if (hasSomeKeys && isBackward() && result > 0)
      return with[queryNumber + result].getType();
    return localizer.localResultType(result);
  }

  /// The cotangents of all keys: zeros for those that no query of the rank sees.
  Value withZeros(Value gradient, unsigned result, Value end) {
    LocalIndices indices = localizer.indices(builder);
    int64_t dim = localizer.globalResultType(result).getRank() - 2;
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, result);
    Value all = indices.global(localizer.resultSize(builder, result, dim));
    sizes[dim] = indices.sub(all, end);
    Emitter emit = localizer.emitter(builder);
    Value joined = emit.cat({gradient, emit.zeros(sizes, aten::elementTypeOf(gradient))}, dim);
    joined.setType(localizer.localResultType(result));
    return joined;
  }

  Localizer &localizer;
  OpBuilder &builder;
  OpT op;
  unsigned queryNumber;
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
