// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CPU_CPUTARGET_H
#define SHARDC_LOWERING_CPU_CPUTARGET_H

#include "lowering/target/Backend.h"

namespace shardc::cpu {

/// "cpu" is the machine the compiler runs on, "cpu:NAME" a processor that LLVM knows of the same
/// architecture. Its properties are `triple`, `chip` and `features`. Kernels are functions that the
/// host program calls; host program and kernels are one object.
std::unique_ptr<target::Backend> createBackend();

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_CPUTARGET_H
