// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch norm in training is composed of plain ops: the mean and the variance of the batch, an
// `aten.batch_norm` with these, and the new running statistics. Attributes say which ops belong to
// which norm, so that `aten-to-inference` can take it apart again. They are of use in imported
// functions; nothing else reads them.

#ifndef SHARDC_DIALECTS_ATEN_TRAININGNORM_H
#define SHARDC_DIALECTS_ATEN_TRAININGNORM_H

#include "llvm/ADT/StringRef.h"

namespace shardc::aten {

/// Of an `aten.batch_norm` with the statistics of the batch, and of the `aten.alias` ops below: a
/// distinct attribute, the same for all ops of one norm. A norm that has no running statistics has
/// none.
inline constexpr llvm::StringLiteral kTrainingNormAttr = "aten.training_norm";

/// What an `aten.alias` of a norm is: one of the names below.
inline constexpr llvm::StringLiteral kTrainingPartAttr = "aten.training_part";

/// A running statistic before the norm, and what the norm makes of it.
inline constexpr llvm::StringLiteral kOldMean = "old_mean";
inline constexpr llvm::StringLiteral kNewMean = "new_mean";
inline constexpr llvm::StringLiteral kOldVariance = "old_variance";
inline constexpr llvm::StringLiteral kNewVariance = "new_variance";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_TRAININGNORM_H
