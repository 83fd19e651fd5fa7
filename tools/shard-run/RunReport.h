// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TOOLS_SHARD_RUN_RUNREPORT_H
#define SHARDC_TOOLS_SHARD_RUN_RUNREPORT_H

#include "tools/shard-run/Session.h"

namespace shardc::run {

/// The summary of a run, on standard output: one line of text, or a JSON object.
void printSummary(const Session &session, const Options &options);

/// Tables of time by module, by op and by collective, in milliseconds per step and rank.
void printProfile(const Session &session, const Options &options);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_RUNREPORT_H
