// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_H
#define SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_H

#include "mlir/IR/OpDefinition.h"

#include "dialects/interfaces/IdentityOpInterface.h.inc"

#endif // SHARDC_DIALECTS_INTERFACES_IDENTITYOPINTERFACE_H
