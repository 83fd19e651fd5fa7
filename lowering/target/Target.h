// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The target of a module, as a value and in the IR. It is written once, when lowering begins
// (`exec-set-target`), in the form that MLIR has for it:
//
//   module attributes {dlti.target_system_spec = #dlti.target_system_spec<
//       "cpu" = #dlti.target_device_spec<"chip" = "znver4", "vector_bytes" = 64 : i64, ...>>}
//
// so that each pass behind it does the same again on the printed module.

#ifndef SHARDC_LOWERING_TARGET_TARGET_H
#define SHARDC_LOWERING_TARGET_TARGET_H

#include "lowering/target/Limits.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>

namespace shardc::target {

struct Target {
  /// Name of the backend.
  std::string kind;
  Limits limits;
  /// What only the backend understands (chip, features), by name.
  std::map<std::string, std::string> properties;

  /// "" for a property that is not set.
  llvm::StringRef property(llvm::StringRef name) const;
};

void setTarget(mlir::ModuleOp module, const Target &target);

/// Nothing for a module without one. Entries that mean nothing are errors at the module: an unknown
/// limit, one out of range, or more than one device.
mlir::FailureOr<std::optional<Target>> readTarget(mlir::ModuleOp module);

/// The limits of the target of the module around `op`; those of a module without target are the
/// defaults of `Limits`.
mlir::FailureOr<Limits> readLimits(mlir::Operation *op);

} // namespace shardc::target

#endif // SHARDC_LOWERING_TARGET_TARGET_H
