// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `dist` dialect: meshes, layouts, redistribution, collectives, futures.

#ifndef SHARDC_DIALECTS_DIST_DIST_H
#define SHARDC_DIALECTS_DIST_DIST_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/dist/Dialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/dist/Types.h.inc"

#endif // SHARDC_DIALECTS_DIST_DIST_H
