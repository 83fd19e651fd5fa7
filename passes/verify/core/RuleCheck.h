// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the layouts of an op's operands and results satisfy its sharding rule. Written without a
// look at how placement chooses them: it enumerates mesh coordinates and asks what is there.
//
// At a mesh coordinate a rank holds, of each dim of each tensor, a set of indices. The op can run
// there as it is if it runs over a box of the rule's iteration space: one set of iterations F_f for
// each factor f, such that every dim holds exactly the product of the sets of its factors. So for
// every coordinate
//   - the indices held of a dim must be such a product, and
//   - tensors that share a factor must agree on its set.
// What is left is what becomes of results, mesh axis by mesh axis (semantics.md G1): see
// `checkAxis`.
#ifndef SHARDC_PASSES_VERIFY_CORE_RULECHECK_H
#define SHARDC_PASSES_VERIFY_CORE_RULECHECK_H

#include "dialects/sharding/ShardingRule.h"

namespace shardc {

/// One operand or result. An operand that is no tensor (an index) has no layout.
struct PlacedTensor {
  const Layout *layout = nullptr;
  std::vector<int64_t> shape;
};

/// All that is wrong; empty where the layouts are legal. Layouts must be valid for their shapes.
/// Where a factor has no static size, several sizes are tried in its place.
std::vector<std::string> checkRule(const ShardingRule &rule, std::span<const PlacedTensor> operands,
                                   std::span<const PlacedTensor> results);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_CORE_RULECHECK_H
