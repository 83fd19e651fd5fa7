// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_SCANS_H
#define SHARDC_DIALECTS_ATEN_SCANS_H

#include "dialects/aten/Aten.h"

#define GET_OP_CLASSES
#include "dialects/aten/Scans.h.inc"

#endif // SHARDC_DIALECTS_ATEN_SCANS_H
