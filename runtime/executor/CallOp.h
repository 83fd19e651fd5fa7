// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of functions that users have registered (shardrt_op.h).
#ifndef SHARDC_RUNTIME_EXECUTOR_CALLOP_H
#define SHARDC_RUNTIME_EXECUTOR_CALLOP_H

#include "runtime/abi/shardrt_program.h"

namespace shardc::rt {

/// Fills in what the program leaves open, and calls the function. Where it returns another number
/// than 0 without having said why, that is recorded with `services->fail`. Returns the status of
/// what has failed so far.
int32_t callOp(shardrt_op_call &call, shardrt_op_function function,
               const shardrt_services &services, void *runtime, bool onDevice,
               void *stream) noexcept;

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_EXECUTOR_CALLOP_H
