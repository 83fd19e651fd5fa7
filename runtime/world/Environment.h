// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The world that a launcher has made, from the variables that it set.
#ifndef SHARDC_RUNTIME_WORLD_ENVIRONMENT_H
#define SHARDC_RUNTIME_WORLD_ENVIRONMENT_H

#include "runtime/launch/LaunchEnvironment.h"
#include "runtime/world/Choice.h"

namespace shardc::rt {

/// Joins the launcher's world and chooses a communicator; without a launcher, a world of one. All
/// ranks call it. `log` gets levels (SHARDRT_LOG_...) and texts, from any thread. Throws Failure.
World joinEnvironment(
    const Variables &variables, double timeout,
    const std::function<void(int32_t rank, int32_t level, const std::string &text)> &log);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_WORLD_ENVIRONMENT_H
