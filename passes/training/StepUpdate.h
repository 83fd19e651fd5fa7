// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What follows the backward in a function of training: gradients become new values of parameters
// and states, or are added to what micro-batches before have left.
#ifndef SHARDC_PASSES_TRAINING_STEPUPDATE_H
#define SHARDC_PASSES_TRAINING_STEPUPDATE_H

#include "passes/training/StepBuilder.h"

#include "importers/plan/Training.h"

namespace shardc::training {

/// Names of what the step takes and returns itself.
inline constexpr llvm::StringLiteral kLearningRate = "learning_rate";
inline constexpr llvm::StringLiteral kGradNorm = "grad_norm";
inline constexpr llvm::StringLiteral kSkipped = "skipped";

/// A parameter that the step updates.
struct TrainedParameter {
  mlir::Value argument;
  mlir::Value gradient; ///< with or without a layout
  std::string name;     ///< its first
  plan::OptimizerNumbers numbers;
};

class StepUpdate {
public:
  /// `dataAxes` are those that gradients are summed over and states sharded.
  StepUpdate(StepBuilder &step, const plan::Training &training, llvm::ArrayRef<unsigned> dataAxes,
             llvm::ArrayRef<TrainedParameter> parameters)
      : step(step), emit(step.emitter()), training(training),
        dataAxes(dataAxes.begin(), dataAxes.end()), parameters(parameters) {}

  /// Adds the gradients to the states `gradient.NAME`.
  void accumulate();
  /// Updates parameters and states. `loss` is the loss of this micro-batch.
  void update(mlir::Value loss);

  int64_t getNumStates() const { return numStates; }

private:
  /// A parameter on the way: its gradient and itself in the layout of its state.
  struct Entry {
    const TrainedParameter *parameter;
    Layout layout;
    mlir::Value gradient, value;
  };

  Layout stateLayout(const TrainedParameter &parameter) const;
  Layout accumulatorLayout(const TrainedParameter &parameter) const;
  mlir::Value addState(const llvm::Twine &name, mlir::RankedTensorType type, const Layout &layout,
                       bool isSaved = true);
  mlir::Value gradientOf(const TrainedParameter &parameter, const Layout &layout);
  /// Bool: whether anything of the loss or the gradients is not finite.
  mlir::Value findNonFinite(mlir::Value loss, llvm::ArrayRef<Entry> entries);
  void clip(llvm::MutableArrayRef<Entry> entries);
  /// `next`, or what was there where the step is skipped.
  mlir::Value unlessSkipped(mlir::Value old, mlir::Value next);

  StepBuilder &step;
  Emitter &emit;
  const plan::Training &training;
  llvm::SmallVector<unsigned> dataAxes;
  llvm::ArrayRef<TrainedParameter> parameters;
  mlir::Value skipped; ///< null where no step is skipped
  int64_t numStates = 0;
};

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_STEPUPDATE_H
