// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which nodes of an exported program can run on some rows of their tensors.

#ifndef SHARDC_PASSES_COLLECTIVES_EXPORTED_PROGRAMRULES_H
#define SHARDC_PASSES_COLLECTIVES_EXPORTED_PROGRAMRULES_H

#include "importers/torch_export/program/Program.h"
#include "passes/collectives/chunk/core/ChunkRegions.h"

namespace shardc::collectives {

/// Of the graph that `graphFromProgram` makes of the program. Both must outlive this object. An
/// operator that is not known here is left whole, and so is one with a symbolic size.
class ProgramRules final : public ChunkRules {
public:
  ProgramRules(const torch_export::ExportedProgram &program, const Graph &graph);

  std::optional<ShardingRule> ruleOf(NodeId node) const override;
  std::optional<unsigned> rowOperandOf(NodeId node) const override;
  bool isDivisible(NodeId collective) const override;
  /// Collectives of PyTorch gather and scatter dim 0, in equal shares.
  std::optional<unsigned> dimOf(NodeId collective) const override;
  std::vector<int64_t> shapeOf(ValueId value) const override;
  bool mayAddInTurn(NodeId reduceScatter) const override;

private:
  const torch_export::ExportedProgram &program;
  const Graph &graph;
  std::vector<uint32_t> tensorOf; ///< by value: its number in the program, or `none`
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_EXPORTED_PROGRAMRULES_H
