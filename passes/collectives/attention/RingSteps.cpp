// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/attention/RingSteps.h"

#include "passes/collectives/analysis/EraseDead.h"

#include "dialects/aten/BuiltSizes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

using WithSums = aten::ScaledDotProductFlashAttentionOp;
using Backward = aten::ScaledDotProductFlashAttentionBackwardOp;

int64_t RingSteps::rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

static RankedTensorType withRows(Value value, int64_t dim, int64_t fixed) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = fixed;
  return RankedTensorType::get(shape, type.getElementType());
}

DeviceTable RingSteps::tableOf(int64_t step, function_ref<int64_t(int64_t, int64_t)> entry) const {
  DeviceTable table;
  for (int64_t position : site.position)
    table.push_back(entry(position, site.blockAt(position, step)));
  return table;
}

int64_t RingSteps::fixedOf(const DeviceTable &table) {
  return llvm::all_equal(table) ? table.front() : ShapedType::kDynamic;
}

OpFoldResult RingSteps::build(const DeviceTable &table) {
  return ranks.build(builder, emit.getLoc(), table);
}

Value RingSteps::rows(Value value, int64_t dim, const DeviceTable &begin, const DeviceTable &end,
                      const DeviceTable &length) {
  if (end == length && llvm::all_of(begin, [](int64_t row) { return row == 0; }))
    return value;
  DeviceTable count;
  for (auto [first, last] : llvm::zip_equal(begin, end))
    count.push_back(last - first);
  Value part = emit.slice(value, dim, build(begin), build(end));
  part.setType(withRows(value, dim, fixedOf(count)));
  return part;
}

Value RingSteps::join(ValueRange parts, int64_t dim, int64_t fixed) {
  Value joined = emit.cat(parts, dim);
  joined.setType(withRows(parts.front(), dim, fixed));
  return joined;
}

Value RingSteps::zerosLike(Value value, int64_t dim, const DeviceTable &length) {
  aten::BuiltSizes sizes(builder, emit.getLoc());
  SmallVector<OpFoldResult> all;
  for (int64_t d = 0; d < rankOf(value); ++d)
    all.push_back(d == dim ? build(length) : sizes.get(sizes.of(value, d)));
  return emit.zeros(all, aten::elementTypeOf(value));
}

SmallVector<Value> RingSteps::permute(ArrayRef<Value> sent, ArrayRef<int64_t> dims,
                                      ArrayRef<int64_t> pairs, ArrayRef<int64_t> extents) {
  auto elementOf = [](Value value) { return aten::elementTypeOf(value); };
  if (!llvm::all_equal(llvm::map_range(sent, elementOf))) {
    SmallVector<Value> all;
    for (auto [value, dim] : llvm::zip_equal(sent, dims))
      all.append(permute(value, dim, pairs, extents));
    return all;
  }
  bool isEven = llvm::all_equal(extents);
  SmallVector<int64_t> sourceOf(site.size());
  for (size_t i = 0; i + 1 < pairs.size(); i += 2)
    sourceOf[pairs[i + 1]] = pairs[i];
  SmallVector<Type> types;
  for (auto [value, dim] : llvm::zip_equal(sent, dims)) {
    DeviceTable arriving;
    for (int64_t position : site.position)
      arriving.push_back(extents[sourceOf[position]]);
    types.push_back(withRows(value, dim, fixedOf(arriving)));
  }
  SmallVector<Attribute> lists(sent.size(), builder.getDenseI64ArrayAttr(extents));
  SmallVector<int64_t> along(dims);
  if (isEven)
    along.assign(sent.size(), -1);
  auto made =
      PermuteOp::create(builder, emit.getLoc(), types, sent, ValueRange(), site.group,
                        builder.getDenseI64ArrayAttr(pairs), builder.getDenseI64ArrayAttr(along),
                        isEven ? ArrayAttr() : builder.getArrayAttr(lists));
  return SmallVector<Value>(made->getResults());
}

SmallVector<Value> RingSteps::hop(ArrayRef<Value> sent, ArrayRef<int64_t> dims, int64_t step) {
  SmallVector<int64_t> pairs, extents;
  for (int64_t position = 0; position < site.size(); ++position) {
    pairs.append({position, (position + 1) % site.size()});
    extents.push_back(site.extents[site.blockAt(position, step)]);
  }
  return permute(sent, dims, pairs, extents);
}

template <typename Visit> static auto visitAttention(Operation *op, Visit visit) {
  if (auto forward = dyn_cast<aten::ScaledDotProductAttentionOp>(op))
    return visit(forward);
  if (auto forward = dyn_cast<WithSums>(op))
    return visit(forward);
  return visit(cast<Backward>(op));
}

RingPart RingSteps::attend(Value query, Value key, Value value, Value mask, bool isCausal) {
  return visitAttention(site.op, [&](auto op) {
    auto made = WithSums::create(
        builder, op.getLoc(), query, key, value, mask, op.getDropoutPAttr(),
        isCausal ? builder.getUnitAttr() : UnitAttr(), op.getScaleAttr(), op.getEnableGqaAttr(),
        builder.getI64IntegerAttr(0), /*first=*/Value(), builder.getUnitAttr());
    return RingPart{made.getOutput(), made.getLogsumexp()};
  });
}

RingGradients RingSteps::differentiate(Value cotangent, Value query, Value key, Value value,
                                       Value output, Value logsumexp, Value mask, bool isCausal) {
  auto op = cast<Backward>(site.op);
  auto made =
      Backward::create(builder, op.getLoc(), cotangent, query, key, value, output, logsumexp, mask,
                       op.getDropoutPAttr(), isCausal ? builder.getUnitAttr() : UnitAttr(),
                       op.getScaleAttr(), op.getEnableGqaAttr(), builder.getI64IntegerAttr(0),
                       /*first=*/Value(), builder.getUnitAttr());
  return {made.getGradQuery(), made.getGradKey(), made.getGradValue()};
}

/// Each output counts as much as the sum of exponentials of its keys, relative to the larger one: a
/// part that has seen nothing counts 0, also where no part has.
RingPart RingSteps::merge(const RingPart &a, const RingPart &b) {
  Type type = aten::elementTypeOf(a.logsumexp);
  Value hidden = emit.scalar(-INFINITY, type), zero = emit.scalar(0, type);
  Value most = emit.binary<aten::MaximumOp>(a.logsumexp, b.logsumexp);
  Value shift = emit.where(emit.binary<aten::EqOp>(most, hidden), zero, most);
  Value ofA = emit.unary<aten::ExpOp>(emit.sub(a.logsumexp, shift));
  Value ofB = emit.unary<aten::ExpOp>(emit.sub(b.logsumexp, shift));
  Value total = emit.add(ofA, ofB);
  // At least 1 where a part has seen something.
  Value divisor = emit.binary<aten::MaximumOp>(total, emit.scalar(1, type));
  auto weighted = [&](Value output, Value weight) {
    return emit.mul(output, emit.unsqueeze(emit.div(weight, divisor), rankOf(weight)));
  };
  return {emit.add(weighted(a.output, ofA), weighted(b.output, ofB)),
          emit.add(shift, emit.unary<aten::LogOp>(total))};
}

Value RingSteps::narrow(Value value) { return emit.cast(value, aten::elementTypeOf(site.query())); }

void RingSteps::replace(Value result, Value by) {
  if (by.getType() != result.getType())
    by.setType(cast<RankedTensorType>(result.getType()));
  result.replaceAllUsesWith(by);
}

void RingSteps::finish(const RingPart &whole) {
  replace(site.op->getResult(0), narrow(whole.output));
  unused.push_back(whole.logsumexp);
  if (site.op->getNumResults() < 2 || site.op->getResult(1).use_empty())
    return;
  Value sums = whole.logsumexp;
  // As the op has it for a query that sees no key.
  if (site.mask) {
    Type type = aten::elementTypeOf(sums);
    Value none = emit.binary<aten::EqOp>(sums, emit.scalar(-INFINITY, type));
    sums = emit.where(none, emit.scalar(0, type), sums);
  }
  replace(site.op->getResult(1), sums);
}

void RingSteps::replaceScattered(const RingTensor &tensor, Value cotangent) {
  if (!tensor.scatter)
    return;
  // What the views read may be made behind the op.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(tensor.scatter);
  DeviceTable own = tableOf(0, [&](int64_t, int64_t block) { return site.extents[block]; });
  Value result = tensor.scatter->getResult(0);
  replace(result, tensor.scattered.apply(builder, narrow(cotangent), build(own), fixedOf(own)));
}

void RingSteps::erase(function_ref<void(Operation *)> erased) {
  llvm::SetVector<Operation *> dead;
  for (const RingTensor *tensor : {&site.key, &site.value})
    if (tensor->scatter)
      dead.insert(tensor->scatter);
  dead.insert(site.op);
  for (Value value : unused)
    if (Operation *maker = value ? value.getDefiningOp() : nullptr;
        maker && isOpTriviallyDead(maker))
      dead.insert(maker);
  eraseDead(dead.getArrayRef(), ranks, erased);
}
