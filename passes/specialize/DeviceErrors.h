// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is wrong with a program on some of its devices.

#ifndef SHARDC_PASSES_SPECIALIZE_DEVICEERRORS_H
#define SHARDC_PASSES_SPECIALIZE_DEVICEERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

#include <map>
#include <vector>

namespace shardc {

/// Errors of one device class after the other. Each is emitted once, with the devices that have it.
class DeviceErrors {
public:
  /// Runs a function and keeps the errors that it emits.
  static std::vector<mlir::Diagnostic> collect(mlir::MLIRContext *context,
                                               llvm::function_ref<void()> function);

  void add(std::vector<mlir::Diagnostic> errors, llvm::ArrayRef<int64_t> devices);

  /// Emits them in order of first occurrence, with a note where not all of `numDevices` have it.
  /// `complete`: all devices were looked at.
  void emit(mlir::MLIRContext *context, int64_t numDevices, bool complete);

private:
  struct Entry {
    mlir::Diagnostic error;
    std::vector<int64_t> devices;
  };
  using Key = std::pair<const void *, std::string>; ///< place and text
  llvm::MapVector<Key, Entry, std::map<Key, unsigned>> entries;
};

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_DEVICEERRORS_H
