// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Strategy.h"

#include <algorithm>

namespace shardc {

bool Strategy::operator==(const Strategy &o) const {
  if (kind != o.kind)
    return false;
  if (kind == Kind::Factor)
    return factor.factor == o.factor.factor && factor.split.sameExtents(o.factor.split);
  return kind == Kind::Replicate || (linearSet == o.linearSet && reduction == o.reduction);
}

std::optional<AxisPlacement> Strategy::placementOf(const ShardingRule &rule,
                                                   std::span<const FactorPart> parts, bool isResult,
                                                   size_t slot, std::span<const int64_t> shape,
                                                   SizesPool &sizes) const {
  switch (kind) {
  case Kind::Replicate:
    return AxisPlacement::replicate();
  case Kind::PassPartial: {
    const std::vector<unsigned> &set = rule.linearIn[linearSet];
    bool partial = isResult || std::find(set.begin(), set.end(), slot) != set.end();
    return partial ? AxisPlacement::partial(reduction) : AxisPlacement::replicate();
  }
  case Kind::Factor:
    break;
  }
  unsigned f = factor.factor;
  const TensorFactors &dims = isResult ? rule.results[slot] : rule.operands[slot];
  for (size_t d = 0; d < dims.size(); ++d)
    if (std::find(dims[d].begin(), dims[d].end(), f) != dims[d].end()) {
      std::optional<Split> split =
          liftToDim({rule, isResult, slot, d, parts, shape[d]}, factor, sizes);
      if (!split)
        return std::nullopt;
      return AxisPlacement::shard(static_cast<int>(d), *split, level);
    }
  bool reducing = rule.factors[f].kind == FactorKind::Reducing;
  if (reducing && isResult)
    return AxisPlacement::partial(rule.factors[f].reduction);
  if (reducing && rule.isAdditive(static_cast<unsigned>(slot)))
    return AxisPlacement::partial(Reduction::Sum);
  return AxisPlacement::replicate();
}

double Strategy::exchanged(const ShardingRule &rule, std::span<const FactorPart> parts) const {
  if (kind != Kind::Factor || (factor.split.isUnequal() && !parts.empty()))
    return 0; // parts in blocks have all that they need
  const Factor &f = rule.factors[factor.factor];
  return f.kind == FactorKind::Cooperative    ? static_cast<double>(f.exchange)
         : f.kind == FactorKind::Neighbouring ? f.haloBefore + f.haloAfter
                                              : 0.0;
}

int64_t Strategy::moved(const ShardingRule &rule) const {
  return kind == Kind::Factor ? rule.factors[factor.factor].moved : 0;
}

int Strategy::rank(const ShardingRule &rule) const {
  switch (kind) {
  case Kind::PassPartial:
    return rule.movesDataOnly ? 0 : 3;
  case Kind::Factor:
    return 1;
  case Kind::Replicate:
    return 2;
  }
  return 2;
}

} // namespace shardc
