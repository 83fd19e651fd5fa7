// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/ProgramSplits.h"

#include "passes/collectives/exported/ProgramRules.h"

using namespace shardc;
using namespace shardc::collectives;

static NumberClass classOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
  case ElementType::F64:
  case ElementType::BF16:
  case ElementType::C64:
  case ElementType::C128:
    return NumberClass::Wide;
  case ElementType::F16:
  case ElementType::C32:
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F8E4M3FNUZ:
  case ElementType::F8E5M2FNUZ:
  case ElementType::F8E8M0FNU:
    return NumberClass::Narrow;
  default:
    return NumberClass::Integer;
  }
}

SplitFacts shardc::collectives::splitFacts(const torch_export::ExportedProgram &program,
                                           const Graph &graph) {
  ProgramRules rules(program, graph);
  SplitFacts facts;
  facts.copiesBlocks = true;
  facts.of.resize(graph.numNodes());
  for (NodeId node = 0; node != graph.numNodes(); ++node) {
    if (!graph.isCollective(node))
      continue;
    CollectiveFacts &fact = facts.of[node];
    for (ValueId value : graph.results(node)) {
      // A number has no shape either, and cannot be divided.
      if (rules.shapeOf(value).empty())
        fact.why = WhyFlat::Symbolic;
      auto type = static_cast<ElementType>(graph.elementTypeOf(value));
      fact.elementBytes = std::max<uint32_t>(fact.elementBytes, byteWidth(type));
      if (graph.reductionOf(node).empty())
        continue;
      // A reduction without a name of ours (bitwise) may be anything.
      std::optional<Reduction> reduction = parseReduction(graph.reductionOf(node));
      if (!reduction || !mayReduceTwice(*reduction, classOf(type)))
        fact.why = WhyFlat::Inexact;
    }
  }
  return facts;
}
