// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_SPATIAL_H
#define SHARDC_DIALECTS_ATEN_SPATIAL_H

#include "dialects/aten/Aten.h"
#include "dialects/aten/Window.h"

#include "dialects/aten/WindowInterface.h.inc"

#define GET_OP_CLASSES
#include "dialects/aten/Spatial.h.inc"

#endif // SHARDC_DIALECTS_ATEN_SPATIAL_H
