// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_GROUPED_H
#define SHARDC_DIALECTS_ATEN_GROUPED_H

#include "dialects/aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/aten/Grouped.h.inc"

#endif // SHARDC_DIALECTS_ATEN_GROUPED_H
