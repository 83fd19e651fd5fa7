// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of the dialect, for generators.

#ifndef SHARDC_DIALECTS_EXEC_EXECOPS_TD
#define SHARDC_DIALECTS_EXEC_EXECOPS_TD

include "dialects/exec/Collectives.td"
include "dialects/exec/HostOps.td"
include "dialects/exec/KernelOps.td"
include "dialects/exec/PlanOps.td"

#endif // SHARDC_DIALECTS_EXEC_EXECOPS_TD
