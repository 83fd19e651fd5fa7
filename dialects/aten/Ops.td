// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of Aten.h: those of families without a header of their own (CMakeLists.txt).
#ifndef SHARDC_DIALECTS_ATEN_OPS_TD
#define SHARDC_DIALECTS_ATEN_OPS_TD

include "dialects/aten/Attention.td"
include "dialects/aten/Contractions.td"
include "dialects/aten/Creation.td"
include "dialects/aten/Elementwise.td"
include "dialects/aten/Indexing.td"
include "dialects/aten/Normalization.td"
include "dialects/aten/Opaque.td"
include "dialects/aten/Reductions.td"
include "dialects/aten/Views.td"

#endif // SHARDC_DIALECTS_ATEN_OPS_TD
