// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels may ask that registers are divided for several blocks of a multiprocessor
// (`nvvm.minctasm`, .minnctapersm in PTX). Where ptxas had to put values of threads into local
// memory for that, fewer blocks are faster.

#ifndef SHARDC_LOWERING_CUDA_BACKEND_RESIDENCY_H
#define SHARDC_LOWERING_CUDA_BACKEND_RESIDENCY_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace shardc::cuda {

/// The functions of a cubin that have a frame in local memory, by name: an ELF file says so in its
/// section .nv.info.
llvm::Expected<std::vector<std::string>> kernelsWithFrames(llvm::StringRef cubin);

/// Leaves out of PTX how many blocks these kernels are to have on a multiprocessor where they ask
/// for more than one. Returns how many kernels had asked for several.
unsigned dropResidency(std::string &ptx, llvm::ArrayRef<std::string> kernels);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_RESIDENCY_H
