// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect with all its ops, as its reference page shows them.

#ifndef SHARDC_DIALECTS_EXEC_DIALECT_TD
#define SHARDC_DIALECTS_EXEC_DIALECT_TD

include "dialects/exec/CustomOps.td"
include "dialects/exec/ExecOps.td"
include "dialects/exec/GroupedOps.td"

#endif // SHARDC_DIALECTS_EXEC_DIALECT_TD
