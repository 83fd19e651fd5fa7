// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments and results of the imported function.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SIGNATURE_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SIGNATURE_H

#include "importers/torch_export/program/Program.h"
#include "support/archive/TensorStore.h"

#include "dialects/dist/FunctionAttributes.h"

namespace shardc::torch_export {

/// What an input of the program is: an argument of the function, a constant, or neither (None).
struct SignatureInput {
  std::optional<unsigned> argument;
  /// No gradient passes this name to the argument: it is a frozen parameter or a buffer on the
  /// storage of a parameter that is trained.
  bool isDetached = false;
  mlir::DenseElementsAttr constant;
};

struct SignatureOutput {
  llvm::StringRef name; // of the graph's value
  mlir::DictionaryAttr attributes;
};

struct Signature {
  llvm::SmallVector<mlir::Type> argumentTypes;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttributes;
  llvm::SmallVector<SignatureInput> inputs; // one for each input of the program
  llvm::SmallVector<SignatureOutput> outputs;
  mlir::ArrayAttr symbols; // null if there are none
};

/// Fails after diagnostics at `file` for every input and output that cannot be one of the
/// function's. A `lenient` one leaves out results that are numbers, and has tensors of every
/// element type.
mlir::FailureOr<Signature> makeSignature(const ExportedProgram &program, const TensorStore &store,
                                         mlir::Location file, bool lenient);

/// An output that is returned has another name than what an update gives that name (`taken`): its
/// number is added.
void renameOutputs(llvm::MutableArrayRef<mlir::DictionaryAttr> outputs, llvm::StringRef taken);

/// Attributes of the result that holds the new value of input `number`, updated in place.
mlir::DictionaryAttr makeMutation(mlir::MLIRContext *context, const ExportedProgram &program,
                                  unsigned number);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SIGNATURE_H
