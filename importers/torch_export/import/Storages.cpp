// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Storages.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/PastAutograd.h"
#include "dialects/aten/Writing.h"
#include "dialects/interfaces/ModelLocation.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::torch_export {

// What is built again, or to carry an update on, is no node of the program.
static Location withoutName(Location loc) {
  FileLineColLoc source = getSourceLine(loc);
  return makeModelLocation(loc.getContext(), "", getModulePath(loc),
                           source ? source.getFilename().getValue() : StringRef(),
                           source ? source.getLine() : 0);
}

/// `value` in the place of `old`, of which it has the gradient: that is, none that a graph of
/// values could say, unless `old` has none.
static Value writePastAutograd(OpBuilder &builder, Location loc, Value old, Value value) {
  auto detached = aten::AliasOp::create(builder, loc, value);
  detached.setDetached(true);
  auto written = aten::CopyOp::create(builder, loc, old.getType(), old, detached);
  written->setAttr(aten::kPastAutogradAttr, builder.getUnitAttr());
  return written;
}

/// The view ops that made `value` of `source`, each on the first operand of the next; the last one
/// alone where no few ops are found that did.
static SmallVector<OpResult, 1> viewsBetween(Value source, OpResult value) {
  constexpr size_t most = 8;
  SmallVector<OpResult, 1> views;
  for (Value at = value; views.size() < most;) {
    auto result = dyn_cast<OpResult>(at);
    if (!result)
      break;
    views.push_back(result);
    ValueRange operands = result.getOwner()->getOperands();
    if (llvm::is_contained(operands, source)) {
      std::reverse(views.begin(), views.end());
      return views;
    }
    if (operands.empty())
      break;
    at = operands.front();
  }
  return {value};
}

/// The same views of `now` in the place of `source`.
static SmallVector<OpResult, 1> buildAgain(OpBuilder &builder, ArrayRef<OpResult> views,
                                           Value source, Value now) {
  IRMapping mapping;
  mapping.map(source, now);
  SmallVector<OpResult, 1> again;
  for (OpResult view : views) {
    Operation *op = builder.clone(*view.getOwner(), mapping);
    op->setLoc(withoutName(op->getLoc()));
    again.push_back(op->getResult(view.getResultNumber()));
  }
  return again;
}

/// `source` with `part` in the place of what `view` shows of it, or failure if that has no form.
static FailureOr<Value> buildWritten(OpBuilder &builder, Location loc, OpResult view, Value source,
                                     Value part) {
  auto position = [&](int64_t fixed, Value dynamic, int64_t dim) -> OpFoldResult {
    if (dynamic)
      return dynamic;
    int64_t size = aten::shapeOf(source)[dim];
    if (fixed < 0 && ShapedType::isDynamic(size))
      return {};
    return builder.getIndexAttr(fixed < 0 ? std::max<int64_t>(fixed + size, 0) : fixed);
  };
  return llvm::TypeSwitch<Operation *, FailureOr<Value>>(view.getOwner())
      .Case([&](aten::AliasOp op) -> Value {
        if (!op.getDetached() || !isa<FloatType>(aten::typeOf(part).getElementType()))
          return part;
        return writePastAutograd(builder, loc, source, part);
      })
      .Case<aten::ViewOp, aten::UnsqueezeOp, aten::SqueezeOp>(
          [&](auto) { return buildView(builder, loc, part, sizesOf(builder, loc, source)); })
      .Case([&](aten::TransposeOp op) -> FailureOr<Value> {
        return aten::TransposeOp::create(builder, loc, source.getType(), part, op.getDim0(),
                                         op.getDim1())
            .getResult();
      })
      .Case([&](aten::PermuteOp op) -> FailureOr<Value> {
        SmallVector<int64_t> inverse(op.getDims().size());
        for (auto [to, from] : llvm::enumerate(op.getDims()))
          inverse[from] = int64_t(to);
        return aten::PermuteOp::create(builder, loc, source.getType(), part, inverse).getResult();
      })
      .Case([&](aten::SliceOp op) -> FailureOr<Value> {
        int64_t dim = int64_t(op.getDim());
        OpFoldResult start = position(op.getStaticStart(), op.getStart(), dim);
        if (!start)
          return failure();
        if (op.getStep() == 1)
          return buildReplaceSlice(builder, loc, source, dim, start, part);
        std::optional<int64_t> first = getConstantIntValue(start);
        if (!first || aten::typeOf(source).isDynamicDim(dim) ||
            aten::typeOf(part).isDynamicDim(dim))
          return failure();
        return buildReplaceSteps(builder, loc, source, dim, *first, op.getStep(), part);
      })
      .Case([&](aten::SelectOp op) -> FailureOr<Value> {
        int64_t dim = int64_t(op.getDim());
        OpFoldResult start = position(op.getStaticIndex(), op.getIndex(), dim);
        if (!start)
          return failure();
        FailureOr<Value> slice = buildUnsqueeze(builder, loc, part, dim);
        if (failed(slice))
          return failure();
        return buildReplaceSlice(builder, loc, source, dim, start, *slice);
      })
      .Case([&](aten::SplitWithSizesOp op) -> FailureOr<Value> {
        int64_t start = 0;
        for (int64_t size : op.getStaticSplitSizes().take_front(view.getResultNumber())) {
          if (ShapedType::isDynamic(size))
            return failure();
          start += size;
        }
        return buildReplaceSlice(builder, loc, source, int64_t(op.getDim()),
                                 builder.getIndexAttr(start), part);
      })
      // Of two vectors of positions, a diagonal, which shows no element twice.
      .Case([&](aten::IndexOp op) -> FailureOr<Value> {
        auto isVector = [](Value index) { return aten::typeOf(index).getRank() == 1; };
        if (op.getIndices().size() != 2 || !llvm::all_of(op.getIndices(), isVector))
          return failure();
        return aten::IndexWriteOp::create(builder, loc, source.getType(), source, op.getIndices(),
                                          part, op.getIndicesAt(), /*skips=*/false)
            .getResult();
      })
      .Default([](Operation *) { return failure(); });
}

Storages::Tensor Storages::add(Value value) {
  Entry entry;
  entry.value = value;
  entry.storage = storages.size();
  storages.emplace_back();
  tensors.push_back(entry);
  return tensors.size() - 1;
}

Storages::Tensor Storages::addView(Tensor source, Value value) {
  source = original(source);
  Entry entry;
  entry.value = value;
  entry.sourceValue = lastValue(source);
  entry.source = int(source);
  entry.storage = tensors[source].storage;
  entry.version = storages[entry.storage].version;
  if (value != entry.sourceValue)
    entry.views = viewsBetween(entry.sourceValue, cast<OpResult>(value));
  tensors.push_back(entry);
  return tensors.size() - 1;
}

Storages::Tensor Storages::original(Tensor tensor) const {
  while (tensors[tensor].views.empty() && tensors[tensor].source >= 0)
    tensor = Tensor(tensors[tensor].source);
  return tensor;
}

Value Storages::lastValue(Tensor tensor) const {
  const Storage &storage = storages[tensors[tensor].storage];
  tensor = original(tensor);
  if (!storage.pending.empty() && storage.pending.back().tensor == tensor)
    return storage.pending.back().value;
  return tensors[tensor].value;
}

Value Storages::read(Tensor tensor, Location loc) {
  tensor = original(tensor);
  Storage &storage = storages[tensors[tensor].storage];
  if (!storage.pending.empty()) {
    if (storage.pending.back().tensor == tensor)
      return storage.pending.back().value;
    if (failed(carryOut(storage)))
      return {};
  }
  if (tensors[tensor].version == storage.version)
    return tensors[tensor].value;
  Value source = read(Tensor(tensors[tensor].source), loc);
  if (!source)
    return {};
  Entry &entry = tensors[tensor];
  if (!llvm::is_contained(entry.views.front().getOwner()->getOperands(), entry.sourceValue)) {
    emitError(loc)
        << "an operator here reads a view, made by '" << entry.views.back().getOwner()->getName()
        << "', of a tensor that has been updated in place, which is not supported: export "
           "the model with `shardc export`, which replaces updates in place";
    return {};
  }
  entry.views = buildAgain(builder, entry.views, entry.sourceValue, source);
  Value now = entry.views.back();
  // A detached tensor has the gradient of what was written into it, whatever its source gets.
  auto alias = now.getDefiningOp<aten::AliasOp>();
  if (alias && alias.getDetached() && entry.isWritten)
    now = writePastAutograd(builder, withoutName(loc), entry.value, now);
  entry.value = now;
  entry.sourceValue = source;
  entry.version = storage.version;
  return entry.value;
}

void Storages::write(Tensor tensor, Value value, Location loc) {
  tensor = original(tensor);
  Storage &storage = storages[tensors[tensor].storage];
  if (tensors[tensor].source < 0) {
    // All that was there is gone.
    storage.pending.clear();
    tensors[tensor].value = value;
    tensors[tensor].version = ++storage.version;
    return;
  }
  if (!storage.pending.empty() && storage.pending.back().tensor == tensor)
    storage.pending.pop_back();
  storage.pending.push_back({tensor, value, loc});
}

LogicalResult Storages::carryOut(Storage &storage) {
  SmallVector<Update, 1> updates = std::exchange(storage.pending, {});
  for (const Update &update : updates)
    if (failed(apply(update.tensor, update.value, update.loc)))
      return failure();
  return success();
}

LogicalResult Storages::apply(Tensor tensor, Value value, Location loc) {
  if (tensors[tensor].source < 0) {
    write(tensor, value, loc);
    return success();
  }
  Tensor source = original(Tensor(tensors[tensor].source));
  Value old = read(source, loc);
  Value whole = old ? scatter(tensors[tensor], old, value, loc) : Value();
  if (!whole || failed(apply(source, whole, loc)))
    return failure();
  // What was written is what the view has now, with the gradient that it has.
  Entry &entry = tensors[tensor];
  entry.value = value;
  entry.version = storages[entry.storage].version;
  entry.isWritten = true;
  return success();
}

Value Storages::scatter(const Entry &entry, Value source, Value part, Location nodeLoc) {
  if (entry.views.empty())
    return part;
  Location loc = withoutName(nodeLoc);
  // What each view was made of, as it is now.
  ArrayRef<OpResult> views = entry.views;
  SmallVector<Value, 2> wholes{source};
  llvm::append_range(wholes, buildAgain(builder, views.drop_back(), entry.sourceValue, source));
  for (auto [view, whole] : llvm::reverse(llvm::zip_equal(views, wholes))) {
    FailureOr<Value> written = buildWritten(builder, loc, view, whole, part);
    if (failed(written)) {
      emitError(nodeLoc) << "an operator here updates a view, made by '"
                         << view.getOwner()->getName()
                         << "', in place, which is not supported: export the model with `shardc "
                            "export`, which replaces updates in place";
      return {};
    }
    part = *written;
  }
  return part;
}

} // namespace shardc::torch_export
