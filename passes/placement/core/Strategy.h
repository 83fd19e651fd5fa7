// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_PLACEMENT_CORE_STRATEGY_H
#define SHARDC_PASSES_PLACEMENT_CORE_STRATEGY_H

#include "passes/placement/core/Compose.h"

namespace shardc {

/// What one mesh axis does to one op.
struct Strategy {
  enum class Kind : uint8_t { Replicate, Factor, PassPartial };
  Kind kind = Kind::Replicate;
  FactorSplit factor;                   ///< Factor
  uint8_t level = 0;                    ///< Factor
  unsigned linearSet = 0;               ///< PassPartial: index into ShardingRule::linearIn
  Reduction reduction = Reduction::Sum; ///< PassPartial

  static Strategy ofFactor(const FactorSplit &factor, uint8_t level) {
    return {Kind::Factor, factor, level, 0, Reduction::Sum};
  }
  static Strategy passPartial(unsigned linearSet, Reduction reduction) {
    return {Kind::PassPartial, {}, 0, linearSet, reduction};
  }

  bool operator==(const Strategy &o) const;

  /// What it asks of operand or result `slot`, which has this shape; nothing where it cannot be
  /// said.
  std::optional<AxisPlacement> placementOf(const ShardingRule &rule,
                                           std::span<const FactorPart> parts, bool isResult,
                                           size_t slot, std::span<const int64_t> shape,
                                           SizesPool &sizes) const;
  /// Elements that ranks exchange inside the op, for each point of its other factors.
  double exchanged(const ShardingRule &rule, std::span<const FactorPart> parts) const;
  /// Elements of the whole that change ranks inside the op, likewise.
  int64_t moved(const ShardingRule &rule) const;
  /// Among strategies that move equally much the lowest is taken.
  int rank(const ShardingRule &rule) const;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_STRATEGY_H
