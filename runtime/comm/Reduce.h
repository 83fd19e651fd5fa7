// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element-wise reductions of several sources, in one pass over memory.
#ifndef SHARDC_RUNTIME_COMM_REDUCE_H
#define SHARDC_RUNTIME_COMM_REDUCE_H

#include "runtime/abi/shardrt_program.h"

#include <cstddef>
#include <span>

namespace shardc::rt {

/// Reduces elements [0, count) of the sources, in their order, and writes the result to every
/// destination. A destination may be one of the sources. At least one source.
using ReduceFn = void (*)(std::span<const void *const> sources, std::span<void *const> destinations,
                          size_t count);

/// nullptr where the reduction is not defined for the type (see shardrt_program.h).
ReduceFn reduceFunction(shardrt_type type, uint32_t reduction);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_REDUCE_H
