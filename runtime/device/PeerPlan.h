// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One member's part of a collective over memory of devices that all members can reach: what
// comm/Share.h does in memory of the host, as lists for kernels.
#ifndef SHARDC_RUNTIME_DEVICE_PEERPLAN_H
#define SHARDC_RUNTIME_DEVICE_PEERPLAN_H

#include "runtime/comm/Call.h"
#include "runtime/include/shardrt_device_peer.h"

namespace shardc::rt {

struct PeerPlan {
  struct Zeros {
    void *to;
    size_t bytes;
  };
  std::vector<shardrt_peer_copy> copies;
  std::vector<shardrt_peer_reduction> reductions;
  std::vector<Zeros> zeros;
};

/// The part of member `position`, given the calls of all members (by position, checked to be the
/// same collective). As performShare: members' parts together write every byte of every output
/// once, and none writes what another reads unless in == out as allowed.
PeerPlan planPeerShare(std::span<const CollectiveCall *const> calls, uint32_t position);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_PEERPLAN_H
