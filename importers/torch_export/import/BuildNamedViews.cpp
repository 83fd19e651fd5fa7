// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that are transposes and products by other names, which plain exports keep.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Formula.h"

#include <numeric>

using namespace mlir;

namespace shardc::torch_export {

static FailureOr<Results> permuted(Call &call, Expr self, ArrayRef<int64_t> order) {
  return one(
      call.buildOne("aten.permute", {{"self", {self.value}}}, {call.integersAttr("dims", order)}));
}

static SmallVector<int64_t> identity(int64_t rank) {
  SmallVector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

FailureOr<Results> buildSwappedDims(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  bool areAxes = call.schema.find("axis0");
  int64_t a = f.dim(areAxes ? "axis0" : "dim0", self.rank()),
          b = f.dim(areAxes ? "axis1" : "dim1", self.rank());
  if (f.failed())
    return failure();
  SmallVector<int64_t> order = identity(self.rank());
  if (!order.empty())
    std::swap(order[a], order[b]);
  return permuted(call, self, order);
}

FailureOr<Results> buildMovedDims(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  bool isOne = StringRef(call.schema.overload).ends_with(".int");
  auto listOf = [&](StringRef name) {
    return isOne ? SmallVector<int64_t>{f.dim(name, self.rank())} : f.dims(name, self.rank());
  };
  // An empty list of dims is all of them for other overloads: here nothing is moved then.
  auto given = isOne ? std::nullopt : call.integers("source").value_or(std::nullopt);
  if (!isOne && (!given || given->empty()))
    return permuted(call, self, identity(self.rank()));
  SmallVector<int64_t> from = listOf("source"), to = listOf("destination");
  if (f.failed())
    return failure();
  SmallVector<int64_t> order(self.rank(), -1), rest;
  for (int64_t dim : identity(self.rank()))
    if (!llvm::is_contained(from, dim))
      rest.push_back(dim);
  for (auto [source, target] : llvm::zip(from, to))
    if (!order.empty())
      order[target] = source;
  if (from.size() != to.size() || llvm::count(order, -1) != static_cast<int64_t>(rest.size()))
    return call.error() << "as many dims as there are places for them are moved, each once";
  size_t next = 0;
  for (int64_t &dim : order)
    if (dim < 0)
      dim = rest[next++];
  return permuted(call, self, order);
}

// The last two dims change places, or all dims do.
FailureOr<Results> buildReversedDims(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  SmallVector<int64_t> order = identity(self.rank());
  bool isAll = StringRef(call.schema.overload).starts_with("numpy_T");
  if (isAll)
    std::reverse(order.begin(), order.end());
  else if (order.size() >= 2)
    std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permuted(call, self, order);
}

// A matrix by a vector, or the outer product of two, is added to self.
FailureOr<Results> buildAddedProduct(Call &call) {
  Formula f(call);
  bool isOuter = call.schema.find("vec1");
  Expr self = f.tensor("self"), a = f.tensor(isOuter ? "vec1" : "mat"),
       b = f.tensor(isOuter ? "vec2" : "vec");
  double beta = f.real("beta", 1), alpha = f.real("alpha", 1);
  if (f.failed())
    return failure();
  if (isOuter)
    a = unsqueeze(a, 1);
  else if (self.rank() > 0)
    self = unsqueeze(self, self.rank());
  Expr sum = f.op("aten.addmm",
                  {{"self", {self.value}},
                   {"mat1", {a.value}},
                   {"mat2", {unsqueeze(b, isOuter ? 0 : 1).value}}},
                  {f.realAttr("beta", beta), f.realAttr("alpha", alpha)});
  return f.result(isOuter ? sum : f.squeeze(sum, 1));
}

// Products of matrices, added up.
FailureOr<Results> buildAddedBatch(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self"), a = f.tensor("batch1"), b = f.tensor("batch2");
  double beta = f.real("beta", 1), alpha = f.real("alpha", 1);
  if (f.failed())
    return failure();
  // One product of matrices, with those of the batch beside and below each other.
  SmallVector<OpFoldResult> of = f.sizes(a), by = f.sizes(b);
  Expr beside = view(f.permute(a, {1, 0, 2}), {of[1], f.product({of[0], of[2]})});
  Expr below = view(b, {f.product({by[0], by[1]}), by[2]});
  return f.result(f.op("aten.addmm",
                       {{"self", {self.value}}, {"mat1", {beside.value}}, {"mat2", {below.value}}},
                       {f.realAttr("beta", beta), f.realAttr("alpha", alpha)}));
}

FailureOr<Results> buildIdentityMatrix(Call &call) {
  Formula f(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType();
  if (failed(sizes) || !type)
    return failure();
  if (sizes->size() != 2)
    return call.error() << "an identity matrix has two dims";
  Expr isOne = eq(unsqueeze(f.range((*sizes)[0]), 1), unsqueeze(f.range((*sizes)[1]), 0));
  return f.result(cast(isOne, type));
}

} // namespace shardc::torch_export
