// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The aten dialect: tensor ops of exported PyTorch graphs (see AtenBase.td for its conventions).
#ifndef SHARDC_DIALECTS_ATEN_ATEN_H
#define SHARDC_DIALECTS_ATEN_ATEN_H

#include "dialects/aten/Inference.h"
#include "dialects/aten/Schema.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <array>

#include "dialects/aten/Dialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/aten/Ops.h.inc"

#endif // SHARDC_DIALECTS_ATEN_ATEN_H
