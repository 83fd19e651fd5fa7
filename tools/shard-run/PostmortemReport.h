// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_TOOLS_SHARD_RUN_POSTMORTEMREPORT_H
#define SHARDC_TOOLS_SHARD_RUN_POSTMORTEMREPORT_H

#include <string>

namespace shardc::run {

/// Prints what the flight records of a folder say together, as text or JSON, on standard output,
/// and the files that are none on standard error. Returns the exit status: 0 if all were read.
int printPostmortem(const std::string &folder, bool json);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_POSTMORTEMREPORT_H
