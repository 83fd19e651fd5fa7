// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The adjoint of broadcasting.
#ifndef SHARDC_DIALECTS_ATEN_SUMTO_H
#define SHARDC_DIALECTS_ATEN_SUMTO_H

#include "dialects/aten/Emitter.h"

namespace shardc {

/// `x` in the shape and element type of `want`, which broadcasts to the shape of `x`: summed over
/// the dims that `want` lacks and over those where it has one element, then cast.
mlir::Value sumTo(Emitter &emit, mlir::Value x, mlir::RankedTensorType want);

} // namespace shardc

#endif // SHARDC_DIALECTS_ATEN_SUMTO_H
