// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What losses have in common: how they are reduced, and the negative log-likelihood.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_LIKELIHOOD_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_LIKELIHOOD_H

#include "importers/torch_export/import/Call.h"

#include "dialects/aten/Emitter.h"

namespace shardc::torch_export {

/// PyTorch's numbers of at::Reduction.
enum class LossReduction { None = 0, Mean = 1, Sum = 2 };

mlir::FailureOr<LossReduction> lossReductionOf(Call &call);

/// The sum of all elements.
mlir::Value totalOf(Emitter &emit, mlir::Value x);

/// The negative log-likelihood of classes along dim 1 (or 0 of a vector), of which `ignore_index`
/// does not count.
struct Likelihood {
  Emitter emit;
  LossReduction reduction;
  mlir::Value self;
  mlir::Value counts;   ///< whether a target is not ignored
  mlir::Value position; ///< of the class, with a dim of 1; 0 where it is ignored
  mlir::Value factor;   ///< its weight, 0 where it is ignored; of the shape of `position`
  int64_t dim;

  /// Of a call with the arguments of nll_loss. `self`: what stands in the place of that argument.
  static mlir::FailureOr<Likelihood> of(Call &call, mlir::Value self = {});

  /// The loss in the call's reduction, of log-probabilities. `sizes`: of one that is not reduced.
  mlir::Value loss(llvm::ArrayRef<mlir::OpFoldResult> sizes);
  mlir::Value totalWeight() { return totalOf(emit, factor); }
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_LIKELIHOOD_H
