// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts of NVIDIA's toolkit that compiling for a real chip needs: ptxas, and libdevice for
// functions such as exp. Programs that were compiled need neither.

#ifndef SHARDC_LOWERING_CUDA_BACKEND_TOOLKIT_H
#define SHARDC_LOWERING_CUDA_BACKEND_TOOLKIT_H

#include "lowering/cuda/core/Chips.h"
#include "lowering/target/Backend.h"

#include "llvm/Support/Error.h"

#include <string>

namespace shardc::cuda {

/// The program: $SHARDC_PTXAS, or the first one of $CUDA_HOME/bin, PATH, the toolkit that shardc
/// was built with, and the wheels of .venv. An error says where it was looked for and what to
/// install.
llvm::Expected<std::string> findPtxas();

/// libdevice.10.bc, likewise by $SHARDC_LIBDEVICE; empty where there is none.
llvm::Expected<std::string> findLibdevice();

/// What a person does about a missing libdevice.
std::string libdeviceAdvice();

/// PTX to code for one chip. An error has what ptxas said.
llvm::Expected<target::ObjectCode> assemble(llvm::StringRef ptx, const Chip &chip,
                                            llvm::StringRef ptxas);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_TOOLKIT_H
