// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Statistics and derivatives of a tensor that is standardised over some of its dims.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STANDARD_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STANDARD_H

#include "importers/torch_export/import/Call.h"

#include "dialects/aten/Emitter.h"

namespace shardc::torch_export {

/// begin, ..., end - 1
llvm::SmallVector<int64_t> dimRange(int64_t begin, int64_t end);
/// All dims but the channels, dim 1.
llvm::SmallVector<int64_t> dimsBesideChannels(int64_t rank);

/// The number of elements along some dims, where it is known.
std::optional<int64_t> fixedCount(mlir::Value x, llvm::ArrayRef<int64_t> dims);
/// The number of elements along some dims, as a 0-dim tensor.
mlir::Value countAlong(Emitter &emit, mlir::Value x, llvm::ArrayRef<int64_t> dims,
                       mlir::Type elementType);

/// Computed in f32 for shorter floats, as PyTorch does.
struct Standard {
  Call &call;
  llvm::SmallVector<int64_t> dims;
  Emitter emit;

  Standard(Call &call, llvm::ArrayRef<int64_t> dims)
      : call(call), dims(dims), emit(call.builder, call.loc) {}

  mlir::Value wide(mlir::Value x);

  /// Autograd takes the statistics that a layer norm or a batch norm returns for constants (not
  /// those of a group norm).
  mlir::Value constant(mlir::Value statistic, mlir::Type elementType);

  mlir::FailureOr<mlir::Value> mean(mlir::Value x, bool keepdim = true);

  /// Mean and 1 / sqrt(variance + eps), with reduced dims of one element.
  mlir::FailureOr<std::pair<mlir::Value, mlir::Value>> statistics(mlir::Value x, double eps);

  /// scale * (grad - mean(grad) - value * mean(grad * value))
  mlir::FailureOr<mlir::Value> ofInput(mlir::Value grad, mlir::Value value, mlir::Value scale);
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STANDARD_H
