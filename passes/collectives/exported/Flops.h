// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic of the operators of exported programs that can be bound by it.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_FLOPS_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_FLOPS_H

#include "importers/torch_export/program/Program.h"

namespace shardc::collectives {

/// Floating point operations of a node, two for each multiply and add: products of matrices,
/// convolutions and attention, with their backward forms. 0 for everything else, which memory
/// bounds. Symbolic sizes count as in their example.
double flopsOf(const torch_export::Node &node, const torch_export::Graph &graph);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_FLOPS_H
