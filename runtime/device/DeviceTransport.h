// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives on the streams of a device, by the library that its plugin brings
// (runtime/include/shardrt_device_comm.h), in the world of any communicator.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICETRANSPORT_H
#define SHARDC_RUNTIME_DEVICE_DEVICETRANSPORT_H

#include "runtime/comm/Communicator.h"
#include "runtime/include/shardrt_device_comm.h"

namespace shardc::rt {

/// Called once by every rank of the world, at the same place, after Communicator::connect with the
/// same groups. Returns what moves data between the devices of all ranks, or null, on all ranks
/// alike, with the reason: then operands are staged through the host. The variable
/// SHARDRT_DEVICE_COLLECTIVES chooses: "auto", the default, tries kernels over peer access between
/// threads (PeerTransport.h) and the plugin's library between processes; "peers" and "device" ask
/// for one of these, and make it an error if that is not possible; "host" is always staged. Throws
/// Failure, after which the communicator can only be destroyed. `plugin`, `device` and
/// `communicator` outlive what is returned.
std::unique_ptr<StreamTransport> connectDevices(Communicator &communicator,
                                                const shardrt_device_plugin &plugin, void *device,
                                                std::span<const shardrt_group> groups,
                                                Clock::time_point deadline, std::string &whyNot);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICETRANSPORT_H
