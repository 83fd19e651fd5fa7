// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_EXEC_GROUPEDOPS_H
#define SHARDC_DIALECTS_EXEC_GROUPEDOPS_H

#include "dialects/exec/Exec.h"

#define GET_OP_CLASSES
#include "dialects/exec/GroupedOps.h.inc"

#endif // SHARDC_DIALECTS_EXEC_GROUPEDOPS_H
