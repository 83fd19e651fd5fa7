// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/nodes/FunctionSplits.h"

#include "passes/collectives/chunk/FunctionRules.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;
using namespace shardc::collectives;

static NumberClass classOf(Type elementType) {
  auto real = dyn_cast<FloatType>(elementType);
  if (!real)
    return NumberClass::Integer;
  int wide = llvm::APFloat::semanticsMaxExponent(llvm::APFloat::IEEEsingle());
  return llvm::APFloat::semanticsMaxExponent(real.getFloatSemantics()) < wide ? NumberClass::Narrow
                                                                              : NumberClass::Wide;
}

static CollectiveFacts readFacts(CollectiveOpInterface op) {
  CollectiveFacts facts;
  for (unsigned i = 0; i != op->getNumResults(); ++i) {
    Type elementType = op.getOperandType(i).getElementType();
    unsigned bits = elementType.isIntOrFloat() ? elementType.getIntOrFloatBitWidth() : 128;
    facts.elementBytes = std::max(facts.elementBytes, (bits + 7) / 8);
    if (std::optional<Reduction> reduction = op.getReductionOrNone();
        reduction && !mayReduceTwice(*reduction, classOf(elementType)))
      facts.why = WhyFlat::Inexact;
  }
  WholeReason whole = whyWhole(op);
  if (whole == WholeReason::Symbolic)
    facts.why = WhyFlat::Symbolic;
  else if (whole == WholeReason::Uneven)
    facts.why = WhyFlat::Indivisible;
  return facts;
}

SplitFacts shardc::splitFacts(const ProgramGraph &program) {
  SplitFacts facts;
  facts.of.resize(program.graph.numNodes());
  for (NodeId node = 0; node != program.graph.numNodes(); ++node)
    if (program.graph.isCollective(node))
      facts.of[node] = readFacts(cast<CollectiveOpInterface>(program.opOf[node]));
  return facts;
}
