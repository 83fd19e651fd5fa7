// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that rearrange elements and whose arguments need more than a change of form: sizes of
// -1, dims that may or may not go, parts whose number follows from a size.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {

FailureOr<Results> buildView(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(sizes))
    return failure();
  return one(buildView(call.builder, call.loc, *self, *sizes));
}

FailureOr<Results> buildExpand(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(sizes))
    return failure();
  return one(buildExpand(call.builder, call.loc, *self, *sizes));
}

FailureOr<Results> buildSqueeze(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  RankedTensorType type = aten::typeOf(*self);
  SmallVector<int64_t> candidates;
  if (call.schema.find("dim")) {
    FailureOr<std::optional<SmallVector<int64_t>>> listed = call.integers("dim");
    if (failed(listed))
      return failure();
    for (int64_t value : **listed) {
      FailureOr<int64_t> dim = call.dim(value, type.getRank());
      if (failed(dim))
        return failure();
      candidates.push_back(*dim);
    }
  } else {
    llvm::append_range(candidates, llvm::seq<int64_t>(0, type.getRank()));
  }
  // PyTorch never exports a symbolic size that may be 1.
  SmallVector<int64_t> dims;
  for (int64_t dim : candidates)
    if (dim < type.getRank() && type.getDimSize(dim) == 1)
      dims.push_back(dim);
  if (dims.empty())
    return Results{*self};
  llvm::sort(dims);
  return one(call.buildOne("aten.squeeze", {{"self", {*self}}}, {call.integersAttr("dim", dims)}));
}

namespace {
/// What most views are made of: a tensor, and a dim of it counted from the front.
struct SelfAndDim {
  Value self;
  int64_t dim;
};
FailureOr<SelfAndDim> selfAndDim(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  if (failed(dim))
    return failure();
  return SelfAndDim{*self, *dim};
}

// The dim that hsplit, vsplit and dsplit cut.
FailureOr<SelfAndDim> selfAndNamedDim(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  int64_t rank = aten::typeOf(*self).getRank();
  char first = call.schema.overload.front();
  return SelfAndDim{*self, first == 'd' ? 2 : first == 'h' && rank > 1 ? 1 : 0};
}
} // namespace

FailureOr<Results> buildTransposeMatrix(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  if (aten::typeOf(*self).getRank() < 2)
    return Results{*self};
  return one(call.buildOne("aten.transpose", {{"self", {*self}}},
                           {call.integerAttr("dim0", 0), call.integerAttr("dim1", 1)}));
}

FailureOr<Results> buildSplit(Call &call) {
  FailureOr<SelfAndDim> along = call.schema.find("dim") ? selfAndDim(call) : selfAndNamedDim(call);
  if (failed(along))
    return failure();
  auto [self, dim] = *along;
  // The sizes of all parts are those that PyTorch recorded.
  aten::NamedOperand dynamic{"split_sizes", {}};
  SmallVector<int64_t> fixed;
  for (unsigned part = 0; part < call.results.size(); ++part) {
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes(part);
    if (failed(sizes))
      return failure();
    if (uint64_t(dim) >= sizes->size())
      return call.error() << "part " << part << " has no dim " << dim;
    OpFoldResult size = (*sizes)[dim];
    std::optional<int64_t> constant = getConstantIntValue(size);
    fixed.push_back(constant.value_or(ShapedType::kDynamic));
    if (!constant)
      dynamic.values.push_back(cast<Value>(size));
  }
  FailureOr<Operation *> op =
      call.build("aten.split_with_sizes", {{"self", {self}}, dynamic},
                 {call.integersAttr("static_split_sizes", fixed), call.integerAttr("dim", dim)});
  if (failed(op))
    return failure();
  return Results((*op)->getResults());
}

FailureOr<Results> buildUnbind(Call &call) {
  FailureOr<SelfAndDim> along = selfAndDim(call);
  if (failed(along))
    return failure();
  auto [self, dim] = *along;
  Results parts;
  for (unsigned i = 0; i < call.results.size(); ++i) {
    FailureOr<Value> part =
        call.buildOne("aten.select", {{"self", {self}}},
                      {call.integerAttr("dim", dim), call.integerAttr("static_index", i)});
    if (failed(part))
      return failure();
    parts.push_back(*part);
  }
  return parts;
}

namespace {

// A position along a dim, counted from the front.
FailureOr<OpFoldResult> position(Call &call, StringRef name, Value tensor, int64_t dim) {
  FailureOr<OpFoldResult> value = call.size(name);
  if (failed(value))
    return failure();
  if (!*value)
    return OpFoldResult(call.builder.getIndexAttr(0));
  std::optional<int64_t> constant = getConstantIntValue(*value);
  if (!constant || *constant >= 0)
    return *value;
  int64_t size = aten::shapeOf(tensor)[dim];
  if (ShapedType::isDynamic(size))
    return call.error() << "the negative argument '" << name
                        << "' counts from the end of a dynamic dim";
  return OpFoldResult(call.builder.getIndexAttr(std::max<int64_t>(*constant + size, 0)));
}

} // namespace

FailureOr<Results> buildSelect(Call &call) {
  // An index that is the element of a tensor is looked up, as `index` does it.
  Value element = call.item("index");
  if (!element)
    return buildByName(call, "aten.select");
  FailureOr<SelfAndDim> along = selfAndDim(call);
  if (failed(along))
    return failure();
  auto [self, dim] = *along;
  if (aten::typeOf(element).getRank() > 0) {
    FailureOr<Value> whole = buildView(call.builder, call.loc, element, {});
    if (failed(whole))
      return failure();
    element = *whole;
  }
  return one(call.buildOne("aten.index", {{"self", {self}}, {"indices", {element}}},
                           {call.integersAttr("indices_at", dim)}));
}

FailureOr<Results> buildNarrow(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  FailureOr<OpFoldResult> length = call.size("length");
  if (failed(dim) || failed(length))
    return failure();
  FailureOr<OpFoldResult> start = position(call, "start", *self, *dim);
  if (failed(start))
    return failure();
  OpFoldResult end = addSizes(call.builder, call.loc, *start, *length);
  return one(buildSlice(call.builder, call.loc, *self, *dim, *start, end));
}

FailureOr<Results> buildSliceScatter(Call &call) {
  FailureOr<Value> self = call.tensor("self"), source = call.tensor("src");
  if (failed(self) || failed(source))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  FailureOr<std::optional<int64_t>> step = call.integer("step");
  if (failed(dim) || failed(step))
    return failure();
  FailureOr<OpFoldResult> start = position(call, "start", *self, *dim);
  if (failed(start))
    return failure();
  if (**step != 1) {
    std::optional<int64_t> first = getConstantIntValue(*start);
    if (!first)
      return call.error() << "a step other than 1 needs a start that is known";
    if (aten::typeOf(*self).isDynamicDim(*dim) || aten::typeOf(*source).isDynamicDim(*dim))
      return call.error() << "a step other than 1 needs known sizes along dim " << *dim;
    return one(buildReplaceSteps(call.builder, call.loc, *self, *dim, *first, **step, *source));
  }
  return one(buildReplaceSlice(call.builder, call.loc, *self, *dim, *start, *source));
}

FailureOr<Results> buildSelectScatter(Call &call) {
  FailureOr<Value> self = call.tensor("self"), source = call.tensor("src");
  if (failed(self) || failed(source))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  if (failed(dim))
    return failure();
  FailureOr<OpFoldResult> start = position(call, "index", *self, *dim);
  FailureOr<Value> part = buildUnsqueeze(call.builder, call.loc, *source, *dim);
  if (failed(start) || failed(part))
    return failure();
  return one(buildReplaceSlice(call.builder, call.loc, *self, *dim, *start, *part));
}

FailureOr<Results> buildRepeat(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  bool isTile = !call.schema.find("repeats");
  FailureOr<SmallVector<OpFoldResult>> repeats = call.sizes(isTile ? "dims" : "repeats");
  FailureOr<SmallVector<OpFoldResult>> whole = call.resultSizes();
  if (failed(self) || failed(repeats) || failed(whole))
    return failure();
  if (call.countsPairs)
    repeats->push_back(call.builder.getIndexAttr(1));
  // [d, ...] as [1, d, ...], then [r, d, ...], then [r * d, ...].
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, *self), apart, repeated;
  // Of a tile, the first dims may be left out.
  if (isTile && repeats->size() < sizes.size())
    repeats->insert(repeats->begin(), sizes.size() - repeats->size(), call.builder.getIndexAttr(1));
  if (repeats->size() < sizes.size())
    return call.error() << "there are fewer repeats than dims";
  sizes.insert(sizes.begin(), repeats->size() - sizes.size(), call.builder.getIndexAttr(1));
  for (auto [count, size] : llvm::zip_equal(*repeats, sizes)) {
    apart.append({call.builder.getIndexAttr(1), size});
    repeated.append({count, size});
  }
  FailureOr<Value> value = buildView(call.builder, call.loc, *self, apart);
  if (succeeded(value))
    value = buildExpand(call.builder, call.loc, *value, repeated);
  if (succeeded(value))
    value = buildView(call.builder, call.loc, *value, *whole);
  return one(value);
}

} // namespace shardc::torch_export
