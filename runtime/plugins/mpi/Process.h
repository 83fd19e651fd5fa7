// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MPI in this process: its beginning, its end, and waiting for it.
#ifndef SHARDC_RUNTIME_PLUGINS_MPI_PROCESS_H
#define SHARDC_RUNTIME_PLUGINS_MPI_PROCESS_H

#include "runtime/plugins/Plugin.h"

#include <functional>
#include <mpi.h>
#include <vector>

namespace shardc::plugin {

/// Throws what MPI says about a function that failed.
void check(int code, const char *function);

/// "Open MPI 4.1.4", "MPICH 4.0.2".
const char *libraryVersion();

/// Initialises MPI if nobody has; makes `world()`. All processes of MPI's world call it the first
/// time. Throws Failure.
void beginMpi();
/// How long MPI_Finalize may take when the process ends; without this call, as long as it likes. In
/// it, processes wait for each other, and one that was stopped would keep all of them.
void limitEnd(double seconds);
/// All processes; errors on it are returned.
MPI_Comm world();

/// From now on no function of MPI is called: what is in flight stays so. The process ends without
/// MPI_Finalize, a moment after this call at the earliest: launchers end the other processes then,
/// which must have said what they know.
void giveUpMpi();

/// Waits without keeping a core busy that another process may need: awake as long as the data may
/// take, then in sleeps that grow with the time that has passed.
class Backoff {
public:
  explicit Backoff(int64_t bytes);
  void pause();

private:
  std::chrono::steady_clock::time_point begin, awake;
};

/// Waits for all requests, and asks `stop` meanwhile; throws when it is true.
void waitFor(std::vector<MPI_Request> &requests, int64_t bytes, const std::function<bool()> &stop,
             const char *function);

/// Runs a function of MPI that cannot be interrupted. When `stop` is true it is left alone on a
/// thread of its own and this throws; MPI cannot be used any more then.
void callBlocking(std::function<void()> function, const std::function<bool()> &stop);

} // namespace shardc::plugin

#endif // SHARDC_RUNTIME_PLUGINS_MPI_PROCESS_H
