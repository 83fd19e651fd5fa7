// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Training graphs that the optimiser was not made with: drawn at random, a family of parallelism at
// a time, latency-bound or bandwidth-bound, with more or less communication than kernels.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_UNSEENGRAPHS_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_UNSEENGRAPHS_H

#include "passes/collectives/core/Graph.h"

namespace shardc::collectives::test {

/// The name says what is drawn; unseenGraph knows these only.
inline constexpr const char *unseenFamilies[] = {
    "fsdp-forward",     // parameters gathered layer by layer, up to three layers ahead
    "fsdp-backward",    // the same, and gradients reduce-scattered
    "tensor-parallel",  // attention and MLP behind all-reduces, or sequence parallel
    "tensor-backward",  // the same with products for the weights' gradients beside it
    "experts",          // all-to-alls around experts whose parameters are gathered
    "pipeline",         // micro-batches of unequal length that come from and go to other ranks
    "data-parallel",    // a backward with many gradients, small and large, all-reduced
    "two-dimensional",  // tensor-parallel layers with gathered parameters
    "two-dim-backward", // the same, and gradients reduce-scattered
    "random",           // kernels and collectives with random operands
};

/// What is wrong with the name of a family, with the nearest names there are; empty if nothing is.
std::string describeUnknownFamily(std::string_view family);

/// Of a family that there is. About `nodes` nodes; the same on every machine.
Graph unseenGraph(std::string_view family, uint32_t seed, size_t nodes);

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_UNSEENGRAPHS_H
