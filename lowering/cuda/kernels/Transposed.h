// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops without reductions that read a memory across its rows.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_TRANSPOSED_H
#define SHARDC_LOWERING_CUDA_KERNELS_TRANSPOSED_H

#include "lowering/cuda/kernels/LaunchDomain.h"

namespace shardc::cuda {

/// Makes a launch for a domain where the neighbours of what is read lie along another loop than
/// those of what is written: squares of such memories are read along their rows into shared memory,
/// and from there along those of the result, so that all threads of a warp read and write
/// neighbours. Returns false, and makes nothing, for other domains.
bool emitTransposed(const LaunchDomain &domain, mlir::OpBuilder &host);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_TRANSPOSED_H
