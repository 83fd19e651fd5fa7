// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a slice takes of a dim.
#ifndef SHARDC_DIALECTS_ATEN_SLICERANGE_H
#define SHARDC_DIALECTS_ATEN_SLICERANGE_H

#include "dialects/interfaces/SizeAlgebra.h"

namespace shardc::aten {

/// First and number of elements of `[start : end : step]` along a dim of size `size`, clipped as in
/// Python; the largest int64_t stands for "to the end".
struct SliceRange {
  Dim first, count;
};
SliceRange sliceRange(SizeAlgebra &sizes, Dim start, Dim end, int64_t step, Dim size);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_SLICERANGE_H
