// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighborhood attention as NATTEN's operators have it: products with the keys of each
// neighborhood, their softmax, and weighted sums of the values there
// (dialects/aten/Neighborhood.td).
#include "importers/torch_export/import/Formula.h"

#include "dialects/aten/Neighborhood.h"
#include "dialects/aten/NeighborhoodScores.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

constexpr size_t kBatch = aten::kNeighborhoodBatch;
/// Of one query: more are no neighborhood, and their number would overflow.
constexpr int64_t kMostNeighbors = int64_t(1) << 31;

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
    for (int64_t size : kernel) {
      if (size < 1 || size > kMostNeighbors / numNeighbors)
        return call.error() << "has a kernel of " << kernel << ", which is no window";
      numNeighbors *= size;
    }
    isFlat = call.schema.find("qkv_shape") != nullptr;
    size_t rank = kBatch + (isFlat ? 1 : kernel.size()) + aten::kNeighborhoodRow;
    for (Expr tensor : {query, key, value})
      if (static_cast<size_t>(tensor.rank()) != rank)
        return call.error() << "needs query, key and value of " << rank << " dims, not of "
                            << tensor.rank();
    return isFlat ? readFlat() : success();
  }

  /// Whether the tensor has the dims of the queries and then, for a row, those of the values.
  LogicalResult check(StringRef name, Expr tensor, bool isRow) {
    SmallVector<int64_t> shape(aten::shapeOf(query.value).drop_back());
    if (isRow)
      shape.push_back(aten::shapeOf(value.value).back());
    if (succeeded(verifyCompatibleShape(aten::shapeOf(tensor.value), shape)))
      return success();
    return call.error() << "has another '" << name << "' than the forward of its query and value";
  }

  /// Whether the spatial dims of the tensor can be taken apart, where they are one.
  LogicalResult checkFlat(Expr tensor) {
    ArrayRef<int64_t> shape = aten::shapeOf(tensor.value);
    std::optional<int64_t> positions = getConstantIntValue(f.product(spatial));
    if (!isFlat || (shape.size() > kBatch && (!positions || ShapedType::isDynamic(shape[kBatch]) ||
                                              shape[kBatch] == *positions)))
      return success();
    return call.error() << "has tensors of other positions than its 'qkv_shape'";
  }

  /// [batch, positions, ...] with the spatial dims apart, where the call has them as one.
  Expr unflat(Expr x) {
    if (!isFlat)
      return x;
    SmallVector<OpFoldResult> sizes = f.sizes(x), all = {sizes[0]};
    llvm::append_range(all, spatial);
    llvm::append_range(all, ArrayRef(sizes).drop_front(2));
    return view(x, all);
  }
  Expr flat(Expr x) {
    if (!isFlat)
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
    Expr scores = qk(query, key);
    if (!scores)
      return scores;
    scores = scores * scale;
    if (!llvm::is_contained(isCausal, true))
      return scores;
    Expr mask = neighborsExist();
    return mask ? shardc::where(mask, scores, -kInfinity) : mask;
  }
  /// All neighbors of a query as one dim, and apart again.
  Expr merged(Expr scores) {
    SmallVector<OpFoldResult> sizes = f.sizes(scores);
    sizes.truncate(sizes.size() - kernel.size());
    sizes.push_back(call.builder.getIndexAttr(numNeighbors));
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
  /// A call whose spatial dims are one.
  LogicalResult readFlat() {
    if (f.integer("num_extra_kv") != 0 || f.failed())
      return call.error() << "is supported without additional keys and values: attend to them "
                             "apart, and merge what both return";
    FailureOr<SmallVector<OpFoldResult>> shape = call.sizes("qkv_shape");
    if (failed(shape))
      return failure();
    spatial = *shape;
    if (!getConstantIntValues(spatial))
      return call.error() << "has a 'qkv_shape' that only the run knows; export the model with "
                             "sizes, or with NATTEN's backend 'cutlass-fna'";
    std::optional<int64_t> positions = getConstantIntValue(f.product(spatial));
    for (Expr tensor : {query, key, value}) {
      int64_t own = aten::shapeOf(tensor.value)[kBatch];
      if (spatial.size() != kernel.size() ||
          (positions && !ShapedType::isDynamic(own) && own != *positions))
        return call.error() << "has a 'qkv_shape' that is not that of its " << own
                            << " positions in " << kernel.size() << " dims";
    }
    query = unflat(query), key = unflat(key), value = unflat(value);
    return success();
  }

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

  /// Which neighbors queries have, as bools that broadcast to the scores; null after a diagnostic.
  Expr neighborsExist() {
    aten::Neighborhoods all;
    SmallVector<int64_t> sizes;
    for (size_t dim = 0; dim < kernel.size(); ++dim) {
      all.push_back({kernel[dim], stride[dim], dilation[dim], isCausal[dim]});
      sizes.push_back(aten::shapeOf(query.value)[kBatch + dim]);
      if (isCausal[dim] && ShapedType::isDynamic(sizes.back())) {
        call.error() << "is causal along a dim of a size that only the run knows; export the model "
                        "with a size";
        return {};
      }
    }
    return aten::neighborsExist(*query.emit, all, sizes);
  }

  SmallVector<int64_t> kernel, stride, dilation;
  SmallVector<bool> isCausal;
  int64_t numNeighbors = 1;
  bool isFlat = false;               ///< the tensors have the spatial dims as one
  SmallVector<OpFoldResult> spatial; ///< these, then
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
  Expr output = f.tensor("output"), grad = f.tensor("d_output"), logsumexp = f.tensor("logsumexp");
  if (f.failed())
    return failure();
  for (Expr *tensor : {&output, &grad, &logsumexp})
    if (succeeded(own.checkFlat(*tensor)))
      *tensor = own.unflat(*tensor);
    else
      return failure();
  if (failed(own.check("output", output, true)) || failed(own.check("d_output", grad, true)) ||
      failed(own.check("logsumexp", logsumexp, false)))
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
                         "model with NATTEN's backend 'cutlass-fna'";
}

namespace {

/// Attention of all to all, [batch, positions, heads, E], which NATTEN calls where a window is as
/// large as the field.
struct FullAttention {
  Formula f;
  Expr query, key, value;
  SmallVector<NamedAttribute> attributes;

  explicit FullAttention(Call &call) : f(call) {}

  LogicalResult read() {
    for (StringRef name : {"cumulative_seqlen_Q", "cumulative_seqlen_KV"})
      if (!f.call.isNone(name))
        return f.call.error() << "is supported without '" << name
                              << "': pad the sequences, and mask what is padded";
    for (auto [name, tensor] :
         {std::pair("query", &query), std::pair("key", &key), std::pair("value", &value)})
      if (failed(take(name, *tensor)))
        return failure();
    Builder &b = f.call.builder;
    attributes.push_back(f.realAttr("scale", f.real("scale")));
    if (f.flag("is_causal"))
      attributes.push_back(b.getNamedAttr("is_causal", b.getUnitAttr()));
    if (aten::shapeOf(query.value)[1] != aten::shapeOf(key.value)[1])
      attributes.push_back(b.getNamedAttr("enable_gqa", b.getUnitAttr()));
    return failure(f.failed());
  }

  /// A tensor with its heads in front of its positions.
  LogicalResult take(StringRef name, Expr &tensor) {
    tensor = f.tensor(name);
    if (f.failed())
      return failure();
    int64_t rank = name == "logsumexp" ? 3 : 4;
    if (tensor.rank() != rank)
      return f.call.error() << "needs '" << name << "' of " << rank << " dims, not of "
                            << tensor.rank();
    tensor = transpose(tensor, 1, 2);
    return success();
  }
};

} // namespace

FailureOr<Results> buildFullAttention(Call &call) {
  FullAttention own(call);
  if (failed(own.read()))
    return failure();
  bool isKept = call.isUsed(1);
  FailureOr<Operation *> op = call.build(
      isKept ? "aten.scaled_dot_product_flash_attention" : "aten.scaled_dot_product_attention",
      {{"query", {own.query.value}}, {"key", {own.key.value}}, {"value", {own.value.value}}},
      own.attributes);
  if (failed(op))
    return failure();
  Results results = {transpose(own.f.of((*op)->getResult(0)), 1, 2).value, Value()};
  if (isKept) {
    Expr logsumexp = transpose(own.f.of((*op)->getResult(1)), 1, 2);
    Type type = call.resultElementType(1);
    results[1] = type ? cast(logsumexp, type).value : logsumexp.value;
  }
  return results;
}

FailureOr<Results> buildFullAttentionBackward(Call &call) {
  FullAttention own(call);
  Expr output, grad, logsumexp;
  if (failed(own.read()) || failed(own.take("output", output)) ||
      failed(own.take("d_output", grad)) || failed(own.take("logsumexp", logsumexp)))
    return failure();
  logsumexp = cast(logsumexp, Emitter::accumulator(own.query.elementType()));
  FailureOr<Operation *> op = call.build("aten.scaled_dot_product_flash_attention_backward",
                                         {{"grad_out", {grad.value}},
                                          {"query", {own.query.value}},
                                          {"key", {own.key.value}},
                                          {"value", {own.value.value}},
                                          {"out", {output.value}},
                                          {"logsumexp", {logsumexp.value}}},
                                         own.attributes);
  if (failed(op))
    return failure();
  Results results;
  for (Value cotangent : (*op)->getResults())
    results.push_back(transpose(own.f.of(cotangent), 1, 2).value);
  return results;
}

} // namespace shardc::torch_export
