// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/executor/CallOp.h"

#include <exception>
#include <string>

namespace shardc::rt {

namespace {

/// Whose services a call uses.
struct Caller {
  const shardrt_services *services;
  void *runtime;
};

const Caller &callerOf(const shardrt_op_call *call) {
  return *static_cast<const Caller *>(call->runtime);
}

void parallelFor(const shardrt_op_call *call, void (*body)(void *, int64_t, int64_t), void *arg,
                 int64_t n, int64_t grain) {
  const Caller &caller = callerOf(call);
  if (n > 0)
    caller.services->parallel_for(caller.runtime, body, arg, n, grain < 1 ? 1 : grain);
}

std::string nameOf(const shardrt_op_call *call) { return std::string("'") + call->name + "'"; }

int32_t fail(const shardrt_op_call *call, const char *message) {
  const Caller &caller = callerOf(call);
  std::string text = nameOf(call) + ": " + (message ? message : "failed");
  return caller.services->fail(caller.runtime, call->location, text.c_str());
}

} // namespace

int32_t callOp(shardrt_op_call &call, shardrt_op_function function,
               const shardrt_services &services, void *runtime, bool onDevice,
               void *stream) noexcept {
  Caller caller{&services, runtime};
  call.struct_bytes = sizeof(shardrt_op_call);
  call.on_device = onDevice;
  call.stream = stream;
  call.parallel_for = parallelFor;
  call.fail = fail;
  call.runtime = &caller;
  int32_t result = 0;
  try {
    result = function(&call);
  } catch (const std::exception &error) {
    return fail(&call, error.what());
  } catch (...) {
    return fail(&call, "it threw what is no std::exception");
  }
  if (result == 0)
    return SHARDRT_OK;
  // What was said before is kept.
  return fail(&call, ("its function returned " + std::to_string(result)).c_str());
}

} // namespace shardc::rt
