// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops of a function can run on some rows of their tensors.

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_FUNCTIONRULES_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_FUNCTIONRULES_H

#include "passes/collectives/analysis/ProgramGraph.h"
#include "passes/collectives/chunk/core/ChunkRegions.h"

namespace shardc {

/// Of a function in which every collective is synchronous. Ops say how their dims belong together
/// (ShardingRuleOpInterface); elementwise ops, those of rows, products, and views that rearrange
/// dims run on pieces. Tensors of static sizes and equal shares of them only.
class FunctionRules final : public collectives::ChunkRules {
public:
  FunctionRules(mlir::func::FuncOp function, const ProgramGraph &program);

  std::optional<ShardingRule> ruleOf(collectives::NodeId node) const override;
  std::optional<unsigned> rowOperandOf(collectives::NodeId node) const override;
  bool isDivisible(collectives::NodeId collective) const override;
  std::optional<unsigned> dimOf(collectives::NodeId collective) const override;
  std::vector<int64_t> shapeOf(collectives::ValueId value) const override;
  bool mayAddInTurn(collectives::NodeId reduceScatter) const override;

  /// What a value of the graph is in the function; null for one that is in no tensor of it.
  mlir::Value valueOf(collectives::ValueId value) const { return values[value]; }

private:
  const ProgramGraph &program;
  std::vector<mlir::Value> values;
};

/// Whether a ring may add what it sums: ChunkRules::mayAddInTurn.
bool mayAddInTurn(dist::ReduceScatterOp op);

/// Why a collective cannot be taken apart along the dim that it gathers or scatters.
enum class WholeReason { None, Symbolic, Uneven };
WholeReason whyWhole(dist::CollectiveOpInterface op);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_FUNCTIONRULES_H
