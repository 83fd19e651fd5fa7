// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which communicator a world of processes uses: all ranks tell each other what they could use, and
// take the first that all of them can.
#ifndef SHARDC_RUNTIME_WORLD_CHOICE_H
#define SHARDC_RUNTIME_WORLD_CHOICE_H

#include "runtime/control/ControlPlane.h"

namespace shardc::rt {

/// A communicator that a rank may be able to use.
struct CommunicatorKind {
  std::string name; ///< as in SHARDRT_COMMUNICATOR
  /// Looks whether this rank can use it, and gets ready. Returns why not, or nothing. It says the
  /// same on all ranks where only the world matters, and does not communicate over the plane.
  std::function<std::string(const ControlPlane &plane)> prepare;
  /// This rank's end; all ranks call it, after all were prepared.
  std::function<std::unique_ptr<Communicator>(std::shared_ptr<ControlPlane> plane,
                                              Clock::time_point deadline)>
      open;
  /// "shared memory", "Open MPI 4.1.4"; called after `prepare`.
  std::function<std::string()> details;
};

/// What a rank knows about its place.
struct RankFacts {
  /// SHARDRT_COMMUNICATOR: "auto", or the name of a kind.
  std::string wish = "auto";
  /// The processors that this rank may use, in a form that is equal for ranks with the same ones.
  std::string processors;
  uint32_t numProcessors = 1;
};

/// A rank's end of a world that its environment describes.
struct World {
  std::unique_ptr<Communicator> communicator;
  std::string description; ///< "local, 4 processes, shared memory"
  std::string reason;      ///< why it was chosen, for the log
  std::string id;          ///< of this world and no other
  /// Compute threads for this rank: its processors, shared with the ranks of its machine that have
  /// the same.
  uint32_t threads = 1;
};

/// Tries the kinds in their order, or the one that all ranks wish for. All ranks call it. Throws
/// Failure: SHARDRT_MISMATCH if ranks wish for different ones, SHARDRT_INVALID_ARGUMENT for a wish
/// that is no kind, SHARDRT_NOT_FOUND with what was tried and why each was not possible; and what
/// the plane and the kinds throw.
World chooseCommunicator(std::shared_ptr<ControlPlane> plane,
                         const std::vector<CommunicatorKind> &kinds, const RankFacts &facts,
                         Clock::time_point deadline);

/// Shared memory between the processes of one machine.
CommunicatorKind sharedMemoryKind();

/// "4 processes", "4 processes on 2 hosts".
std::string processesText(const ControlPlane &plane);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_WORLD_CHOICE_H
