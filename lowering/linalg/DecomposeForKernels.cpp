// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/GroupedRows.h"
#include "lowering/linalg/Passes.h"
#include "lowering/target/Target.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace shardc {
#define GEN_PASS_DEF_DECOMPOSEFORKERNELS
#include "lowering/linalg/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Sizes for a view: constants, and index values for those that are not known.
struct ViewSizes {
  SmallVector<int64_t> fixed;
  SmallVector<Value> dynamic;

  void add(OpFoldResult size) {
    std::optional<int64_t> constant = getConstantIntValue(size);
    fixed.push_back(constant.value_or(ShapedType::kDynamic));
    if (!constant)
      dynamic.push_back(cast<Value>(size));
  }
};

class GroupNormDecomposer {
public:
  explicit GroupNormDecomposer(aten::GroupNormOp op) : op(op), builder(op), loc(op.getLoc()) {}

  /// As [batch, groups, channels of a group, positions]: groups are rows of a layer norm, and a
  /// channel's weight is repeated over its positions.
  void run() {
    Value input = op.getInput();
    auto type = cast<RankedTensorType>(input.getType());
    int64_t groups = op.getNumGroups(), channels = type.getDimSize(1);
    SmallVector<int64_t> ofGroup{groups, channels / groups};
    ViewSizes grouped;
    grouped.add(sizeOf(input, 0));
    for (int64_t size : ofGroup)
      grouped.add(builder.getIndexAttr(size));
    grouped.add(builder.getIndexAttr(positions(type)));
    Type element = type.getElementType();
    // 16-bit floats are rounded once, at the end.
    Type wide = element.isF16() || element.isBF16() ? builder.getF32Type() : element;
    Value x = cast(view(input, grouped), wide);
    auto normalized = builder.getDenseI64ArrayAttr({grouped.fixed[2], grouped.fixed[3]});
    x = aten::LayerNormOp::create(builder, loc, x.getType(), x, normalized, Value(), Value(),
                                  op.getEpsAttr());
    if (Value weight = op.getWeight())
      x = aten::MulOp::create(builder, loc, x.getType(), x, perChannel(weight, ofGroup, wide));
    if (Value bias = op.getBias())
      x = aten::AddOp::create(builder, loc, x.getType(), x, perChannel(bias, ofGroup, wide),
                              builder.getF64FloatAttr(1));
    ViewSizes original;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      original.add(sizeOf(input, dim));
    op.getResult().replaceAllUsesWith(view(cast(x, element), original, op.getType()));
    op.erase();
  }

private:
  OpFoldResult sizeOf(Value tensor, int64_t dim) {
    int64_t size = mlir::cast<RankedTensorType>(tensor.getType()).getDimSize(dim);
    if (!ShapedType::isDynamic(size))
      return builder.getIndexAttr(size);
    return aten::SymSizeOp::create(builder, loc, builder.getIndexType(), tensor, dim).getResult();
  }
  int64_t positions(RankedTensorType type) {
    int64_t product = 1;
    for (int64_t size : type.getShape().drop_front(2))
      product *= size;
    return product;
  }
  Value view(Value tensor, const ViewSizes &sizes, Type type = {}) {
    if (!type)
      type = RankedTensorType::get(sizes.fixed,
                                   mlir::cast<RankedTensorType>(tensor.getType()).getElementType());
    return aten::ViewOp::create(builder, loc, type, tensor, sizes.fixed, sizes.dynamic);
  }
  Value cast(Value tensor, Type element) {
    auto type = mlir::cast<RankedTensorType>(tensor.getType());
    if (type.getElementType() == element)
      return tensor;
    return aten::ToCopyOp::create(builder, loc, type.clone(element), tensor,
                                  TypeAttr::get(element));
  }
  Value perChannel(Value vector, ArrayRef<int64_t> ofGroup, Type wide) {
    ViewSizes sizes;
    for (int64_t size : ofGroup)
      sizes.add(builder.getIndexAttr(size));
    sizes.add(builder.getIndexAttr(1));
    return cast(view(vector, sizes), wide);
  }

  aten::GroupNormOp op;
  OpBuilder builder;
  Location loc;
};

/// Parts of a concatenation are computed in their place in it, and so have its element type.
/// Returns how many are cast.
unsigned castParts(Operation *concat) {
  unsigned count = 0;
  Type element = aten::elementTypeOf(concat->getResult(0));
  OpBuilder builder(concat);
  for (OpOperand &part : concat->getOpOperands()) {
    auto type = cast<RankedTensorType>(part.get().getType());
    if (type.getElementType() == element)
      continue;
    part.set(aten::ToCopyOp::create(builder, concat->getLoc(), type.clone(element), part.get(),
                                    TypeAttr::get(element)));
    ++count;
  }
  return count;
}

struct DecomposeForKernels : shardc::impl::DecomposeForKernelsBase<DecomposeForKernels> {
  void runOnOperation() override {
    FailureOr<target::Limits> limits = target::readLimits(getOperation());
    if (failed(limits))
      return signalPassFailure();
    reordered += bringRowsTogether(getOperation(), limits->togetherRows);
    getOperation().walk([&](Operation *op) {
      if (isa<aten::CatOp, aten::StackOp>(op))
        casts += castParts(op);
    });
    SmallVector<aten::GroupNormOp> norms;
    getOperation().walk([&](aten::GroupNormOp op) { norms.push_back(op); });
    for (aten::GroupNormOp op : norms) {
      auto type = cast<RankedTensorType>(op.getInput().getType());
      ArrayRef<int64_t> rest = type.getShape().drop_front();
      if (llvm::any_of(rest, ShapedType::isDynamic) || op.getNumGroups() <= 0 ||
          rest.front() % op.getNumGroups() != 0) {
        op.emitOpError("of ") << type << " in " << op.getNumGroups()
                              << " groups has no kernel: it needs static sizes after the batch, "
                                 "and channels that divide into the groups";
        signalPassFailure();
        continue;
      }
      GroupNormDecomposer(op).run();
      ++decomposed;
    }
  }
};

} // namespace
