// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that put tensors beside each other, repeat elements, or place them by their positions.
#include "importers/torch_export/import/Formula.h"

#include "dialects/aten/KnownIndices.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// With at least so many dims, as torch.atleast_1d, 2d and 3d add them.
Expr atLeast(Expr x, int64_t dims) {
  if (dims >= 1 && x.rank() == 0)
    x = unsqueeze(x, 0);
  if (dims >= 2 && x.rank() == 1)
    x = unsqueeze(x, 0);
  if (dims >= 3 && x.rank() == 2)
    x = unsqueeze(x, 2);
  return x;
}

FailureOr<Results> joined(Formula &f, ArrayRef<Expr> parts, int64_t dim) {
  Type type = f.call.resultElementType();
  SmallVector<Value> values;
  for (Expr part : parts)
    values.push_back(type ? f.emit.cast(part.value, type) : part.value);
  return f.result(f.op("aten.cat", {{"tensors", values}}, {f.call.integerAttr("dim", dim)}));
}

/// Along `dim` of a tensor of this rank.
Expr along(Formula &f, Expr vector, int64_t dim, int64_t rank) {
  SmallVector<OpFoldResult> shape(rank, f.one());
  shape[dim] = f.sizes(vector).front();
  return view(vector, shape);
}

} // namespace

// hstack, vstack (row_stack), dstack, column_stack
FailureOr<Results> buildStacked(Call &call) {
  Formula f(call);
  SmallVector<Expr> parts = f.tensors("tensors");
  if (f.failed() || parts.empty())
    return failure();
  StringRef name = StringRef(call.schema.overload).split('.').first;
  int64_t dim = 0;
  for (Expr &part : parts) {
    if (name == "column_stack") {
      part = part.rank() < 2 ? unsqueeze(atLeast(part, 1), 1) : part;
      dim = 1;
    } else {
      part = atLeast(part, name == "hstack" ? 1 : name == "dstack" ? 3 : 2);
      dim = name == "dstack" ? 2 : name == "hstack" && part.rank() > 1 ? 1 : 0;
    }
  }
  return joined(f, parts, dim);
}

// Sequences of several lengths beside each other, made equally long.
FailureOr<Results> buildPaddedSequences(Call &call) {
  Formula f(call);
  SmallVector<Expr> sequences = f.tensors("sequences");
  bool isBatchFirst = f.flag("batch_first"), isLeft = f.text("padding_side") == "left";
  double value = f.real("padding_value");
  if (f.failed() || sequences.empty())
    return failure();
  int64_t longest = 0;
  for (Expr one : sequences) {
    int64_t length = aten::shapeOf(one.value).front();
    if (ShapedType::isDynamic(length))
      return call.error() << "needs sequences of known lengths";
    longest = std::max(longest, length);
  }
  SmallVector<Value> padded;
  for (Expr one : sequences) {
    SmallVector<int64_t> widths(2 * one.rank(), 0);
    widths[isLeft ? widths.size() - 2 : widths.size() - 1] =
        longest - aten::shapeOf(one.value).front();
    padded.push_back(f.op("aten.constant_pad_nd", {{"self", {one.value}}},
                          {call.integersAttr("pad", widths), f.realAttr("value", value)})
                         .value);
  }
  return Results{aten::StackOp::create(call.builder, call.loc, padded, isBatchFirst ? 0 : 1)};
}

FailureOr<Results> buildAtLeast(Call &call) {
  Formula f(call);
  bool isList = call.schema.find("tensors");
  SmallVector<Expr> all = isList ? f.tensors("tensors") : SmallVector<Expr>{f.tensor("self")};
  if (f.failed())
    return failure();
  StringRef overload = call.schema.overload; // atleast_2d.Sequence
  Results results;
  for (Expr x : all)
    results.push_back(atLeast(x, overload[overload.find('_') + 1] - '0').value);
  if (isList)
    return results;
  // One op, which the importer takes for a view.
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(sizes))
    return failure();
  Expr self = all.front();
  return Results{static_cast<int64_t>(sizes->size()) == self.rank()
                     ? f.emit.unary<aten::AliasOp>(self.value)
                     : view(self, *sizes).value};
}

FailureOr<Results> buildFlipped(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  int64_t dim = call.schema.overload == "fliplr.default" ? 1 : 0;
  return f.result(flip(self, dim));
}

FailureOr<Results> buildMeshgrid(Call &call) {
  Formula f(call);
  SmallVector<Expr> parts = f.tensors("tensors");
  if (f.failed())
    return failure();
  bool isColumnsFirst = call.schema.find("indexing") && f.text("indexing") == "xy";
  auto rank = static_cast<int64_t>(parts.size());
  Results results;
  for (auto [i, part] : llvm::enumerate(parts)) {
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes(unsigned(i));
    if (failed(sizes))
      return failure();
    auto dim = static_cast<int64_t>(i);
    if (isColumnsFirst && rank >= 2 && dim < 2)
      dim = 1 - dim;
    results.push_back(expand(along(f, atLeast(part, 1), dim, rank), *sizes).value);
  }
  return results;
}

// Every combination of one element of each, the last one changing fastest.
FailureOr<Results> buildCartesianProduct(Call &call) {
  Formula f(call);
  SmallVector<Expr> parts = f.tensors("tensors");
  if (f.failed() || parts.empty())
    return failure();
  if (parts.size() == 1)
    return f.result(parts.front());
  SmallVector<OpFoldResult> sizes;
  for (Expr part : parts)
    sizes.push_back(f.sizes(part).front());
  auto rank = static_cast<int64_t>(parts.size());
  SmallVector<Expr> columns;
  for (auto [i, part] : llvm::enumerate(parts)) {
    Expr whole = expand(along(f, part, static_cast<int64_t>(i), rank), sizes);
    columns.push_back(view(whole, {f.product(sizes), f.one()}));
  }
  return joined(f, columns, 1);
}

// A class that is none of them is an error of the run: it is looked up among them.
FailureOr<Results> buildOneHot(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  Type i64 = call.builder.getI64Type();
  Expr x = cast(self, i64), range = f.range(sizes->back());
  std::optional<int64_t> count = getConstantIntValue(sizes->back());
  if (!count || !aten::areIndicesBelow(self.value, *count)) {
    Expr at = where(lt(x, 0), f.number(sizes->back(), i64), x);
    x = f.op("aten.index", {{"self", {range.value}}, {"indices", {at.value}}},
             {call.integersAttr("indices_at", 0)});
  }
  return f.result(eq(unsqueeze(x, x.rank()), along(f, range, x.rank(), x.rank() + 1)));
}

FailureOr<Results> buildTakeAlong(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self"), indices = f.tensor("indices");
  if (f.failed())
    return failure();
  if (call.isNone("dim")) {
    self = view(self, f.product(f.sizes(self)));
    indices = view(indices, f.product(f.sizes(indices)));
  }
  int64_t dim = call.isNone("dim") ? 0 : f.dim("dim", self.rank());
  if (f.failed())
    return failure();
  // The other dims broadcast.
  SmallVector<OpFoldResult> of = f.sizes(self), at = f.sizes(indices);
  if (of.size() != at.size())
    return call.error() << "self and indices have different numbers of dims";
  auto isOne = [](OpFoldResult size) { return getConstantIntValue(size) == 1; };
  for (size_t i = 0; i < of.size(); ++i) {
    if (static_cast<int64_t>(i) == dim)
      continue;
    OpFoldResult size = isOne(of[i]) ? at[i] : of[i];
    of[i] = at[i] = size;
  }
  return f.result(f.op("aten.gather",
                       {{"self", {expand(self, of).value}}, {"index", {expand(indices, at).value}}},
                       {call.integerAttr("dim", dim)}));
}

namespace {
/// The elements of two dims whose positions differ by `above`, as the last dim, of this length.
FailureOr<Expr> diagonalOf(Formula &f, Expr self, int64_t row, int64_t column, int64_t above,
                           OpFoldResult length) {
  if (self.rank() < 2 || row == column)
    return f.call.error() << "a diagonal needs two dims";
  if (!getConstantIntValue(length))
    return f.call.error() << "a diagonal of unknown length is not supported";
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < self.rank(); ++i)
    if (i != row && i != column)
      order.push_back(i);
  int64_t others = static_cast<int64_t>(order.size());
  order.append({row, column});
  Expr steps = f.range(length);
  auto number = [&](int64_t x) { return f.of(f.emit.integer(x, f.call.builder.getI64Type())); };
  Expr rows = steps + number(std::max<int64_t>(-above, 0)),
       columns = steps + number(std::max<int64_t>(above, 0));
  return f.op("aten.index",
              {{"self", {f.permute(self, order).value}}, {"indices", {rows.value, columns.value}}},
              {f.call.integersAttr("indices_at", {others, others + 1})});
}
} // namespace

FailureOr<Results> buildDiagonal(Call &call) {
  Formula f(call);
  Expr self = f.tensor(call.schema.find("A") ? "A" : "self");
  int64_t above = f.integer("offset", 0);
  if (f.failed())
    return failure();
  int64_t row = f.dim("dim1", self.rank()), column = f.dim("dim2", self.rank());
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  if (sizes->empty())
    return call.error() << "a diagonal has a dim";
  FailureOr<Expr> diagonal = diagonalOf(f, self, row, column, above, sizes->back());
  if (failed(diagonal))
    return failure();
  return f.result(*diagonal);
}

FailureOr<Results> buildTrace(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  Type type = call.resultElementType();
  if (f.failed() || !type)
    return failure();
  if (self.rank() != 2)
    return call.error() << "a trace is one of a matrix";
  SmallVector<OpFoldResult> sizes = f.sizes(self);
  std::optional<int64_t> rows = getConstantIntValue(sizes[0]),
                         columns = getConstantIntValue(sizes[1]);
  if (!rows || !columns)
    return call.error() << "a diagonal of unknown length is not supported";
  FailureOr<Expr> diagonal =
      diagonalOf(f, self, 0, 1, 0, call.builder.getIndexAttr(std::min(*rows, *columns)));
  if (failed(diagonal))
    return failure();
  return f.result(sum(cast(*diagonal, type), 0, /*keepdim=*/false));
}

// Of a vector, the matrix with it on a diagonal; of a matrix, its diagonal.
FailureOr<Results> buildDiagonalMatrix(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  int64_t above = f.integer(call.schema.find("offset") ? "offset" : "diagonal");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  bool isFlat = call.schema.overload == "diagflat.default";
  if (isFlat)
    self = view(self, f.product(f.sizes(self)));
  if (self.rank() == 2) {
    FailureOr<Expr> diagonal = diagonalOf(f, self, 0, 1, above, sizes->front());
    if (failed(diagonal))
      return failure();
    return f.result(*diagonal);
  }
  Expr rows = along(f, f.range((*sizes)[0]), 0, 2), columns = along(f, f.range((*sizes)[1]), 1, 2);
  Expr isIt = eq(columns - rows, f.of(f.emit.integer(above, call.builder.getI64Type())));
  // Zeros before or behind it, so that its elements stand in their columns.
  Expr inColumns = pad(self, 0, std::max<int64_t>(above, 0), std::max<int64_t>(-above, 0));
  return f.result(where(isIt, unsqueeze(inColumns, 0), 0));
}

namespace {
/// Without a dim, of all elements in a row.
Expr flatUnlessDim(Formula &f, Expr x, int64_t &dim) {
  if (!f.call.isNone("dim")) {
    dim = f.dim("dim", x.rank());
    return x;
  }
  dim = 0;
  return view(x, f.product(f.sizes(x)));
}
} // namespace

FailureOr<Results> buildRepeatedElements(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  FailureOr<OpFoldResult> times = call.size("repeats");
  FailureOr<SmallVector<OpFoldResult>> result = call.resultSizes();
  if (f.failed() || failed(times) || failed(result))
    return failure();
  int64_t dim = 0;
  self = flatUnlessDim(f, self, dim);
  if (f.failed())
    return failure();
  if (self.rank() == 0)
    self = unsqueeze(self, 0);
  SmallVector<OpFoldResult> sizes = f.sizes(self);
  sizes.insert(sizes.begin() + dim + 1, *times);
  return f.result(view(expand(unsqueeze(self, dim + 1), sizes), *result));
}

// As often as a vector says: an element of the result is the first one of self that is not used up
// before it. The number of elements must be known; another sum is an error of the run.
FailureOr<Results> buildRepeatedByVector(Call &call) {
  bool hasSelf = call.schema.find("self");
  Formula f(call);
  Expr repeats = f.tensor("repeats"), self = hasSelf ? f.tensor("self") : Expr();
  if (f.failed())
    return failure();
  FailureOr<SmallVector<OpFoldResult>> result = failure();
  {
    ScopedDiagnosticHandler silent(call.builder.getContext(),
                                   [](Diagnostic &) { return success(); });
    result = call.resultSizes();
  }
  if (failed(result))
    return buildOfUnknownLength(call);
  int64_t dim = 0;
  if (self)
    self = flatUnlessDim(f, self, dim);
  if (f.failed())
    return failure();
  if (repeats.rank() == 0)
    repeats = unsqueeze(repeats, 0);
  if (aten::shapeOf(repeats.value).front() == 1 && self)
    repeats = expand(repeats, f.sizes(self)[dim]);
  Expr ends = f.op("aten.cumsum", {{"self", {repeats.value}}}, {call.integerAttr("dim", 0)});
  Expr places = unsqueeze(f.range((*result)[dim]), 1);
  Expr isBehind = cast(le(unsqueeze(ends, 0), places), call.builder.getI64Type());
  Expr at = sum(isBehind, 1, false);
  // Of another number of elements than the result has, there is none to look up.
  Type i64 = call.builder.getI64Type();
  Expr total = sum(cast(repeats, i64), 0, false), none = f.number(f.sizes(repeats).front(), i64);
  at = where(eq(total, f.number((*result)[dim], i64)), at, none);
  if (!self)
    self = f.range(f.sizes(repeats).front());
  return f.result(f.op("aten.index_select", {{"self", {self.value}}, {"index", {at.value}}},
                       {call.integerAttr("dim", dim)}));
}

FailureOr<Results> buildSumToSize(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  int64_t front = self.rank() - static_cast<int64_t>(sizes->size());
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < self.rank(); ++dim)
    if (dim < front ||
        (getConstantIntValue((*sizes)[dim - front]) == 1 && aten::shapeOf(self.value)[dim] != 1))
      dims.push_back(dim);
  return f.result(view(sum(self, dims, false), *sizes));
}

// Powers of each element, of which the columns are.
FailureOr<Results> buildVandermonde(Call &call) {
  Formula f(call);
  Expr x = f.tensor("x");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType();
  if (f.failed() || failed(sizes) || !type)
    return failure();
  Expr power = f.range(sizes->back());
  bool isIncreasing = call.schema.find("increasing") ? f.flag("increasing") : true;
  if (!isIncreasing)
    power = flip(power, 0);
  // Of a number, as of a vector of one element.
  Expr all = pow(cast(unsqueeze(x, x.rank()), type), cast(power, call.builder.getI64Type()));
  return f.result(x.rank() == 0 ? view(all, *sizes) : all);
}

} // namespace shardc::torch_export
