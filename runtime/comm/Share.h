// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One member's part of a collective over memory that all members can reach.
#ifndef SHARDC_RUNTIME_COMM_SHARE_H
#define SHARDC_RUNTIME_COMM_SHARE_H

#include "runtime/comm/Call.h"

namespace shardc::rt {

/// Does the part of member `position` of a collective, given the calls of all members (by position,
/// checked to be the same collective). Gathers, scatters, broadcasts and permutes read from the
/// others' inputs and write to the own output; an all-reduce reduces the own range of elements and
/// writes it to everybody's output. Together the members' parts touch every byte once; no two
/// parts write the same byte, and none writes what another reads unless in == out as allowed.
void performShare(std::span<const CollectiveCall *const> calls, uint32_t position);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_SHARE_H
