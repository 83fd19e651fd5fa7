// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From object files to a shared object, within the process.

#ifndef SHARDC_LOWERING_ARTIFACT_LINK_H
#define SHARDC_LOWERING_ARTIFACT_LINK_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace shardc::artifact {

struct LinkOptions {
  /// The only symbols that stay visible.
  llvm::SmallVector<std::string> exported;
  std::string soname;
  /// Shared objects, object files and archives that have what the objects lack: absolute paths. A
  /// shared object is found where it is, or beside the result.
  std::vector<std::string> libraries;
};

/// Links ELF objects (their bytes) into the shared object `path`, written beside it and renamed.
/// Undefined symbols may only be those of libc and libm, which become its dependences, and of
/// `libraries`; any other is an error that names it.
llvm::Error linkSharedObject(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects,
                             llvm::StringRef path, const LinkOptions &options);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_LINK_H
