// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs redistribution steps on the data of all devices at once: the executable meaning of a step,
// used by tests of planners. It works as the collectives of a local program do, on pieces and
// blocks, and not through global indices.
#ifndef SHARDC_TEST_UNIT_PASSES_REDISTRIBUTE_STEPINTERPRETER_H
#define SHARDC_TEST_UNIT_PASSES_REDISTRIBUTE_STEPINTERPRETER_H

#include "passes/redistribute/core/BlockExchange.h"
#include "passes/redistribute/core/Planner.h"

namespace shardc {

/// A dense row-major tensor.
struct LocalTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// What every device holds, by position in the mesh.
using Shards = std::vector<LocalTensor>;

/// The shards of a whole tensor under a layout without partial axes.
Shards shardTensor(const Layout &layout, const LocalTensor &whole);

/// Carries out one step on shards that are in `step.before`; afterwards they are in `step.after`.
void runStep(const RedistributeStep &step, std::span<const int64_t> shape, Shards &shards);

/// Carries out an exchange on what its participants hold, of whose dims those in `dims` are
/// exchanged. An element that came never, or twice, is -1e9. A participant that holds nothing
/// before has a tensor of rank `rank`, all of whose sizes are zero.
Shards runExchange(const BlockExchange &exchange, std::span<const int64_t> dims,
                   const Shards &shards);

/// Combines two values as the reduction does; the sum for avg, which divides at the end.
double combine(Reduction reduction, double a, double b);

} // namespace shardc

#endif // SHARDC_TEST_UNIT_PASSES_REDISTRIBUTE_STEPINTERPRETER_H
