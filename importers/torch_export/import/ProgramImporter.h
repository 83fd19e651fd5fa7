// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exported program as a module of the imported stage.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_PROGRAMIMPORTER_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_PROGRAMIMPORTER_H

#include "importers/CustomOp.h"
#include "importers/torch_export/program/Program.h"
#include "support/archive/TensorStore.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace shardc::torch_export {

struct ImportOptions {
  std::string path;   // of the file, for messages
  std::string groups; // where the ranks of process groups are: see Groups::find
  /// `shardc export` has decomposed the program: it is no help to export it so.
  bool isDecomposed = false;
  std::vector<CustomOp> ops = {}; // that the user has registered
};

/// Makes a module with one public function `forward`:
///  - its arguments are the parameters, buffers and constants (tied ones are one argument with all
///    of their names; small constants become aten.constant), then the user inputs, its results the
///    outputs, then what the program updates in place; names and kinds are in `dist.name` and
///    `dist.kind`;
///  - every node is one op, which carries the node's name, module path and source line as location;
///    constants and sizes that it needs beside carry no name;
///  - updates in place, also through views, are turned into values;
///  - symbolic sizes are arithmetic on `aten.sym_size`, ranges are in `dist.symbols`.
/// A program without collectives is of the imported stage. In one with collectives these are `dist`
/// ops on futures, and operators that shardc does not know are `aten.opaque`.
/// On failure returns null after all errors have been emitted; unsupported operators come together
/// in one error.
mlir::OwningOpRef<mlir::ModuleOp> importProgram(const ExportedProgram &program,
                                                const TensorStore &tensors,
                                                const ImportOptions &options,
                                                mlir::MLIRContext *context);

/// Emits one error that lists every operator of the program that cannot be imported, with the
/// number of its uses and up to three places. True if there is none.
bool checkOperators(const ExportedProgram &program, mlir::Location file,
                    const ImportOptions &options);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_PROGRAMIMPORTER_H
