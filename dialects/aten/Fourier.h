// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_FOURIER_H
#define SHARDC_DIALECTS_ATEN_FOURIER_H

#include "dialects/aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/aten/Fourier.h.inc"

namespace shardc::aten {

/// All dims but `dim` and the last one of pairs are independent. Linear.
ShardingRule fourierRule(mlir::Operation *op, int64_t dim);

/// By what a transform of n elements multiplies its result.
double fourierScale(int64_t normalization, int64_t n);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_FOURIER_H
