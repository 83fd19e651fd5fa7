// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of the dialect that order others (Ordering.td). `Dist.h` does not include it: few need it.

#ifndef SHARDC_DIALECTS_DIST_ORDERING_H
#define SHARDC_DIALECTS_DIST_ORDERING_H

#include "dialects/dist/Dist.h"
#include "dialects/interfaces/OpInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/dist/Ordering.h.inc"

#endif // SHARDC_DIALECTS_DIST_ORDERING_H
