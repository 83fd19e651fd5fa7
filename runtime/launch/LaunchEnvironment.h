// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launcher tells the processes that it starts, by variables of the environment.
#ifndef SHARDC_RUNTIME_LAUNCH_LAUNCHENVIRONMENT_H
#define SHARDC_RUNTIME_LAUNCH_LAUNCHENVIRONMENT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shardc::rt {

/// The value of a variable; nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const char *name)>;
/// Those of this process.
Variables processEnvironment();

/// A process's place in a world that a launcher made.
struct LaunchEnvironment {
  std::string launcher; ///< for messages: "torchrun", "mpirun (Open MPI)", "srun", "shard-run"
  uint32_t rank = 0;
  uint32_t worldSize = 1;
  /// Among the processes of its host; nothing where the launcher does not say.
  std::optional<uint32_t> localRank, localSize;
  /// Where the control plane of rank 0 listens; empty where the launcher does not say: on one host
  /// ranks then meet by `job`, between hosts by the engine's own launcher.
  std::string masterAddress;
  /// Ports that rank 0 tries in this order, and that others look at in this order. Empty with
  /// `masterAddress`.
  std::vector<uint16_t> masterPorts;
  /// A name of this launch that no other launch on the host has at the same time; empty where no
  /// variable tells launches apart (MPICH's mpirun).
  std::string job;

  /// What the variables say; nothing if no launcher has started this process, or it started one
  /// only. Throws Failure (SHARDRT_INVALID_ARGUMENT) with everything that is wrong: numbers that
  /// are none, ranks outside of the world, launchers that contradict each other.
  static std::optional<LaunchEnvironment> read(const Variables &variables);
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_LAUNCH_LAUNCHENVIRONMENT_H
