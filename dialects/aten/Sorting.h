// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_SORTING_H
#define SHARDC_DIALECTS_ATEN_SORTING_H

#include "dialects/aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/aten/Sorting.h.inc"

#endif // SHARDC_DIALECTS_ATEN_SORTING_H
