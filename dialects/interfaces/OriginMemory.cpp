// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/interfaces/OriginMemory.h"

using namespace shardc;

static thread_local OriginMemory *active = nullptr;

OriginMemory::OriginMemory() : outer(active) { active = outer ? outer : this; }
OriginMemory::~OriginMemory() { active = outer; }
OriginMemory *OriginMemory::current() { return active; }
