// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What members of a group tell each other on the host about a collective between their devices.
#ifndef SHARDC_RUNTIME_DEVICE_TELL_H
#define SHARDC_RUNTIME_DEVICE_TELL_H

#include "runtime/comm/Communicator.h"

namespace shardc::rt {

/// How long ranks wait for each other when they find out why a collective is late.
constexpr std::chrono::milliseconds lateTime(500);

/// Every member gets what each of them says in that many bytes, by position. It fails as a
/// collective of the communicator does, in the name of this one.
std::vector<std::string> tellMembers(Communicator &communicator, const CollectiveCall &call,
                                     std::string mine, size_t bytes, Clock::time_point deadline);

/// The world was given up, or a collective is late. The members come together on the host, which
/// fails in the words of their communicator if one of them does not, or the world was given up. If
/// all come, it is the data that has not, of which the world is told.
[[noreturn]] void explainLate(Communicator &communicator, const CollectiveCall &call,
                              bool atDeadline);

/// The reasons of all ranks, each with the first rank that has it; empty ones are none.
std::string reasonsOf(const std::vector<std::string> &texts);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_TELL_H
