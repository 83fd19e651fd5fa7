// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_RUNTIME_MODEL_TRACE_H
#define SHARDC_RUNTIME_MODEL_TRACE_H

#include "runtime/comm/Communicator.h"
#include "runtime/support/Events.h"

#include <span>
#include <string>

namespace shardc::rt {

/// Writes a Chrome trace: a process for each rank, a thread for each stream, and beside it one with
/// what the compiler expects there, call by call. Microseconds from the earliest event. Throws
/// Failure.
void writeTrace(std::span<const EventLog *const> ranks, const std::string &path);

/// The same of all ranks of a world, as the entries of the file; the times of its own events are
/// placed by the clock of each host, from the microsecond in which the first one began. All ranks
/// call it; rank 0 gets the text, others nothing. Throws Failure.
std::string gatherTrace(const EventLog &mine, Communicator &communicator, double timeout);
/// Writes a file of such entries. Throws Failure.
void writeTraceText(const std::string &entries, const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_TRACE_H
