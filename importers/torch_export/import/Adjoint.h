// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Backward overloads as what they are: derivatives of other ops.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_ADJOINT_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_ADJOINT_H

#include "importers/torch_export/import/Builders.h"

namespace shardc::torch_export {

/// The cotangents of the operands of `forward`, in their shapes and element types, where its first
/// result has this one: what the op's model of DifferentiableOpInterface builds. Null for operands
/// that are not `wanted` and for those that no cotangent reaches. `forward` is erased if its
/// results are not read. Fails with an error at the call.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildAdjoint(Call &call, mlir::Operation *forward,
                                                             mlir::Value cotangent,
                                                             llvm::ArrayRef<bool> wanted);

/// Which cotangents a backward overload gives: its argument `output_mask`. Those that it leaves out
/// are no results of the call.
class OutputMask {
public:
  /// Fails with an error at the call if the mask does not fit the call's results.
  static mlir::FailureOr<OutputMask> of(Call &call, unsigned count);
  /// Of an overload without a mask: all of them.
  static OutputMask all(unsigned count);

  unsigned size() const { return static_cast<unsigned>(given.size()); }
  /// Whether cotangent i is a result of the call that somebody reads.
  bool wants(Call &call, unsigned i) const { return given[i] && call.isUsed(resultOf(i)); }
  /// The number of the result that cotangent i is.
  unsigned resultOf(unsigned i) const;
  /// Results of the call: the cotangents without those that are left out.
  Results results(llvm::ArrayRef<mlir::Value> cotangents) const;

private:
  llvm::SmallVector<bool> given;
};

inline constexpr unsigned kNoOperand = ~0u;

/// Cotangents of operands of `forward` by their numbers, null for kNoOperand and for what nobody
/// reads. One that is wanted and that no cotangent reaches is zeros.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> cotangentsOf(Call &call, mlir::Operation *forward,
                                                             mlir::Value cotangent,
                                                             llvm::ArrayRef<unsigned> operands,
                                                             const OutputMask &mask);

/// The results of a call without a mask.
mlir::FailureOr<Results> adjointOf(Call &call, mlir::Operation *forward, mlir::Value cotangent,
                                   llvm::ArrayRef<unsigned> operands);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_ADJOINT_H
