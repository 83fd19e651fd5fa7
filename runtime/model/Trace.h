// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_RUNTIME_MODEL_TRACE_H
#define SHARDC_RUNTIME_MODEL_TRACE_H

#include "runtime/support/Events.h"

#include <span>
#include <string>

namespace shardc::rt {

/// Writes a Chrome trace: a process for each rank, a thread for each stream, and beside it one with
/// what the compiler expects there, call by call. Microseconds from the earliest event. Throws
/// Failure.
void writeTrace(std::span<const EventLog *const> ranks, const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_TRACE_H
