// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ops that move elements along a dim say about it.
#ifndef SHARDC_PASSES_LOCALIZE_PIECESOPINTERFACE_H
#define SHARDC_PASSES_LOCALIZE_PIECESOPINTERFACE_H

#include "passes/localize/core/Pieces.h"

#include "mlir/IR/OpDefinition.h"

#include <optional>

#include "passes/localize/PiecesOpInterface.h.inc"

#endif // SHARDC_PASSES_LOCALIZE_PIECESOPINTERFACE_H
