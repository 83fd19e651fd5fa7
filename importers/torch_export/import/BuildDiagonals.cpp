// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that put matrices together, and that turn them.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Formula.h"

using namespace mlir;

namespace shardc::torch_export {

// The last dim on a diagonal of two dims of the result.
FailureOr<Results> buildEmbeddedDiagonal(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  int64_t above = f.integer("offset", 0);
  if (f.failed())
    return failure();
  int64_t rank = self.rank() + 1;
  int64_t row = f.dim("dim1", rank), column = f.dim("dim2", rank);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  if (row == column)
    return call.error() << "a diagonal needs two dims";
  SmallVector<OpFoldResult> along(rank, f.one());
  auto position = [&](int64_t dim) {
    SmallVector<OpFoldResult> shape = along;
    shape[rank - (dim == row ? 2 : 1)] = (*sizes)[dim];
    return view(f.range((*sizes)[dim]), shape);
  };
  Expr isIt =
      eq(position(column) - position(row), f.of(f.emit.integer(above, call.builder.getI64Type())));
  // Zeros before or behind it, so that its elements stand in their columns.
  Expr inColumns =
      pad(self, self.rank() - 1, std::max<int64_t>(above, 0), std::max<int64_t>(-above, 0));
  Expr matrices = where(isIt, unsqueeze(inColumns, rank - 2), 0);
  SmallVector<int64_t> order(rank, -1);
  order[row] = rank - 2;
  order[column] = rank - 1;
  int64_t next = 0;
  for (int64_t &dim : order)
    if (dim < 0)
      dim = next++;
  return f.result(f.permute(matrices, order));
}

// Matrices, of which vectors are one row and numbers one element, one behind the other on a
// diagonal.
FailureOr<Results> buildBlockDiagonal(Call &call) {
  Formula f(call);
  SmallVector<Expr> parts = f.tensors("tensors");
  Type type = call.resultElementType();
  if (f.failed() || !type)
    return failure();
  int64_t columns = 0;
  for (Expr &part : parts) {
    if (part.rank() > 2)
      return call.error() << "the blocks of a matrix have two dims at most";
    while (part.rank() < 2)
      part = unsqueeze(part, 0);
    part = cast(part, type);
    int64_t width = aten::shapeOf(part.value)[1];
    if (ShapedType::isDynamic(width))
      return call.error() << "blocks of unknown width are not supported";
    columns += width;
  }
  SmallVector<Value> rows;
  int64_t before = 0;
  for (Expr part : parts) {
    int64_t width = aten::shapeOf(part.value)[1];
    rows.push_back(pad(part, 1, before, columns - before - width).value);
    before += width;
  }
  return f.result(f.op("aten.cat", {{"tensors", rows}}, {call.integerAttr("dim", 0)}));
}

// Of a matrix, and, if it wraps, again one row behind the last column of a tall one; of more dims,
// all of one size, where all positions are the same.
FailureOr<Results> buildFilledDiagonal(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  Expr fill = f.tensorOrNumber("fill_value", self.elementType());
  bool wraps = f.flag("wrap");
  if (f.failed())
    return failure();
  if (self.rank() < 2)
    return call.error() << "a diagonal needs two dims";
  SmallVector<OpFoldResult> sizes = f.sizes(self);
  auto position = [&](int64_t dim) {
    SmallVector<OpFoldResult> along(self.rank(), f.one());
    along[dim] = sizes[dim];
    return view(f.range(sizes[dim]), along);
  };
  Expr first = position(0);
  if (wraps && self.rank() == 2) {
    Expr width = f.number(addSizes(call.builder, call.loc, sizes[1], f.one()), first.elementType());
    first = f.of(f.emit.binary<aten::RemainderOp>(first.value, width.value));
  }
  Expr isIt = eq(first, position(1));
  for (int64_t dim : llvm::seq<int64_t>(2, self.rank()))
    isIt = logicalAnd(isIt, eq(first, position(dim)));
  return f.result(where(isIt, fill, self));
}

// By quarters, from the first dim to the second.
FailureOr<Results> buildTurned(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  int64_t quarters = ((f.integer("k", 1) % 4) + 4) % 4;
  if (f.failed())
    return failure();
  SmallVector<int64_t> dims = f.dims("dims", self.rank());
  if (f.failed())
    return failure();
  if (dims.size() != 2)
    return call.error() << "a rotation has two dims";
  if (quarters == 0)
    return one(call.buildOne("aten.clone", {{"self", {self.value}}}));
  if (quarters == 2)
    return f.result(flip(self, dims));
  Expr turned = quarters == 1 ? flip(self, dims[1]) : flip(self, dims[0]);
  return f.result(transpose(turned, dims[0], dims[1]));
}

// Elements by their place in all of them.
FailureOr<Results> buildTakeFlat(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self"), index = f.tensor("index");
  if (f.failed())
    return failure();
  Expr flat = view(self, f.product(f.sizes(self)));
  return f.result(f.op("aten.index", {{"self", {flat.value}}, {"indices", {index.value}}},
                       {call.integersAttr("indices_at", {0})}));
}

} // namespace shardc::torch_export
