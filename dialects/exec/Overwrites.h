// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that write elements of a destination again.
#ifndef SHARDC_DIALECTS_EXEC_OVERWRITES_H
#define SHARDC_DIALECTS_EXEC_OVERWRITES_H

#include "llvm/ADT/StringRef.h"

namespace shardc::exec {

/// Unit attribute of a kernel: having written all of a destination, it may write elements of it
/// again that it does not read before, as a write at computed positions does.
inline constexpr llvm::StringLiteral kOverwritesAttr = "exec.overwrites";

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_OVERWRITES_H
