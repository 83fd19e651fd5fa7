// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Storages.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/PastAutograd.h"
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
  entry.sourceValue = tensors[source].value;
  entry.source = int(source);
  entry.storage = tensors[source].storage;
  Storage &storage = storages[entry.storage];
  entry.version = storage.version;
  // While an update waits, the tensor that it updates has its own new value.
  if (!storage.pending.empty())
    entry.sourceValue = storage.pending.back().value;
  if (value != entry.sourceValue) {
    entry.view = value.getDefiningOp();
    entry.result = cast<OpResult>(value).getResultNumber();
  }
  tensors.push_back(entry);
  return tensors.size() - 1;
}

Storages::Tensor Storages::original(Tensor tensor) const {
  while (!tensors[tensor].view && tensors[tensor].source >= 0)
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
  if (!llvm::is_contained(entry.view->getOperands(), entry.sourceValue)) {
    emitError(loc)
        << "an operator here reads a view, made by '" << entry.view->getName()
        << "', of a tensor that has been updated in place, which is not supported: export "
           "the model with `shardc export`, which replaces updates in place";
    return {};
  }
  IRMapping mapping;
  mapping.map(entry.sourceValue, source);
  entry.view = builder.clone(*entry.view, mapping);
  entry.view->setLoc(withoutName(entry.view->getLoc()));
  entry.value = entry.view->getResult(entry.result);
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
  // What was written last is what the view has now, with the gradient that it has.
  Entry &last = tensors[updates.back().tensor];
  last.value = updates.back().value;
  last.version = storage.version;
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
  return success(whole && succeeded(apply(source, whole, loc)));
}

Value Storages::scatter(const Entry &entry, Value source, Value part, Location nodeLoc) {
  if (!entry.view)
    return part;
  Location loc = withoutName(nodeLoc);
  auto replace = [&](int64_t dim, OpFoldResult start, Value slice) {
    return buildReplaceSlice(builder, loc, source, dim, start, slice);
  };
  auto position = [&](int64_t fixed, Value dynamic, int64_t dim) -> OpFoldResult {
    if (dynamic)
      return dynamic;
    int64_t size = aten::shapeOf(source)[dim];
    if (fixed < 0 && ShapedType::isDynamic(size))
      return {};
    return builder.getIndexAttr(fixed < 0 ? std::max<int64_t>(fixed + size, 0) : fixed);
  };
  FailureOr<Value> whole =
      llvm::TypeSwitch<Operation *, FailureOr<Value>>(entry.view)
          .Case([&](aten::AliasOp op) -> Value {
            if (!op.getDetached() || !isa<FloatType>(aten::typeOf(part).getElementType()))
              return part;
            // PyTorch's gradient of what reads the source now is that of its old value.
            auto detached = aten::AliasOp::create(builder, loc, part);
            detached.setDetached(true);
            auto written = aten::CopyOp::create(builder, loc, source.getType(), source, detached);
            written->setAttr(aten::kPastAutogradAttr, builder.getUnitAttr());
            return written;
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
            return aten::PermuteOp::create(builder, loc, source.getType(), part, inverse)
                .getResult();
          })
          .Case([&](aten::SliceOp op) -> FailureOr<Value> {
            int64_t dim = int64_t(op.getDim());
            OpFoldResult start = position(op.getStaticStart(), op.getStart(), dim);
            if (op.getStep() != 1 || !start)
              return failure();
            return replace(dim, start, part);
          })
          .Case([&](aten::SelectOp op) -> FailureOr<Value> {
            int64_t dim = int64_t(op.getDim());
            OpFoldResult start = position(op.getStaticIndex(), op.getIndex(), dim);
            if (!start)
              return failure();
            FailureOr<Value> slice = buildUnsqueeze(builder, loc, part, dim);
            if (failed(slice))
              return failure();
            return replace(dim, start, *slice);
          })
          .Case([&](aten::SplitWithSizesOp op) -> FailureOr<Value> {
            int64_t start = 0;
            for (int64_t size : op.getStaticSplitSizes().take_front(entry.result)) {
              if (ShapedType::isDynamic(size))
                return failure();
              start += size;
            }
            return replace(int64_t(op.getDim()), builder.getIndexAttr(start), part);
          })
          .Default([](Operation *) { return failure(); });
  if (succeeded(whole))
    return *whole;
  emitError(nodeLoc) << "an operator here updates a view, made by '" << entry.view->getName()
                     << "', in place, which is not supported: export the model with `shardc "
                        "export`, which replaces updates in place";
  return {};
}

} // namespace shardc::torch_export
