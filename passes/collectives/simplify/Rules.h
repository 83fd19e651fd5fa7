// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The algebra of collectives: one pattern per rule, one file per kind of argument. Every rule keeps
// the value that each rank computes, but for the order in which a sum is formed, and none reduces
// in a narrower type than the program asks for. Rules look at synchronous collectives of one
// tensor; starts and waits are such while they do (Pairs.h).

#ifndef SHARDC_PASSES_COLLECTIVES_SIMPLIFY_RULES_H
#define SHARDC_PASSES_COLLECTIVES_SIMPLIFY_RULES_H

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/PassStatistic.h"
#include "passes/collectives/analysis/Uniformity.h"
#include "passes/cost/core/CostModel.h"

#include "mlir/IR/PatternMatch.h"

namespace shardc {

/// What rules know of the program around an op.
struct SimplifyContext {
  RankValues &ranks;
  Uniformity &uniformity;
  const cost::CostModel &model;
};

template <typename Op> class SimplifyRule : public mlir::OpRewritePattern<Op> {
public:
  SimplifyRule(mlir::MLIRContext *context, SimplifyContext &around, PassStatistic &count)
      : mlir::OpRewritePattern<Op>(context), around(around), count(count) {}

  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const final {
    mlir::LogicalResult result = apply(op, rewriter);
    if (succeeded(result))
      ++count;
    return result;
  }

protected:
  virtual mlir::LogicalResult apply(Op op, mlir::PatternRewriter &rewriter) const = 0;
  SimplifyContext &around;

private:
  PassStatistic &count;
};

/// One counter per rule, as in Passes.td.
struct SimplifyCounts {
  PassStatistic &gatherSlices, &gatherReplicated, &reduceReplicated, &scattered, &narrowed, &sums,
      &averages, &casts, &views, &permutes, &chains;
};

// Replicated.cpp: what all ranks hold already does not travel.
void populateReplicatedRules(mlir::RewritePatternSet &patterns, SimplifyContext &around,
                             SimplifyCounts counts);
// Scatter.cpp: what only its owner, or only a narrower type, is asked for.
void populateScatterRules(mlir::RewritePatternSet &patterns, SimplifyContext &around,
                          SimplifyCounts counts);
// Sums.cpp: reductions are linear.
void populateSumRules(mlir::RewritePatternSet &patterns, SimplifyContext &around,
                      SimplifyCounts counts);
// Commute.cpp: casts and views trade places with what moves data.
void populateCommuteRules(mlir::RewritePatternSet &patterns, SimplifyContext &around,
                          SimplifyCounts counts);

/// Bytes of an element in memory.
inline int64_t elementBytes(mlir::Type elementType) {
  return (elementType.getIntOrFloatBitWidth() + 7) / 8;
}

/// Merges tensors that two synchronous collectives of a block deliver alike. Returns how many.
/// Linear in the number of ops.
uint64_t mergeDuplicates(mlir::Block &block, mlir::RewriterBase &rewriter);

/// The extents by position in the group, if on every device of the groups the slice takes exactly
/// the part of that device's position, and the parts are the whole dim.
std::optional<llvm::SmallVector<int64_t>>
findOwnParts(aten::SliceOp slice, dist::GroupAttrInterface group, RankValues &ranks);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_SIMPLIFY_RULES_H
