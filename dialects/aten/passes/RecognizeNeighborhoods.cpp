// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/passes/Passes.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/KnownElements.h"
#include "dialects/aten/MaskedAttention.h"
#include "dialects/aten/Neighborhood.h"
#include "dialects/aten/NeighborhoodScores.h"
#include "dialects/interfaces/ModelLocation.h"

#include <map>

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENRECOGNIZENEIGHBORHOODS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

/// Attention over a field in the place of attention with a mask.
class FieldAttention {
public:
  FieldAttention(const MaskedAttention &attention, const NeighborhoodField &field)
      : attention(attention), field(field), builder(attention.op),
        emit(builder, attention.op->getLoc()) {}

  Value build() {
    Expr query = toField(of(attention.query), /*isTransposed=*/false);
    Expr key = toField(of(attention.key), attention.isKeyTransposed);
    Expr value = toField(valueOfQueries(), /*isTransposed=*/false);
    if (attention.isGrouped) {
      key = withHeadsOf(key, query);
      value = withHeadsOf(value, query);
    }
    Expr scores = scaled(product<NeighborhoodQkOp>(query, key));
    if (Expr exist = neighborsExist(emit, field.neighborhoods, field.sizes))
      scores = where(exist, scores, -std::numeric_limits<double>::infinity());
    // The neighbors of a query are one dim of the softmax.
    SmallVector<OpFoldResult> apart = sizesOf(scores), merged(apart);
    merged.truncate(merged.size() - field.sizes.size());
    merged.push_back(builder.getIndexAttr(field.numNeighbors()));
    bool isMerged = apart.size() != merged.size();
    Expr weights = isMerged ? view(scores, merged) : scores;
    weights = of(
        SoftmaxOp::create(builder, emit.getLoc(), weights.value, weights.rank() - 1, TypeAttr()));
    weights = cast(weights, Emitter::accumulator(value.elementType()));
    weights = isMerged ? view(weights, apart) : weights;
    return fromField(product<NeighborhoodAvOp>(weights, value)).value;
  }

private:
  Expr of(Value value) { return {value, &emit}; }

  SmallVector<OpFoldResult> sizesOf(Expr x) {
    BuiltSizes sizes(builder, emit.getLoc());
    SmallVector<OpFoldResult> all;
    for (Dim dim : sizes.sizesOf(x.value))
      all.push_back(sizes.get(dim));
    return all;
  }
  OpFoldResult index(int64_t number) { return builder.getIndexAttr(number); }

  Expr permute(Expr x, ArrayRef<int64_t> dims) {
    return of(PermuteOp::create(builder, emit.getLoc(), x.value, dims));
  }

  /// The value with the dims in front that the query has.
  Expr valueOfQueries() {
    ArrayRef<int64_t> own = shapeOf(attention.value), query = shapeOf(attention.query);
    if (own.size() == query.size())
      return of(attention.value);
    // Then all sizes are known.
    SmallVector<int64_t> shape(query.drop_back(2));
    llvm::append_range(shape, own.take_back(2));
    return view(of(attention.value), getAsIndexOpFoldResult(builder.getContext(), shape));
  }

  /// [..., positions, E] as [batch, spatial dims, heads, E]. The last dim in front of the positions
  /// are the heads, where there is more than one.
  Expr toField(Expr x, bool isTransposed) {
    if (isTransposed)
      x = x.rank() == 4 ? permute(x, {0, 3, 1, 2}) : transpose(x, x.rank() - 2, x.rank() - 1);
    else if (x.rank() == 4)
      x = transpose(x, 1, 2);
    SmallVector<OpFoldResult> sizes = sizesOf(x), all;
    if (x.rank() > 4) {
      // These are known.
      int64_t batch = 1;
      ArrayRef<int64_t> shape = shapeOf(x.value), outer = shape.drop_back(2);
      for (int64_t size : outer.drop_back())
        batch *= size;
      x = view(x, {index(batch), index(outer.back()), sizes[sizes.size() - 2], sizes.back()});
      x = transpose(x, 1, 2);
    } else if (x.rank() == 3) {
      x = unsqueeze(x, 2);
    } else if (x.rank() == 2) {
      x = unsqueeze(unsqueeze(x, 0), 2);
    }
    if (field.sizes.size() == 1)
      return x;
    sizes = sizesOf(x);
    all.push_back(sizes[0]);
    for (int64_t size : field.sizes)
      all.push_back(index(size));
    all.append({sizes[2], sizes[3]});
    return view(x, all);
  }

  /// The reverse, in the shape of the attention's result.
  Expr fromField(Expr x) {
    SmallVector<OpFoldResult> sizes = sizesOf(x);
    if (field.sizes.size() > 1)
      x = view(x,
               {sizes[0], index(attention.numPositions()), sizes[sizes.size() - 2], sizes.back()});
    Value result = attention.op->getResult(0);
    switch (typeOf(result).getRank()) {
    case 2:
      return of(SqueezeOp::create(builder, emit.getLoc(), x.value, ArrayRef<int64_t>{0, 2}));
    case 3:
      if (typeOf(attention.query).getRank() == 3)
        return of(SqueezeOp::create(builder, emit.getLoc(), x.value, ArrayRef<int64_t>{2}));
      break;
    case 4:
      if (typeOf(attention.query).getRank() == 4)
        return transpose(x, 1, 2);
      break;
    }
    // Then all sizes are known.
    x = transpose(x, 1, 2);
    return view(x, getAsIndexOpFoldResult(builder.getContext(), shapeOf(result)));
  }

  /// Keys or values with a head for each of the queries', which several share.
  Expr withHeadsOf(Expr x, Expr query) {
    int64_t dim = x.rank() - 2;
    int64_t own = shapeOf(x.value)[dim], heads = shapeOf(query.value)[dim];
    if (own == heads)
      return x;
    SmallVector<OpFoldResult> sizes = sizesOf(x), repeated(sizes);
    repeated.insert(repeated.begin() + dim + 1, index(heads / own));
    sizes[dim] = index(heads);
    return view(expand(unsqueeze(x, dim + 1), repeated), sizes);
  }

  template <typename Op> Expr product(Expr lhs, Expr rhs) {
    SmallVector<int64_t> kernel, stride, dilation, cut;
    SmallVector<bool> isCausal;
    for (const Neighborhood &one : field.neighborhoods) {
      kernel.push_back(one.kernel);
      stride.push_back(one.stride);
      dilation.push_back(one.dilation);
      isCausal.push_back(one.isCausal);
      cut.push_back(one.cut);
    }
    bool isCut = llvm::any_of(field.neighborhoods, [](const Neighborhood &n) { return n.isCut(); });
    return of(Op::create(builder, emit.getLoc(), lhs.value, rhs.value, kernel, stride, dilation,
                         isCausal, isCut ? builder.getDenseI64ArrayAttr(cut) : DenseI64ArrayAttr(),
                         ArrayRef<int64_t>(), ValueRange()));
  }

  /// With the attention's own factors, in the type in which sums are formed.
  Expr scaled(Expr scores) {
    if (attention.scale)
      scores = scores * *attention.scale;
    for (auto [op, scalar] : attention.scales) {
      Expr factor = of(op->getOperand(scalar));
      factor = cast(factor.rank() == 0 ? factor : view(factor, {}), scores.elementType());
      scores = isa<DivOp>(op) ? scores / factor : scores * factor;
    }
    return scores;
  }

  const MaskedAttention &attention;
  const NeighborhoodField &field;
  OpBuilder builder;
  Emitter emit;
};

struct RecognizeNeighborhoods : impl::AtenRecognizeNeighborhoodsBase<RecognizeNeighborhoods> {
  using Base::Base;

  LogicalResult initialize(MLIRContext *context) override {
    if (leastRatio < 1)
      return emitError(UnknownLoc::get(context))
             << "least-ratio is a number of windows from 1 on, not " << leastRatio;
    if (mode == "auto" || mode == "all" || mode == "off")
      return success();
    return emitError(UnknownLoc::get(context))
           << "the neighborhoods to recognise are auto, all or off, not '" << mode.getValue()
           << "'";
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    found.clear();
    for (Operation *op : ops)
      if (mode != "off")
        replace(op);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      function.removeArgAttr(i, kElementsAttr);
    if (recognized > 0)
      eraseUnused(function);
  }

private:
  /// Windows that take the place of masks, or why there are none.
  struct Found {
    std::optional<NeighborhoodField> field;
    std::string why;
  };

  void replace(Operation *op) {
    std::optional<MaskedAttention> attention = matchMaskedAttention(op);
    if (!attention)
      return;
    // Layers share their masks.
    std::vector<std::pair<const void *, bool>> key;
    for (const AttentionMask &mask : attention->masks)
      key.emplace_back(mask.tensor.getAsOpaquePointer(), mask.hides);
    auto [entry, isNew] = found.try_emplace({attention->numPositions(), key});
    auto &[field, why] = entry->second;
    if (isNew)
      entry->second = find(*attention);
    if (field) {
      op->getResult(0).replaceAllUsesWith(FieldAttention(*attention, *field).build());
      ++recognized;
    } else if (!why.empty()) {
      emitRemark(op->getLoc()) << "the attention in " << describePlace(op->getLoc())
                               << " is computed for all pairs of positions: " << why;
    }
  }

  Found find(const MaskedAttention &attention) const {
    Found result;
    int64_t size = attention.numPositions();
    int64_t mostSeen = mode == "all" ? size * size : size * size / 2;
    std::optional<VisibleKeys> keys = visibleKeys(attention.masks, size, mostSeen, result.why);
    if (!keys)
      return result;
    result.field = findNeighborhoods(*keys);
    if (!result.field) {
      result.why = "its mask is not that of windows over a line, an image or a volume of its " +
                   std::to_string(size) + " positions";
      return result;
    }
    int64_t window = result.field->numNeighbors();
    if (mode != "all" && window > size / leastRatio) {
      result.why = "windows of " + std::to_string(window) + " of its " + std::to_string(size) +
                   " positions would take longer";
      result.field = std::nullopt;
    }
    return result;
  }

  std::map<std::pair<int64_t, std::vector<std::pair<const void *, bool>>>, Found> found;
};

} // namespace
} // namespace shardc::aten
