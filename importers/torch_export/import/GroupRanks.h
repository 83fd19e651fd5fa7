// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Process groups of an imported graph. A file has only their names, which mean something in the
// process that exported it alone.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_GROUPRANKS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_GROUPRANKS_H

#include "importers/torch_export/program/Program.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

namespace shardc::torch_export {

class Groups {
public:
  /// Finds every group that the program's collectives name. `source` is a JSON file that maps names
  /// to a list of ranks, to several such lists, or to a size where the ranks are unknown (if the
  /// file's stem `model` is a key, its value is such a map); "consecutive" assumes ranks 0 to size
  /// - 1 for each name; empty is no source. Fails after an error at `file` that lists all names
  /// that are missing, or in conflict with a size the program says.
  static mlir::FailureOr<Groups> find(const ExportedProgram &program, llvm::StringRef source,
                                      llvm::StringRef model, mlir::Location file);

  /// A group attribute of the dist dialect; null for a name the program does not have.
  mlir::Attribute lookup(llvm::StringRef name) const { return groups.lookup(name); }

  bool empty() const { return groups.empty(); }

private:
  llvm::StringMap<mlir::Attribute> groups;
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_GROUPRANKS_H
