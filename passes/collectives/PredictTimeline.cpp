// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"
#include "passes/collectives/Predict.h"
#include "passes/specialize/AssumedSizes.h"

namespace shardc {
#define GEN_PASS_DEF_PREDICTTIMELINE
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {
struct PredictTimeline : shardc::impl::PredictTimelineBase<PredictTimeline> {
  using PredictTimelineBase::PredictTimelineBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string message;
    std::unique_ptr<cost::CostModel> model = cost::loadModel(topology, message);
    if (!model)
      module.emitError() << "topology: " << StringRef(message).rtrim();
    FailureOr<SymbolValues> values = assumedSizes(module, sizes);
    if (!model || failed(values))
      return signalPassFailure();
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        predictFunction(function, *model, *values);
    markAllAnalysesPreserved();
  }

  void predictFunction(func::FuncOp function, const cost::CostModel &model,
                       const SymbolValues &values) {
    std::string message;
    FailureOr<Prediction> prediction = failure();
    {
      // The program itself may well be right.
      ScopedDiagnosticHandler first(&getContext(), [&](Diagnostic &diagnostic) {
        if (message.empty())
          message = diagnostic.str();
      });
      prediction = predict(function, model, values);
    }
    if (failed(prediction)) {
      function.emitWarning() << "nothing is predicted: " << message;
      return;
    }
    function->setAttr(kTimelineAttr, toAttribute(&getContext(), *prediction));
    ++numPredicted;
  }
};
} // namespace
