// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/IdentityOpInterface.h"

#include "dialects/interfaces/IdentityOpInterface.cpp.inc"
