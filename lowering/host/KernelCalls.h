// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_HOST_KERNELCALLS_H
#define SHARDC_LOWERING_HOST_KERNELCALLS_H

#include "lowering/target/Backend.h"

namespace shardc::host {

/// A launch is a call of the kernel, with the arguments of its binary interface
/// (KernelArguments.h): the frame, the location, and of each memref a pointer and what its type
/// does not say.
std::unique_ptr<target::LaunchLowering> createKernelCalls(mlir::ModuleOp module);

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_KERNELCALLS_H
