// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles kernels for the host, in process.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_COMPILE_H
#define SHARDC_TOOLS_CUDA_EMULATOR_COMPILE_H

#include "tools/cuda-emulator/Block.h"

#include <memory>
#include <string>

namespace shardc::emulator {

/// The kernel of this name in a module of nvptx64. Null with an error that names everything that is
/// not supported.
std::shared_ptr<const CompiledKernel> compileKernel(const std::string &bitcode,
                                                    const std::string &name, std::string &error);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_COMPILE_H
