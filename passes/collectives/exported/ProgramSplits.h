// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which collectives of an exported program can be taken apart into some within nodes and some
// between them.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_PROGRAMSPLITS_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_PROGRAMSPLITS_H

#include "importers/torch_export/program/Program.h"
#include "passes/collectives/nodes/core/SplitGraph.h"

namespace shardc::collectives {

/// Of the graph that `graphFromProgram` makes of the program. Collectives of PyTorch gather and
/// scatter dim 0, in equal shares.
SplitFacts splitFacts(const torch_export::ExportedProgram &program, const Graph &graph);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_PROGRAMSPLITS_H
