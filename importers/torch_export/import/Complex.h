// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments of calls with complex tensors. A complex tensor of shape S is a real one of shape S +
// [2] everywhere in the program (dialects/aten/Pairs.h).
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_COMPLEX_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_COMPLEX_H

#include "importers/torch_export/import/BuildersInternal.h"

#include "dialects/aten/Pairs.h"

namespace shardc::torch_export {

/// The operator that is called, without the name of its overload: "add" of "add.Tensor".
inline llvm::StringRef packetOf(const Call &call) {
  return llvm::StringRef(call.schema.overload).split('.').first;
}

/// Whether an argument is a complex tensor.
inline bool isOfPairs(Call &call, llvm::StringRef argument) {
  const TensorMeta *meta = call.recorded(argument);
  return meta && meta->isComplex();
}

/// A number or tensor, real or complex.
struct ComplexOperand {
  mlir::Value value;
  bool isPair = false;
};

struct ComplexCall {
  Call &call;
  Emitter emit;
  Pairs pairs;
  /// Of the parts of numbers: that of the result, or of the widest operand where the result has
  /// none.
  mlir::Type type;

  explicit ComplexCall(Call &call);

  /// The argument in this element type. Null where it is None.
  mlir::FailureOr<ComplexOperand> operand(llvm::StringRef name);
  /// Likewise, as pairs. Null where it is None.
  mlir::FailureOr<mlir::Value> pair(llvm::StringRef name);
  mlir::Value asPair(ComplexOperand operand) {
    return operand.isPair ? operand.value : pairs.ofReal(operand.value);
  }
  /// Whether dims that are known do not broadcast with each other; it is reported.
  llvm::LogicalResult checkBroadcast(llvm::ArrayRef<ComplexOperand> operands);
  /// Likewise, whether two tensors do not fit as factors of a matrix product.
  llvm::LogicalResult checkFactors(mlir::Value lhs, mlir::Value rhs);
  mlir::Value product(ComplexOperand lhs, ComplexOperand rhs);
  mlir::Value quotient(ComplexOperand lhs, ComplexOperand rhs);
  mlir::Value sum(mlir::Value z, ComplexOperand added);
  /// The number of dims of a tensor that the program knows.
  static int64_t rankOf(mlir::Value z) { return aten::typeOf(z).getRank() - 1; }
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_COMPLEX_H
