// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// torch.distributed's functional collectives: each starts one, and its results are futures.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/GroupRanks.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

// What all of them have.
struct Start {
  SmallVector<Value> tensors;
  dist::GroupAttrInterface group;
  SmallVector<Type> results; // futures
};

FailureOr<Start> readStart(Call &call) {
  Start start;
  StringRef operand = call.schema.find("inputs") ? "inputs" : "input";
  if (operand == "inputs") {
    FailureOr<SmallVector<Value>> list = call.tensors(operand);
    if (failed(list))
      return failure();
    start.tensors = std::move(*list);
  } else {
    FailureOr<Value> tensor = call.tensor(operand);
    if (failed(tensor))
      return failure();
    start.tensors.push_back(*tensor);
  }
  auto *name = std::get_if<std::string_view>(call.find("group_name"));
  if (name && call.groups)
    start.group = dyn_cast_or_null<dist::GroupAttrInterface>(call.groups->lookup(*name));
  if (!start.group)
    return call.error() << "its group is not known";
  if (start.tensors.size() != call.results.size() || llvm::is_contained(start.tensors, Value()))
    return call.error() << "it has " << start.tensors.size() << " operands and "
                        << call.results.size() << " results";
  for (const TensorMeta *meta : call.results) {
    RankedTensorType type = convertType(call.builder.getContext(), *meta);
    start.results.push_back(dist::FutureType::get(type));
  }
  return start;
}

FailureOr<dist::ReductionAttr> readReduction(Call &call) {
  auto *name = std::get_if<std::string_view>(call.find("reduce_op"));
  std::optional<Reduction> reduction =
      llvm::StringSwitch<std::optional<Reduction>>(name ? StringRef(*name) : StringRef())
          .Case("sum", Reduction::Sum)
          .Case("avg", Reduction::Avg)
          .Case("min", Reduction::Min)
          .Case("max", Reduction::Max)
          .Case("product", Reduction::Prod)
          .Default(std::nullopt);
  if (!reduction)
    return call.error() << "the reduction '" << (name ? StringRef(*name) : "?")
                        << "' is not supported";
  return dist::ReductionAttr::get(call.builder.getContext(), *reduction);
}

bool scalarAmong(Call &call, const Start &start) {
  if (llvm::none_of(start.tensors, [](Value v) { return aten::typeOf(v).getRank() == 0; }))
    return false;
  call.error() << "a 0-dim tensor has no dim to gather or scatter";
  return true;
}

Results resultsOf(Operation *op) { return Results(op->getResults()); }

} // namespace

FailureOr<Results> buildAllGather(Call &call) {
  FailureOr<Start> start = readStart(call);
  if (failed(start) || scalarAmong(call, *start))
    return failure();
  SmallVector<Value> sizes;
  for (unsigned i = 0; i < start->results.size(); ++i) {
    auto type = cast<dist::FutureType>(start->results[i]).getTensorType();
    if (type.getRank() == 0 || !type.isDynamicDim(0))
      continue;
    FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes(i);
    if (failed(shape))
      return failure();
    sizes.push_back(cast<Value>(shape->front()));
  }
  SmallVector<int64_t> dims(start->tensors.size(), 0);
  return resultsOf(dist::AllGatherOp::create(call.builder, call.loc, start->results, start->tensors,
                                             sizes, start->group,
                                             call.builder.getDenseI64ArrayAttr(dims), ArrayAttr()));
}

FailureOr<Results> buildReduceScatter(Call &call) {
  FailureOr<Start> start = readStart(call);
  FailureOr<dist::ReductionAttr> reduction = readReduction(call);
  if (failed(start) || failed(reduction) || scalarAmong(call, *start))
    return failure();
  SmallVector<int64_t> dims(start->tensors.size(), 0);
  return resultsOf(dist::ReduceScatterOp::create(
      call.builder, call.loc, start->results, *reduction, start->tensors, ValueRange(),
      start->group, call.builder.getDenseI64ArrayAttr(dims), ArrayAttr()));
}

FailureOr<Results> buildAllReduce(Call &call) {
  FailureOr<Start> start = readStart(call);
  FailureOr<dist::ReductionAttr> reduction = readReduction(call);
  if (failed(start) || failed(reduction))
    return failure();
  return resultsOf(dist::AllReduceOp::create(call.builder, call.loc, start->results, *reduction,
                                             start->tensors, start->group));
}

FailureOr<Results> buildBroadcast(Call &call) {
  FailureOr<Start> start = readStart(call);
  FailureOr<std::optional<int64_t>> root = call.integer("src");
  if (failed(start) || failed(root) || !*root)
    return failure();
  return resultsOf(dist::BroadcastOp::create(call.builder, call.loc, start->results, start->tensors,
                                             start->group, call.builder.getI64IntegerAttr(**root)));
}

FailureOr<Results> buildAllToAll(Call &call) {
  FailureOr<Start> start = readStart(call);
  FailureOr<SmallVector<OpFoldResult>> received = call.sizes("output_split_sizes");
  FailureOr<SmallVector<OpFoldResult>> sent = call.sizes("input_split_sizes");
  if (failed(start) || failed(received) || failed(sent) || scalarAmong(call, *start))
    return failure();
  // Equal pieces are what an all-to-all without lists means.
  auto equal = [](ArrayRef<OpFoldResult> list) {
    return llvm::all_equal(list) && llvm::all_of(list, [](OpFoldResult size) {
             return getConstantIntValue(size).has_value();
           });
  };
  ArrayAttr splits, concats;
  SmallVector<Value> dynamic;
  auto type = aten::typeOf(start->tensors.front());
  auto result = cast<dist::FutureType>(start->results.front()).getTensorType();
  if (!equal(*sent) || !equal(*received) || type != result) {
    auto list = [&](ArrayRef<OpFoldResult> sizes) {
      SmallVector<int64_t> fixed;
      dispatchIndexOpFoldResults(sizes, dynamic, fixed);
      return call.builder.getArrayAttr(call.builder.getDenseI64ArrayAttr(fixed));
    };
    splits = list(*sent);
    concats = list(*received);
  }
  auto dims = call.builder.getDenseI64ArrayAttr({0});
  return resultsOf(dist::AllToAllOp::create(call.builder, call.loc, start->results, start->tensors,
                                            dynamic, start->group, dims, dims, splits, concats));
}

} // namespace shardc::torch_export
