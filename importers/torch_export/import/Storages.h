// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values for tensors that may share storage and be updated in place: reads after an update see it,
// whatever view it went through. Without updates this is a table of values.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STORAGES_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STORAGES_H

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"

namespace shardc::torch_export {

class Storages {
public:
  using Tensor = unsigned;

  explicit Storages(mlir::OpBuilder &builder) : builder(builder) {}

  /// A tensor with a storage of its own.
  Tensor add(mlir::Value value);
  /// A tensor that shares the storage of `source`; `value` is what view ops, one on the first
  /// operand of the other, made of the source's value, or that value itself.
  Tensor addView(Tensor source, mlir::Value value);

  /// The tensor's present value. Builds the views of an updated storage again. Null, after a
  /// diagnostic, if that is not possible.
  mlir::Value read(Tensor tensor, mlir::Location loc);

  /// Updates the tensor, and everything that shares its storage. An update of a view is carried to
  /// the rest of its storage only when that is read, which fails for views through which it cannot
  /// be expressed.
  void write(Tensor tensor, mlir::Value value, mlir::Location loc);

  /// The value that the tensor was last known to have, without building anything.
  mlir::Value lastValue(Tensor tensor) const;

  /// The tensor of which this one is another name.
  Tensor original(Tensor tensor) const;

  /// Whether the tensor's storage has been updated.
  bool updated(Tensor tensor) const {
    const Storage &storage = storages[tensors[tensor].storage];
    return storage.version != 0 || !storage.pending.empty();
  }

private:
  struct Entry {
    mlir::Value value, sourceValue;
    llvm::SmallVector<mlir::OpResult, 1> views; // from the source on; none: the source itself
    int source = -1;
    unsigned storage = 0, version = 0;
    bool isWritten = false; // through the view
  };
  struct Update {
    Tensor tensor;
    mlir::Value value;
    mlir::Location loc;
  };
  struct Storage {
    unsigned version = 0; // updates that have reached the whole storage
    llvm::SmallVector<Update, 1> pending;
  };

  mlir::LogicalResult carryOut(Storage &storage);
  mlir::LogicalResult apply(Tensor tensor, mlir::Value value, mlir::Location loc);
  mlir::Value scatter(const Entry &entry, mlir::Value source, mlir::Value part, mlir::Location loc);

  mlir::OpBuilder &builder;
  llvm::SmallVector<Entry, 0> tensors;
  llvm::SmallVector<Storage, 0> storages;
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STORAGES_H
