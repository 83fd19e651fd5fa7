// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generates graphs of transformer training with collectives in them, of any size: parameters
// sharded over `dp` ranks (gathered before use, gradients reduce-scattered), activations over `tp`
// ranks (sequence parallel: gathered before and reduce-scattered after attention and MLP), MLPs
// replaced by experts behind all-to-alls. Kernel times are a roofline of 989.5 TFLOP/s and 3350
// GB/s.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_MODELGENERATOR_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_MODELGENERATOR_H

#include "passes/collectives/core/Graph.h"

namespace shardc::collectives::test {

enum class Part { Forward, Backward };

struct ModelShape {
  unsigned layers = 4;
  uint64_t tokens = 4096; // of one rank's batch, before sequence parallelism
  uint64_t hidden = 4096, mlp = 14336, keyValue = 1024, vocabulary = 128256;
  uint32_t dp = 8, tp = 1;
  /// 0 for a dense MLP, else how many experts each rank holds.
  unsigned localExperts = 0;
  uint32_t ep = 8;
  /// Gradients are all-reduced over dp and parameters are not sharded.
  bool replicatedParameters = false;
  Part part = Part::Forward;
};

Graph generateModel(const ModelShape &shape);

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_MODELGENERATOR_H
