// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect with all its ops, as its reference page shows them.
#ifndef SHARDC_DIALECTS_ATEN_DIALECT_TD
#define SHARDC_DIALECTS_ATEN_DIALECT_TD

include "dialects/aten/Ops.td"
include "dialects/aten/Custom.td"
include "dialects/aten/Fourier.td"
include "dialects/aten/Grouped.td"
include "dialects/aten/Random.td"
include "dialects/aten/Scans.td"
include "dialects/aten/Sorting.td"
include "dialects/aten/Neighborhood.td"
include "dialects/aten/Spatial.td"
include "dialects/aten/Writing.td"

#endif // SHARDC_DIALECTS_ATEN_DIALECT_TD
