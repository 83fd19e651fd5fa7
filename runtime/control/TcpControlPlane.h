// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The control plane of ranks that are processes, over TCP, guarded by a secret.
#ifndef SHARDC_RUNTIME_CONTROL_TCPCONTROLPLANE_H
#define SHARDC_RUNTIME_CONTROL_TCPCONTROLPLANE_H

#include "runtime/control/ControlPlane.h"
#include "runtime/launch/LaunchEnvironment.h"

namespace shardc::rt {

/// How a rank finds the others. All ranks pass the same but for `rank`, `listenFd` and `interface`.
struct ControlOptions {
  uint32_t rank = 0;
  uint32_t worldSize = 1;
  /// Host name or IP address of rank 0. Empty: all ranks are on this host and find each other by
  /// `job`, over loopback.
  std::string address;
  /// Rank 0 listens at the first of these that is free; the others look at all of them.
  std::vector<uint16_t> ports;
  /// At rank 0: a socket that listens already, which the plane takes over; -1: none.
  int listenFd = -1;
  /// A name that no other world of this user has on this host at the same time. Needed if
  /// `address` or `secret` is empty.
  std::string job;
  /// Known to the ranks of this world only, 16 characters or more. Empty: rank 0 makes one and
  /// gives it to processes of the same user on this host; `address` and `ports` are not used then.
  std::string secret;
  /// Name or IP address of the network interface at which this rank listens. Empty: that at which
  /// it reaches rank 0; at rank 0: that of `address`.
  std::string interface;
  /// Whether all ranks are on this host; nothing if that is not known.
  std::optional<bool> oneHost;
  double timeoutSeconds = 300; ///< until all ranks are there
  /// Level (SHARDRT_LOG_...) and text, called by any thread. Null: nowhere.
  std::function<void(int32_t level, const std::string &text)> log;
};

/// What the launcher's and the user's variables say: SHARDRT_SECRET, SHARDRT_INTERFACE and
/// SHARDRT_LISTEN_FD (for rank 0, of a launcher that made the socket). Throws Failure
/// (SHARDRT_INVALID_ARGUMENT).
ControlOptions controlOptions(const LaunchEnvironment &launch, const Variables &variables);

/// Joins the world and returns when all ranks have. Throws Failure: SHARDRT_INVALID_ARGUMENT (the
/// options), SHARDRT_TIMEOUT (with the ranks that did not come), SHARDRT_MISMATCH (another world
/// size, version, or a rank that came twice) or SHARDRT_ABORTED (another rank ended).
std::unique_ptr<ControlPlane> joinControlPlane(const ControlOptions &options);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_TCPCONTROLPLANE_H
