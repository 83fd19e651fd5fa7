// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one front door for model files. A tool opens a file, asks which importer takes it (told by
// the content, never by the name) and gets a module; MLIR text and bytecode need no importer.

#ifndef SHARDC_IMPORTERS_IMPORTER_H
#define SHARDC_IMPORTERS_IMPORTER_H

#include "importers/CustomOp.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <string>
#include <vector>

namespace shardc {

/// What a tool's options say about its input, for every importer.
struct InputOptions {
  /// Ranks of process groups that a graph names: a JSON file, or "consecutive".
  std::string groups;
  /// Inputs of a model whose file does not say what they are: "NAME=8x64xf32".
  std::vector<std::string> inputs;
  /// Operators that the user has registered.
  std::vector<CustomOp> ops = {};
  /// Buffers that have the elements which they have in the file in all runs, by patterns of names.
  std::vector<std::string> fixedBuffers = {};
};

struct Importer {
  /// Shown in messages, e.g. "a torch.export archive".
  llvm::StringRef name;
  /// True if this importer takes the file. Looks at the bytes only; must not fail on any content.
  bool (*accepts)(llvm::MemoryBufferRef file);
  /// Makes the module of the imported stage. The buffer's identifier is the path. On failure
  /// returns null after having emitted every error as a diagnostic of the context.
  mlir::OwningOpRef<mlir::ModuleOp> (*import)(llvm::MemoryBufferRef file,
                                              const InputOptions &options,
                                              mlir::MLIRContext *context);
  /// Whether it asks for `InputOptions::inputs`.
  bool readsInputSpecs = false;
};

/// The first of `importers` that takes `file`; null where the file is to be read as MLIR.
const Importer *findImporter(llvm::ArrayRef<Importer> importers, llvm::MemoryBufferRef file);

} // namespace shardc

#endif // SHARDC_IMPORTERS_IMPORTER_H
