// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a durations file and a graph say against each other.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_CONTRADICTIONS_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_CONTRADICTIONS_H

#include "passes/collectives/exported/SideFiles.h"

namespace shardc::collectives {

/// One entry of the result for each kind of mistake, with the names of the nodes: durations of
/// collectives (the topology says how long these take), durations above 0 of nodes that are free,
/// or no kernel that has one. Names that the graph does not have are none: a file may be for a
/// larger graph, or for the same one before it was optimised.
std::vector<std::string> contradictions(const Graph &graph, const Durations &durations);

/// "'a', 'b', 'c' and 5 more".
std::string listNames(const std::vector<std::string> &names);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_CONTRADICTIONS_H
