// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Predict.h"

#include "dialects/interfaces/ModelLocation.h"
#include "passes/collectives/analysis/ProgramGraph.h"
#include "passes/collectives/core/Simulate.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::collectives;

static Prediction::Stream streamOf(const collectives::Span &span) {
  if (span.what == collectives::Span::What::Stall)
    return Prediction::Stream::Waiting;
  return span.group == none ? Prediction::Stream::Compute : Prediction::Stream::Communication;
}

FailureOr<Prediction> shardc::predict(func::FuncOp function, const cost::CostModel &model,
                                      const SymbolValues &sizes) {
  FailureOr<ProgramGraph> program = buildProgramGraph(function, model, sizes);
  if (failed(program) || failed(checkPrices(*program, model)))
    return failure();
  const Graph &graph = program->graph;
  std::vector<collectives::Span> timeline;
  SimulateOptions options;
  options.timeline = &timeline;
  Figures figures = simulate(graph, model, options);

  Prediction prediction;
  prediction.costModel = model.name();
  prediction.stepUs = figures.stepUs;
  prediction.exposedUs = figures.totalExposedUs();
  prediction.peakBytes = figures.peakHoldBytes;
  for (const collectives::Span &span : timeline) {
    if (span.durationUs <= 0)
      continue;
    Location location = program->opOf[span.id]->getLoc();
    bool hasPlace = !getModulePath(location).empty() || getSourceLine(location);
    prediction.spans.push_back({graph.nameOf(span.id), hasPlace ? describePlace(location) : "",
                                streamOf(span), span.startUs, span.durationUs});
  }
  return prediction;
}
