// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line-based text form of collectives::Graph for tests and experiments:
//   <number of values>
//   G name size               one per group
//   V bytes elementType       one per tensor, S one per scalar, in order of value ids
//   I n ids...                inputs
//   N name class us group reduction outBuffers #operands #scalars #results #scalars ids...
//   O n ids...                outputs
// class: compute inplace alias empty sym wait AG RS AR A2A BC PM.

#ifndef SHARDC_TEST_UNIT_COLLECTIVES_GRAPHTEXT_H
#define SHARDC_TEST_UNIT_COLLECTIVES_GRAPHTEXT_H

#include "passes/collectives/core/Graph.h"

#include <iosfwd>
#include <optional>

namespace shardc::collectives::test {

std::optional<Graph> readGraph(std::istream &in, std::string &error);

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_COLLECTIVES_GRAPHTEXT_H
