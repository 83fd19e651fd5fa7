// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a plan as `writePlan` writes it (core/Plan.h), from whoever made it.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_PLANFILE_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_PLANFILE_H

#include "passes/collectives/core/Plan.h"

#include <optional>

namespace shardc::collectives {

/// The plan, if it is one of this graph. Otherwise `errors` has everything that is wrong with it,
/// in the order of the file as far as that has a place, which then comes first ("12:1: ", line and
/// column of an item, from 1): what is no plan, names that the graph does not have, kinds that
/// differ from it, and all that checkPlan says. As in any plan file, groups go by their names, and
/// gathers of different element types may share a bucket.
std::optional<Plan> parsePlan(std::string_view json, const Graph &graph,
                              std::vector<std::string> &errors);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_PLANFILE_H
