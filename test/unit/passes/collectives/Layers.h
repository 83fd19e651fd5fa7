// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_LAYERS_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_LAYERS_H

#include "test/unit/passes/collectives/Builder.h"

namespace shardc::collectives::test {

/// Layers whose weights, of `bytes`, are gathered right before their use by a kernel of `us`.
inline Graph layers(int count, double us, uint64_t bytes) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10);
  for (int i = 0; i < count; ++i) {
    std::string name = std::to_string(i);
    ValueId weight = b.run("g" + name, CollectiveKind::AllGather, g, b.input(bytes / 2), bytes);
    x = b.kernel("k" + name, {x, weight}, us, 10);
  }
  b.output(x);
  return b.finish();
}

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_LAYERS_H
