// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of a function's arguments and results, edited together. A change through the function
// itself makes a new array of all of them, in time and memory of the context, so that a change of
// each argument is quadratic in their number.
#ifndef SHARDC_DIALECTS_DIST_SIGNATUREATTRIBUTES_H
#define SHARDC_DIALECTS_DIST_SIGNATUREATTRIBUTES_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shardc::dist {

class SignatureAttributes {
public:
  explicit SignatureAttributes(mlir::FunctionOpInterface function);

  mlir::NamedAttrList &argument(unsigned index) { return arguments[index]; }
  mlir::NamedAttrList &result(unsigned index) { return results[index]; }

  /// Writes them back. The numbers of arguments and results must be what they were.
  void store();

private:
  mlir::FunctionOpInterface function;
  llvm::SmallVector<mlir::NamedAttrList, 0> arguments, results;
};

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_SIGNATUREATTRIBUTES_H
