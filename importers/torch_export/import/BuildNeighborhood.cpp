// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighborhood attention as NATTEN's operators have it: products with the keys of each
// neighborhood, their softmax, and weighted sums of the values there
// (dialects/aten/Neighborhood.td).
#include "importers/torch_export/import/Formula.h"

#include "dialects/aten/Neighborhood.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

constexpr size_t kBatch = aten::kNeighborhoodBatch;

/// One call: its arguments, and the ops that its results are made of.
class NeighborhoodCall {
public:
  explicit NeighborhoodCall(Call &call) : call(call), f(call) {}

  /// Reads what forward and backward have.
  LogicalResult read() {
    auto integers = [&](StringRef name, SmallVector<int64_t> &list) {
      FailureOr<std::optional<SmallVector<int64_t>>> found = call.integers(name);
      if (succeeded(found) && *found)
        list = **found;
      return found;
    };
    query = f.tensor("query"), key = f.tensor("key"), value = f.tensor("value");
    scale = f.real("scale");
    FailureOr<SmallVector<bool>> causal = call.booleans("is_causal");
    if (f.failed() || failed(integers("kernel_size", kernel)) ||
        failed(integers("stride", stride)) || failed(integers("dilation", dilation)) ||
        failed(causal))
      return failure();
    isCausal = *causal;
    if (kernel.size() != stride.size() || kernel.size() != dilation.size() ||
        kernel.size() != isCausal.size() || kernel.empty())
      return call.error() << "needs a kernel size, a stride, a dilation and is_causal for each "
                             "spatial dim";
    if (!call.schema.find("qkv_shape"))
      return success();
    // Spatial dims are one.
    if (f.integer("num_extra_kv") != 0 || f.failed())
      return call.error() << "is supported without additional keys and values: attend to them "
                             "apart, and merge what both return";
    FailureOr<SmallVector<OpFoldResult>> shape = call.sizes("qkv_shape");
    if (failed(shape))
      return failure();
    spatial = *shape;
    query = unflat(query), key = unflat(key), value = unflat(value);
    return success();
  }

  /// [batch, positions, ...] with the spatial dims apart, where the call has them as one.
  Expr unflat(Expr x) {
    if (spatial.empty())
      return x;
    SmallVector<OpFoldResult> sizes = f.sizes(x), all = {sizes[0]};
    llvm::append_range(all, spatial);
    llvm::append_range(all, ArrayRef(sizes).drop_front(2));
    return view(x, all);
  }
  Expr flat(Expr x) {
    if (spatial.empty())
      return x;
    SmallVector<OpFoldResult> sizes = f.sizes(x);
    SmallVector<OpFoldResult> all = {sizes[0], f.product(ArrayRef(sizes).slice(1, kernel.size()))};
    llvm::append_range(all, ArrayRef(sizes).drop_front(1 + kernel.size()));
    return view(x, all);
  }

  // Each is null after a diagnostic.
  Expr qk(Expr queries, Expr keys) { return product("qk", "query", queries, "key", keys); }
  Expr av(Expr weights, Expr values) { return product("av", "weights", weights, "value", values); }
  Expr adjoint(Expr weights, Expr rows) {
    return product("adjoint", "weights", weights, "rows", rows);
  }

  /// The scaled scores, with those of no neighbor at -infinity; null after a diagnostic.
  Expr scores() {
    Expr scores = qk(query, key), mask;
    if (!scores)
      return scores;
    scores = scores * scale;
    for (auto [dim, isOne] : llvm::enumerate(isCausal)) {
      if (!isOne)
        continue;
      Expr own = neighborsExist(dim, scores.rank());
      if (!own)
        return own;
      mask = mask ? logicalAnd(mask, own) : own;
    }
    return mask ? shardc::where(mask, scores, -kInfinity) : scores;
  }
  /// All neighbors of a query as one dim, and apart again.
  Expr merged(Expr scores) {
    SmallVector<OpFoldResult> sizes = f.sizes(scores);
    int64_t all = 1;
    for (int64_t size : kernel)
      all *= size;
    sizes.truncate(sizes.size() - kernel.size());
    sizes.push_back(call.builder.getIndexAttr(all));
    return view(scores, sizes);
  }
  Expr apart(Expr merged) {
    SmallVector<OpFoldResult> sizes = f.sizes(merged);
    sizes.pop_back();
    llvm::append_range(sizes, getAsIndexOpFoldResult(call.builder.getContext(), kernel));
    return view(merged, sizes);
  }

  Call &call;
  Formula f;
  Expr query, key, value;
  double scale = 1;

private:
  Expr product(StringRef name, StringRef lhsName, Expr lhs, StringRef rhsName, Expr rhs) {
    OpBuilder &b = call.builder;
    Expr made =
        f.op(("aten.neighborhood_" + name).str(), {{lhsName, {lhs.value}}, {rhsName, {rhs.value}}},
             {call.integersAttr("kernel_size", kernel), call.integersAttr("stride", stride),
              call.integersAttr("dilation", dilation),
              b.getNamedAttr("is_causal", b.getDenseBoolArrayAttr(isCausal)),
              call.integersAttr("static_place", {})});
    return f.failed() ? Expr() : made;
  }

  /// Which neighbors queries have along a causal dim, as bools that broadcast to the scores.
  Expr neighborsExist(size_t dim, int64_t rank) {
    int64_t size = aten::shapeOf(query.value)[kBatch + dim];
    if (ShapedType::isDynamic(size)) {
      call.error() << "is causal along a dim of a size that only the run knows; export the model "
                      "with a size";
      return {};
    }
    aten::Neighborhood own{kernel[dim], stride[dim], dilation[dim], true};
    SmallVector<bool> exist;
    for (int64_t i = 0; i < size; ++i) {
      Run keys = own.keysOf(i, size);
      for (int64_t slot = 0; slot < own.kernel; ++slot)
        exist.push_back(keys.begin + slot * own.dilation < keys.end);
    }
    SmallVector<int64_t> shape(rank, 1);
    shape[kBatch + dim] = size;
    shape[rank - kernel.size() + dim] = own.kernel;
    auto type = RankedTensorType::get(shape, call.builder.getI1Type());
    return f.of(aten::ConstantOp::create(call.builder, call.loc, type,
                                         DenseElementsAttr::get(type, exist)));
  }

  SmallVector<int64_t> kernel, stride, dilation;
  SmallVector<bool> isCausal;
  SmallVector<OpFoldResult> spatial; ///< where the tensors have these dims as one
};

} // namespace

FailureOr<Results> buildNeighborhood(Call &call) {
  NeighborhoodCall own(call);
  if (failed(own.read()))
    return failure();
  Expr scores = own.scores();
  if (!scores)
    return failure();
  Formula &f = own.f;
  Expr merged = own.merged(scores);
  Type wide = merged.elementType();
  int64_t last = merged.rank() - 1;
  Expr weights =
      f.of(aten::SoftmaxOp::create(call.builder, call.loc, merged.value, last, TypeAttr()));
  Expr output = own.av(own.apart(weights), own.value);
  if (!output)
    return failure();
  Results results = {own.flat(output).value, Value()};
  if (call.isUsed(1)) {
    Expr logsumexp = own.flat(f.reduce("aten.logsumexp", merged, {last}, /*keepdim=*/false));
    Type type = call.resultElementType(1);
    results[1] = type && type != wide ? cast(logsumexp, type).value : logsumexp.value;
  }
  return results;
}

FailureOr<Results> buildNeighborhoodBackward(Call &call) {
  NeighborhoodCall own(call);
  if (failed(own.read()))
    return failure();
  Formula &f = own.f;
  Expr output = own.unflat(f.tensor("output")), grad = own.unflat(f.tensor("d_output"));
  Expr logsumexp = own.unflat(f.tensor("logsumexp"));
  if (f.failed())
    return failure();
  Expr scores = own.scores();
  if (!scores)
    return failure();
  Expr merged = own.merged(scores);
  Type wide = merged.elementType();
  int64_t last = merged.rank() - 1;
  Expr weights = exp(merged - unsqueeze(cast(logsumexp, wide), last));
  Expr delta = sum(cast(output, wide) * cast(grad, wide), {last}, /*keepdim=*/true);
  Expr ofWeights = own.qk(grad, own.value);
  if (!ofWeights)
    return failure();
  Expr ofScores = own.apart(weights * (own.merged(ofWeights) - delta) * own.scale);
  Results results;
  for (Expr cotangent : {own.av(ofScores, own.key), own.adjoint(ofScores, own.query),
                         own.adjoint(own.apart(weights), grad)}) {
    if (!cotangent)
      return failure();
    results.push_back(own.flat(cotangent).value);
  }
  return results;
}

FailureOr<Results> buildNeighborhoodTiles(Call &call) {
  return call.error() << "has its tensors cut into tiles for the kernels of one device; export the "
                         "model with NATTEN's backend 'cutlass-fna' or 'reference'";
}

} // namespace shardc::torch_export
