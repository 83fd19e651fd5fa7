// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which collectives of a function can be taken apart into some within nodes and some between them.

#ifndef SHARDC_PASSES_COLLECTIVES_NODES_FUNCTIONSPLITS_H
#define SHARDC_PASSES_COLLECTIVES_NODES_FUNCTIONSPLITS_H

#include "passes/collectives/analysis/ProgramGraph.h"
#include "passes/collectives/nodes/core/SplitGraph.h"

namespace shardc {

/// Of the collectives of a program. Ours gather and scatter any dim, so that blocks need no copies.
collectives::SplitFacts splitFacts(const ProgramGraph &program);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_NODES_FUNCTIONSPLITS_H
