// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_NODES_SPLITCOLLECTIVE_H
#define SHARDC_PASSES_COLLECTIVES_NODES_SPLITCOLLECTIVE_H

#include "dialects/dist/Dist.h"
#include "passes/collectives/nodes/core/NodeGroups.h"

namespace shardc {

/// Puts collectives within the nodes and between them in front of a synchronous all-reduce,
/// reduce-scatter or all-gather that can be split (NodeSplits), and lets them take the place of its
/// results. The op itself is left without users.
void splitCollective(dist::CollectiveOpInterface op, const collectives::NodeGroups &groups);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_NODES_SPLITCOLLECTIVE_H
