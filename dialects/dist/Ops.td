// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_DIST_OPS_TD
#define SHARDC_DIALECTS_DIST_OPS_TD

include "dialects/dist/DistBase.td"
include "dialects/dist/Types.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

#endif // SHARDC_DIALECTS_DIST_OPS_TD
