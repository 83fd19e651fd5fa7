// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/interfaces/DifferentiableOpInterface.h"

#include "dialects/interfaces/DifferentiableOpInterface.cpp.inc"
