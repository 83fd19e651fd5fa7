// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/PiecesOpInterface.h"

#include "passes/localize/PiecesOpInterface.cpp.inc"
