// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The communicator of ranks that are processes of one host: collectives run as between threads, on
// memory that the processes share, with the same bits.
#ifndef SHARDC_RUNTIME_SHARED_SHAREDMEMORY_H
#define SHARDC_RUNTIME_SHARED_SHAREDMEMORY_H

#include "runtime/control/ControlPlane.h"

namespace shardc::rt {

/// This rank's end of a world whose ranks share memory; all ranks call it. They may be threads of
/// one process too. Throws Failure: with the ranks that are on other machines, with what the system
/// refused a rank (the same on all of them), or at the deadline.
///
/// What others read and write of this rank's operands lies in memory(), or is copied there and
/// back. That memory must not be used any more once a collective has failed: a rank that was
/// stopped in it may go on later. It can be freed, and the end destroyed, at any time.
std::unique_ptr<Communicator> makeSharedMemoryEnd(std::shared_ptr<ControlPlane> control,
                                                  Clock::time_point deadline,
                                                  Sharing sharing = Sharing::Automatic);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_SHAREDMEMORY_H
