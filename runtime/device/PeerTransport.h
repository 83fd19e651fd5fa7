// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between devices of ranks that are threads of one process: kernels of every rank read
// and write the others' memory, in the order of events, with the bits of ranks on the host.
#ifndef SHARDC_RUNTIME_DEVICE_PEERTRANSPORT_H
#define SHARDC_RUNTIME_DEVICE_PEERTRANSPORT_H

#include "runtime/comm/Communicator.h"
#include "runtime/include/shardrt_device_peer.h"

namespace shardc::rt {

/// What ranks have in common that could reach each other's devices: they are of one process. Throws
/// Failure (SHARDRT_INCOMPATIBLE) if the plugin has no kernels for it, or of another version.
std::string peersOf(const shardrt_device_plugin &plugin);

/// Called once by every rank of the world, at the same place, if all have said the same. Returns
/// null, on all ranks alike, with the reason if some device does not reach another's memory. Throws
/// Failure, after which the communicator can only be destroyed. `plugin`, `device` and
/// `communicator` outlive what is returned.
std::unique_ptr<StreamTransport> connectPeers(Communicator &communicator,
                                              const shardrt_device_plugin &plugin, void *device,
                                              Clock::time_point deadline, std::string &whyNot);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_PEERTRANSPORT_H
