// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a cost model expects of one call of a program, for whoever compares it with a real run.

#ifndef SHARDC_PASSES_COLLECTIVES_PREDICT_H
#define SHARDC_PASSES_COLLECTIVES_PREDICT_H

#include "passes/cost/core/CostModel.h"
#include "passes/specialize/BindSymbols.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace shardc {

struct Prediction {
  /// The streams of a rank's trace: communication is one lane for all groups.
  enum class Stream : uint32_t { Compute = 0, Communication = 1, Waiting = 2 };
  struct Span {
    std::string name;
    /// Module path and source line; may be empty.
    std::string location;
    Stream stream;
    /// Microseconds from the beginning of the call.
    double startUs, durationUs;
  };

  std::string costModel;
  double stepUs = 0, exposedUs = 0;
  /// Parameters and inputs included.
  uint64_t peakBytes = 0;
  /// In order of issue; those that take no time are left out.
  std::vector<Span> spans;
};

/// As `dist-predict-timeline` notes it at functions; `predictionOf` gives nothing where the
/// attribute has another form.
inline constexpr llvm::StringLiteral kTimelineAttr = "dist.timeline";
mlir::DictionaryAttr toAttribute(mlir::MLIRContext *context, const Prediction &prediction);
std::optional<Prediction> predictionOf(mlir::DictionaryAttr timeline);

/// Simulates a function of the local or scheduled stage in the order in which it stands; sizes and
/// durations are those of the rank that has most to do, with symbols of these values (others:
/// typical ones). A collective of several tensors is one. Fails with an error where the function is
/// no program that can be simulated.
mlir::FailureOr<Prediction> predict(mlir::func::FuncOp function, const cost::CostModel &model,
                                    const SymbolValues &sizes = {});

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_PREDICT_H
