// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The data of a model that no weights file carries: its constants and non-persistent buffers.
#ifndef SHARDC_TOOLS_SHARDC_CONSTANTS_H
#define SHARDC_TOOLS_SHARDC_CONSTANTS_H

#include "support/archive/TensorStore.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace shardc {

class EmbeddedConstants {
public:
  /// Reads what `module`, imported from the file `model`, needs: arguments of kind "constant".
  /// Fails, after naming all that the file lacks.
  mlir::LogicalResult open(llvm::StringRef model, mlir::ModuleOp module);

  /// Row-major bytes of the constant with this name; nothing if there is none.
  std::optional<llvm::ArrayRef<char>> find(llvm::StringRef name) const;

private:
  std::map<std::string, std::vector<char>, std::less<>> dense;
};

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_CONSTANTS_H
