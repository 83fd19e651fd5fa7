// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Storages.h"

#include "dialects/aten/Aten.h"
#include "importers/torch_export/import/Parts.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::torch_export {

Storages::Tensor Storages::add(Value value) {
  Entry entry;
  entry.value = value;
  entry.storage = versions.size();
  versions.push_back(0);
  tensors.push_back(entry);
  return tensors.size() - 1;
}

Storages::Tensor Storages::addView(Tensor source, Value value) {
  Entry entry;
  entry.value = value;
  entry.sourceValue = tensors[source].value;
  entry.source = int(source);
  entry.storage = tensors[source].storage;
  entry.version = versions[entry.storage];
  if (value != entry.sourceValue) {
    entry.view = value.getDefiningOp();
    entry.result = cast<OpResult>(value).getResultNumber();
  }
  tensors.push_back(entry);
  return tensors.size() - 1;
}

Value Storages::read(Tensor tensor, Location loc) {
  if (tensors[tensor].version == versions[tensors[tensor].storage])
    return tensors[tensor].value;
  Value source = read(Tensor(tensors[tensor].source), loc);
  Entry &entry = tensors[tensor];
  if (!source)
    return {};
  Value value = source;
  if (entry.view) {
    if (!llvm::is_contained(entry.view->getOperands(), entry.sourceValue)) {
      emitError(loc) << "reads a view, made by '" << entry.view->getName()
                     << "', of a tensor that has been updated in place; this is not supported";
      return {};
    }
    // Of a view whose own value was replaced by an update, the op still reads the old source.
    IRMapping mapping;
    mapping.map(entry.sourceValue, source);
    Operation *view = builder.clone(*entry.view, mapping);
    entry.view = view;
    value = view->getResult(entry.result);
  }
  entry.value = value;
  entry.sourceValue = source;
  entry.version = versions[entry.storage];
  return value;
}

LogicalResult Storages::write(Tensor tensor, Value value, Location loc) {
  Entry &entry = tensors[tensor];
  if (entry.source < 0) {
    entry.version = ++versions[entry.storage];
    entry.value = value;
    return success();
  }
  Tensor source = Tensor(entry.source);
  Value old = read(source, loc);
  Value whole = old ? scatter(tensors[tensor], old, value, loc) : Value();
  if (!whole || failed(write(source, whole, loc)))
    return failure();
  if (!tensors[tensor].view) {
    tensors[tensor].value = tensors[tensor].sourceValue = value;
    tensors[tensor].version = versions[tensors[tensor].storage];
  }
  return success();
}

Value Storages::scatter(const Entry &entry, Value source, Value part, Location loc) {
  if (!entry.view)
    return part;
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
          .Case([&](aten::AliasOp) { return part; })
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
  emitError(loc) << "updates in place a view made by '" << entry.view->getName()
                 << "'; this is not supported: export the model with run_decompositions()";
  return {};
}

} // namespace shardc::torch_export
