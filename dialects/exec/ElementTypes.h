// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of tensors as the runtime numbers and names them (runtime/include/shardrt.h).

#ifndef SHARDC_DIALECTS_EXEC_ELEMENTTYPES_H
#define SHARDC_DIALECTS_EXEC_ELEMENTTYPES_H

#include "mlir/IR/Types.h"

namespace shardc::exec {

/// A shardrt_type; 0 for a type that the runtime does not have.
int32_t runtimeType(mlir::Type type);
/// The name in manifests; empty for a number that stands for no type.
llvm::StringRef typeName(int32_t type);

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_ELEMENTTYPES_H
