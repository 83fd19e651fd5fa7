// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plan files of `shardc simulate`: reading them, and what is to be known before one is written.
#ifndef SHARDC_TOOLS_SHARDC_SIMULATEPLAN_H
#define SHARDC_TOOLS_SHARDC_SIMULATEPLAN_H

#include "passes/collectives/core/Plan.h"

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace shardc {

/// The plan in a file. Nothing after errors were reported, many of them as a number. Where there is
/// no graph (null), because that has errors of its own, it is still said whether the file is JSON,
/// and the result is a plan of nothing.
std::optional<collectives::Plan> readPlan(llvm::StringRef path, const collectives::Graph *graph);

/// Whether a plan of the graph can be written: each node needs a name of its own, else there is an
/// error.
bool canWritePlan(llvm::StringRef model, const collectives::Graph &graph);

/// Plan files have names of groups only, so that what could share a bucket, because it has equal
/// ranks, does not.
void remarkOnGroups(const collectives::Graph &graph);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_SIMULATEPLAN_H
