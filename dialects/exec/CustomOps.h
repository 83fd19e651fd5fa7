// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_EXEC_CUSTOMOPS_H
#define SHARDC_DIALECTS_EXEC_CUSTOMOPS_H

#include "dialects/exec/Exec.h"

#define GET_OP_CLASSES
#include "dialects/exec/CustomOps.h.inc"

#endif // SHARDC_DIALECTS_EXEC_CUSTOMOPS_H
