// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM IR to machine code to a shared object, all within the process.

#ifndef SHARDC_LOWERING_ARTIFACT_OBJECT_H
#define SHARDC_LOWERING_ARTIFACT_OBJECT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace shardc::artifact {

/// Runs LLVM's -O3 pipeline on `module` and emits an ELF object. `module` gets the machine's triple
/// and data layout; it is changed by the optimisation.
llvm::Expected<llvm::SmallVector<char, 0>> emitObject(llvm::Module &module,
                                                      llvm::TargetMachine &machine);

struct LinkOptions {
  /// The only symbols that stay visible.
  llvm::SmallVector<std::string> exported;
  std::string soname;
};

/// Links ELF objects (their bytes) into the shared object `path`, written beside it and renamed.
/// Undefined symbols may only be those of libc and libm, which become its dependences; any other is
/// an error that names it.
llvm::Error linkSharedObject(llvm::ArrayRef<llvm::SmallVector<char, 0>> objects,
                             llvm::StringRef path, const LinkOptions &options);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_OBJECT_H
