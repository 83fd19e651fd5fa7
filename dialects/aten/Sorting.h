// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_SORTING_H
#define SHARDC_DIALECTS_ATEN_SORTING_H

#include "dialects/aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/aten/Sorting.h.inc"

namespace shardc::aten {

/// A sort over a sharded dim finds the values at the borders of the shards digit by digit of a key
/// that is ordered as the elements are (passes/localize/SampleSort.cpp).
constexpr unsigned kSortDigitBits = 8;
/// Bits of the key of an element type: those of f32 for shorter floats.
unsigned sortKeyBits(mlir::Type elementType);
/// Whether a dim of a known size is the only one of more than one element: it may be sorted
/// sharded.
bool isSortedAlone(llvm::ArrayRef<int64_t> shape, int64_t dim);
/// Positions are sent as i32 where the dim allows it: bytes of one.
int64_t sortPositionBytes(int64_t size);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_SORTING_H
