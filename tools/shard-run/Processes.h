// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks as processes of this host: the parent that starts them and speaks for them, and what a rank
// tells it.
#ifndef SHARDC_TOOLS_SHARD_RUN_PROCESSES_H
#define SHARDC_TOOLS_SHARD_RUN_PROCESSES_H

#include "tools/shard-run/Options.h"

namespace shardc::run {

/// Starts a process of this program for each rank, with the same arguments, and waits for all. On
/// the first failure the others get some seconds to end by themselves. Prints one diagnosis.
/// Returns the exit status: that of the first rank that failed, or 128 and a signal.
int runProcesses(const Options &options, char **argv);

/// Whether this process is one of those.
bool isChild();
/// Tells the parent why this rank failed; `isOwn`: not merely because another one did. False if
/// nobody listens.
bool tellParent(const std::string &message, bool isOwn);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_PROCESSES_H
