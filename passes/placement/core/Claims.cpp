// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Claims.h"

#include "passes/placement/core/Costs.h"

#include <algorithm>

namespace shardc {

/// Whether a tensor is in blocks already, or the program cuts it into parts of several sizes.
void Claims::findRange(OpId op, unsigned axis) {
  rangeFactor = kNone;
  rangeBorders.clear();
  partsOfOp = graph.parts(op);
  for (const FactorPart &part : partsOfOp) {
    TensorId tensor = (part.isResult ? graph.results(op) : graph.operands(op))[part.slot];
    const AxisPlacement &p = state(tensor, axis).placement;
    bool isInBlocks = p.isShard() && p.dim == static_cast<int>(part.dim) && p.split.isUnequal();
    bool isOnlyOne = !part.isResult && graph.ops[op].numOperands == 1;
    const std::vector<int64_t> *cuts = isOnlyOne ? borders.of(tensor, part.dim) : nullptr;
    if (!cuts && !isInBlocks)
      continue;
    if (rangeFactor != part.factor)
      rangeBorders.clear();
    rangeFactor = part.factor;
    for (size_t i = 0; cuts && i < cuts->size(); ++i)
      rangeBorders.push_back(part.begin + (*cuts)[i]);
  }
}

std::vector<Claim> &Claims::collect(OpId op, unsigned axis) {
  claims.clear();
  findRange(op, axis);
  // To look at what is stored in another way is no computation with it: a weight may be transposed
  // before it is used.
  bool isView = graph.rule(op).movesDataOnly && graph.ops[op].numOperands == 1;
  graph.forSlots(op, [&](TensorId tensor, bool isResult, unsigned slot) {
    const AxisState &s = state(tensor, axis);
    if (!s.placement.isShard() || (s.placement.storage && isView && !isResult))
      return;
    if (isView && !isResult && deadEnds.isSharedPart(tensor, s.placement.dim))
      return;
    RuleDim dim{graph.rule(op), isResult,
                slot,           static_cast<size_t>(s.placement.dim),
                partsOfOp,      graph.shape(tensor)[s.placement.dim]};
    std::optional<FactorSplit> f;
    if (const FactorPart *part = dim.part(); part && part->factor == rangeFactor) {
      f = projectToRange(dim, s.placement.split, rangeBorders, sizes);
    } else {
      if (isView && !isResult && dim.factors().size() > 1)
        if (std::vector<unsigned> avoided = deadEnds.factorsOf(op, s.placement.dim);
            !avoided.empty())
          f = projectToFactor(dim, s.placement.split, sizes, avoided);
      if (!f)
        f = projectToFactor(dim, s.placement.split, sizes);
    }
    if (f && !isInProportion(dim, s.placement.split, *f))
      claims.push_back({*f, s.strength, s.isFinal, claims.size()});
  });
  return claims;
}

/// Whether the dim has what another claim makes of it: of a neighbouring factor that tensors have
/// in several sizes, extents that are the same in proportion differ by roundings.
bool Claims::isInProportion(const RuleDim &dim, const Split &split, const FactorSplit &claimed) {
  return claimed.split.sizes && dim.size != dim.rule.factors[claimed.factor].size &&
         !claimed.split.isUnequal() &&
         dim.rule.factors[claimed.factor].kind == FactorKind::Neighbouring &&
         std::any_of(claims.begin(), claims.end(), [&](const Claim &other) {
           if (other.split.factor != claimed.factor)
             return false;
           std::optional<Split> lifted = liftToDim(dim, other.split, sizes);
           return lifted && lifted->sameExtents(split);
         });
}

unsigned Claims::chooseFactor(OpId op, unsigned axis) const {
  std::pair best(true, Strength::Weak);
  for (const Claim &claim : claims)
    best = std::min(best, rank(claim));
  unsigned chosen = kNone;
  std::optional<double> chosenBytes; // needed only where there is a choice
  for (const Claim &claim : claims) {
    unsigned factor = claim.split.factor;
    if (rank(claim) != best || factor == chosen)
      continue;
    if (chosen == kNone) {
      chosen = factor;
      continue;
    }
    if (!chosenBytes)
      chosenBytes = bytesMoved(op, axis, chosen);
    double bytes = bytesMoved(op, axis, factor);
    if (bytes < *chosenBytes) {
      chosen = factor;
      chosenBytes = bytes;
    }
  }
  return chosen;
}

/// Bytes that the op's tensors move if the axis shards `factor`.
double Claims::bytesMoved(OpId op, unsigned axis, unsigned factor) const {
  const ShardingRule &rule = graph.rule(op);
  int64_t n = graph.mesh.axes[axis].size;
  double total = 0;
  graph.forTensors(op, [&](TensorId tensor, const TensorFactors &dims, bool isResult) {
    AxisPlacement now = state(tensor, axis).placement, then = AxisPlacement::replicate();
    if (now.kind == PlacementKind::Open)
      now = AxisPlacement::replicate();
    if (isResult && rule.factors[factor].kind == FactorKind::Reducing)
      then = AxisPlacement::partial(rule.factors[factor].reduction);
    for (size_t d = 0; d < dims.size(); ++d)
      if (std::find(dims[d].begin(), dims[d].end(), factor) != dims[d].end())
        then = AxisPlacement::shard(static_cast<int>(d), {}, 0);
    // Whether extents agree is not the question here.
    if (now.isShard() && then.isShard() && now.dim == then.dim)
      return;
    double bytes = bytesBesideAxis(graph, tensor, axis, [&](unsigned a) -> const AxisPlacement & {
      return state(tensor, a).placement;
    });
    total += isResult ? transitionBytes(then, now, bytes, n) : transitionBytes(now, then, bytes, n);
  });
  return total;
}

} // namespace shardc
