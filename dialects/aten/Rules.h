// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sharding rules of families of ops: what `shardBy` in the op definitions names. Rules describe
// global and local shapes alike; encodings are not looked at.
#ifndef SHARDC_DIALECTS_ATEN_RULES_H
#define SHARDC_DIALECTS_ATEN_RULES_H

#include "dialects/aten/Window.h"
#include "dialects/sharding/RuleBuilder.h"
#include "mlir/IR/Operation.h"

namespace shardc::aten {

using OperandSets = std::vector<std::vector<unsigned>>;

/// Shapes of tensors; an index has that of a scalar.
std::vector<std::vector<int64_t>> shapesOf(mlir::TypeRange types);
/// A builder with the shapes of an op's operands and results; an index has the shape of a scalar.
RuleBuilder ruleBuilder(mlir::Operation *op);

// Elementwise. RulesElementwise.cpp
ShardingRule elementwiseRule(mlir::Operation *op, const OperandSets &linear);
ShardingRule copyRule(mlir::Operation *op);
ShardingRule castRule(mlir::Operation *op);
ShardingRule divRule(mlir::Operation *op);

// Reductions over the attribute `dim` of the op, norms and scans. RulesReductions.cpp
ShardingRule reductionRule(mlir::Operation *op, Reduction reduction, bool isLinear = false);
/// Ranks that share a reduced dim exchange `exchange` elements for each element of the result.
ShardingRule jointReductionRule(mlir::Operation *op, int64_t exchange);
/// The same, with results of full shape.
ShardingRule jointRule(mlir::Operation *op, std::vector<int64_t> dims, int64_t exchange);
/// A scan along `dim`: ranks exchange one total each.
ShardingRule scanRule(mlir::Operation *op, int64_t dim);
/// Over the last `count` dims; weights line up with them.
ShardingRule trailingNormRule(mlir::Operation *op, int64_t count, int64_t exchange);
ShardingRule groupNormRule(mlir::Operation *op);

// Views. RulesViews.cpp
ShardingRule viewRule(mlir::Operation *op);
ShardingRule expandRule(mlir::Operation *op);
ShardingRule permuteRule(mlir::Operation *op);
ShardingRule transposeRule(mlir::Operation *op);
ShardingRule unsqueezeRule(mlir::Operation *op);
ShardingRule squeezeRule(mlir::Operation *op);
ShardingRule sliceRule(mlir::Operation *op);
ShardingRule splitRule(mlir::Operation *op);
ShardingRule catRule(mlir::Operation *op);
ShardingRule stackRule(mlir::Operation *op);
ShardingRule padRule(mlir::Operation *op);
ShardingRule flipRule(mlir::Operation *op);
ShardingRule creationRule(mlir::Operation *op);
ShardingRule sizeRule(mlir::Operation *op);

// Contractions. RulesContractions.cpp
ShardingRule linearRule(mlir::Operation *op);
ShardingRule matmulRule(mlir::Operation *op);
/// mm, bmm; and with an operand added.
ShardingRule productRule(mlir::Operation *op);
ShardingRule sumWithProductRule(mlir::Operation *op);
ShardingRule tensordotRule(mlir::Operation *op);
/// Letters for `count` leading dims: A, B, ... Ops with more dims than letters are not sharded.
std::optional<std::string> leadingLetters(size_t count);
/// The number of dims of a tensor.
size_t rankOf(mlir::Value value);
/// Says that `sum` is added to a product that is linear in operands `lhs` and `rhs` each.
RuleBuilder &addsTo(RuleBuilder &builder, unsigned sum, unsigned lhs, unsigned rhs);

// Attention. RulesAttention.cpp
ShardingRule attentionRule(mlir::Operation *op);
ShardingRule flashAttentionRule(mlir::Operation *op);
ShardingRule flashAttentionBackwardRule(mlir::Operation *op);

// A lookup at one position. RulesIndexing.cpp
ShardingRule selectRule(mlir::Operation *op);

// Images: where a window slides over a spatial dim, ranks have chunks of it and of the positions.
// RulesSpatial.cpp
ShardingRule convolutionRule(mlir::Operation *op);
/// Batch and channels are independent. Linear.
ShardingRule windowsRule(mlir::Operation *op, llvm::ArrayRef<Window> windows);
/// The adjoint of windows.
ShardingRule foldRule(mlir::Operation *op, llvm::ArrayRef<Window> windows);
/// Dims in front of the spatial ones are independent.
ShardingRule poolRule(mlir::Operation *op, bool isLinear);
/// Likewise; means of parts, and the largest element of all of a dim, are reductions of what ranks
/// have of them.
ShardingRule adaptivePoolRule(mlir::Operation *op, llvm::ArrayRef<int64_t> parts,
                              Reduction reduction);
/// Likewise; the last `spatial` dims are not sharded.
ShardingRule adaptivePositionsRule(mlir::Operation *op, size_t spatial);
/// Elementwise on operand 0; the others have one element for each of its channels (dim 1).
ShardingRule perChannelRule(mlir::Operation *op);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_RULES_H
