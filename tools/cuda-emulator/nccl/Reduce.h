// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How emulated NCCL reduces: as NCCL does between ranks, rounding to the type after each step.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_NCCL_REDUCE_H
#define SHARDC_TOOLS_CUDA_EMULATOR_NCCL_REDUCE_H

#include <cstddef>

namespace shardc::emulator {

/// 0 for an unknown type.
size_t ncclTypeBytes(int type);
/// An average is the sum of what this makes of each rank's part: of floats a product with 1 /
/// ranks.
void beginReduction(void *data, size_t count, int type, int reduction, int ranks);
/// into = into op from. A NaN loses against numbers in minima and maxima.
void reduceInto(void *into, const void *from, size_t count, int type, int reduction);
/// Of averages of integers: the quotient of the sum.
void endReduction(void *data, size_t count, int type, int reduction, int ranks);

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_NCCL_REDUCE_H
