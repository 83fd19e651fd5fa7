// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighborhood attention over sharded spatial dims: a rank brings the keys that its queries see
// (Halos.h), and then the same op runs on them, which is told where its part lies in the whole.
// What the adjoint makes for keys of other ranks goes to these.

#include "dialects/aten/Neighborhood.h"
#include "passes/localize/Halos.h"
#include "passes/localize/Models.h"
#include "passes/localize/MovePieces.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Where a rank's part lies, as the ops say it.
class NeighborhoodParts {
public:
  NeighborhoodParts(Localizer &localizer, OpBuilder &builder, aten::Neighborhoods all)
      : localizer(localizer), builder(builder), neighborhoods(std::move(all)) {}

  /// Finds the dims of which a rank sees keys of others. `queries` and `keys` are those of a dim,
  /// and the operand that the keys are, if they are one.
  LogicalResult find(llvm::function_ref<SplitDim(int64_t)> queries,
                     llvm::function_ref<SplitDim(int64_t)> keys,
                     llvm::function_ref<bool(int64_t)> isSharded, unsigned operand) {
    const Mesh &mesh = localizer.getMesh().getValue();
    for (auto [spatial, one] : llvm::enumerate(neighborhoods)) {
      auto at = static_cast<int64_t>(aten::kNeighborhoodBatch + spatial);
      if (one.isIdentity() || !isSharded(at))
        continue;
      HaloDim dim{spatial, at, keys(at), queries(at), aten::Window(), operand};
      if (ShapedType::isDynamic(dim.image.size)) {
        localizer.refuse() << "shares out a spatial dim of a size that only the run knows; give it "
                              "a size, or shard another dim";
        return failure();
      }
      for (ArrayRef<Run> runs : heldDim(mesh, dim.positions).runs) {
        Run own = runs.empty() ? Run() : runs.front();
        firstQueries[at].push_back(own.begin);
        dim.covers.push_back({aten::keysOfAll(one, own, dim.image.size)});
      }
      dims.push_back(std::move(dim));
    }
    return success();
  }

  /// For an op on `sizes` of keys, from which halo dims are replaced.
  SmallVector<OpFoldResult> place(SmallVector<OpFoldResult> &sizes) {
    SmallVector<OpFoldResult> numbers;
    for (size_t spatial = 0; spatial < neighborhoods.size(); ++spatial) {
      auto at = static_cast<int64_t>(aten::kNeighborhoodBatch + spatial);
      const auto *dim = llvm::find_if(dims, [&](const HaloDim &d) { return d.imageDim == at; });
      OpFoldResult zero = builder.getIndexAttr(0);
      if (dim == dims.end()) {
        llvm::append_range(numbers, ArrayRef<OpFoldResult>{sizes[at], zero, zero, sizes[at]});
        continue;
      }
      sizes[at] = table(dim->table([](const aten::Cover &cover) { return cover.size(); }));
      OpFoldResult firstKey =
          table(dim->table([](const aten::Cover &cover) { return cover.elements.begin; }));
      llvm::append_range(numbers,
                         ArrayRef<OpFoldResult>{builder.getIndexAttr(dim->image.size),
                                                table(firstQueries[at]), firstKey, sizes[at]});
    }
    return numbers;
  }

  template <typename Op> Value build(Op op, ValueRange operands, ArrayRef<OpFoldResult> place) {
    SmallVector<int64_t> fixed;
    SmallVector<Value> dynamic;
    splitMixed(place, fixed, dynamic);
    return Op::create(builder, op.getLoc(), operands[0], operands[1], op.getKernelSize(),
                      op.getStride(), op.getDilation(), op.getIsCausal(), op.getCutAttr(), fixed,
                      dynamic);
  }

  SmallVector<HaloDim> dims;

private:
  OpFoldResult table(ArrayRef<int64_t> numbers) {
    return getAsOpFoldResult(localizer.indices(builder).table(numbers));
  }

  Localizer &localizer;
  OpBuilder &builder;
  aten::Neighborhoods neighborhoods;
  DenseMap<int64_t, SmallVector<int64_t>> firstQueries; ///< by dim, for each position of the mesh
};

LogicalResult refuseUnlike(Localizer &localizer) {
  localizer.refuse()
      << "the queries and what belongs to them are sharded in different ways along a "
         "spatial dim; shard both alike";
  return failure();
}

/// qk and av: operand 0 and the result have the queries, operand 1 has the keys.
template <typename Op> struct GatheredNeighborhood : LocalizeModel<GatheredNeighborhood<Op>, Op> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, Op op, ValueRange operands) {
    NeighborhoodParts parts(localizer, builder, op.getNeighborhoods());
    const Layout *result = localizer.resultLayout(0);
    auto isSharded = [&](int64_t at) {
      return !localizer.operandAxes(0, at).empty() || !localizer.operandAxes(1, at).empty() ||
             (result && !result->splitOfDim(at).empty());
    };
    if (failed(parts.find([&](int64_t at) { return localizer.resultDim(0, at); },
                          [&](int64_t at) { return localizer.operandDim(1, at); }, isSharded,
                          /*operand=*/1)))
      return failure();
    if (parts.dims.empty())
      return sameOp(localizer, builder, operands);
    for (const HaloDim &dim : parts.dims)
      if (localizer.operandDim(0, dim.imageDim).split != dim.positions.split)
        return refuseUnlike(localizer);
    SmallVector<OpFoldResult> sizes = localizer.operandSizes(builder, 1);
    SmallVector<OpFoldResult> place = parts.place(sizes);
    Value keys = coveredImage(localizer, builder, parts.dims, operands[1], 0).value;
    Value made = parts.build(op, {operands[0], keys}, place);
    made.setType(localizer.localResultType(0));
    return single(made);
  }
};

/// Both operands have the queries, the result has the keys.
struct NeighborhoodAdjointModel
    : LocalizeModel<NeighborhoodAdjointModel, aten::NeighborhoodAdjointOp> {
  static LocalValues run(Localizer &localizer, OpBuilder &builder, aten::NeighborhoodAdjointOp op,
                         ValueRange operands) {
    NeighborhoodParts parts(localizer, builder, op.getNeighborhoods());
    const Layout *result = localizer.resultLayout(0);
    auto isSharded = [&](int64_t at) {
      return !localizer.operandAxes(0, at).empty() || (result && !result->splitOfDim(at).empty());
    };
    if (failed(parts.find([&](int64_t at) { return localizer.operandDim(0, at); },
                          [&](int64_t at) { return localizer.resultDim(0, at); }, isSharded, 0)))
      return failure();
    if (parts.dims.empty())
      return sameOp(localizer, builder, operands);
    for (const HaloDim &dim : parts.dims)
      if (localizer.operandDim(1, dim.imageDim).split != dim.positions.split)
        return refuseUnlike(localizer);
    SmallVector<OpFoldResult> sizes = localizer.localSizes(builder, 0);
    SmallVector<OpFoldResult> place = parts.place(sizes);
    Value covered = parts.build(op, operands, place);
    Value sum = haloSum(localizer, builder, parts.dims, covered, sizes);
    sum.setType(localizer.localResultType(0));
    return single(sum);
  }
};

} // namespace

void shardc::attachNeighborhoodModels(MLIRContext *context) {
  attachModel<aten::NeighborhoodQkOp, GatheredNeighborhood<aten::NeighborhoodQkOp>>(context);
  attachModel<aten::NeighborhoodAvOp, GatheredNeighborhood<aten::NeighborhoodAvOp>>(context);
  attachModel<aten::NeighborhoodAdjointOp, NeighborhoodAdjointModel>(context);
}
