// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the layouts of an op's operands and results satisfy its sharding rule: the invariant of
// the placed stage.
//
// The check is about what each device computes, not about how the layouts are written: at every
// mesh coordinate, each tensor must hold the same piece of every factor that it has.
#ifndef SHARDC_DIALECTS_INTERFACES_RULECHECK_H
#define SHARDC_DIALECTS_INTERFACES_RULECHECK_H

#include "dialects/interfaces/ShardingRule.h"

namespace shardc {

struct PlacedTensor {
  std::vector<int64_t> shape;
  Layout layout;
};

/// All that keeps an op from computing on each device what its rule says, e.g. `axis "tp": operand
/// 0 shards factor 2, operand 1 does not`; empty when it can. All layouts must be valid and have
/// the same mesh. Sizes that are not known are tried with stand-ins.
std::vector<std::string> checkRule(const ShardingRule &rule, std::span<const PlacedTensor> operands,
                                   std::span<const PlacedTensor> results);

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_RULECHECK_H
