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
inline constexpr llvm::StringLiteral kLossScale = "loss_scale";

/// At a cast to a longer type: partial values are cast before they are summed over ranks.
inline constexpr llvm::StringLiteral kWidenAttr = "dist.widen";

/// A parameter that the step updates.
struct TrainedParameter {
  mlir::Value argument;
  mlir::Value gradient; ///< with or without a layout; of type `updated`, or to be cast to it
  mlir::Type updated;   ///< the element type in which it is updated: its own, or its master's
  std::string name;     ///< its first
  plan::OptimizerNumbers numbers;
};

class StepUpdate {
public:
  /// `dataAxes` are those that gradients are summed over and states sharded.
  StepUpdate(StepBuilder &step, const plan::Training &training, llvm::ArrayRef<unsigned> dataAxes,
             dist::MeshAttr mesh)
      : step(step), emit(step.emitter()), training(training),
        dataAxes(dataAxes.begin(), dataAxes.end()), mesh(mesh) {}

  void setParameters(llvm::ArrayRef<TrainedParameter> list) { parameters = list; }

  /// Adds the gradients to the states `gradient.NAME`. `loss` is the loss of this micro-batch.
  void accumulate(mlir::Value loss);
  /// What the backward begins with where the loss is scaled, without a layout; null where it is
  /// not. To be called before anything else.
  mlir::Value scaleLoss(mlir::Value loss);
  /// Updates parameters and states. `loss` is the loss of this micro-batch.
  void update(mlir::Value loss);

  int64_t getNumStates() const { return numStates; }

private:
  /// A parameter on the way: its gradient and itself in the layout of its state.
  struct Entry {
    const TrainedParameter *parameter;
    Layout layout;
    mlir::Value gradient;
    mlir::Value value;  ///< in the type that it is updated in
    mlir::Value master; ///< its state, null where it is updated itself
  };

  const plan::Precision *precision() const {
    return training.precision ? &*training.precision : nullptr;
  }
  bool hasDynamicScale() const { return precision() && precision()->hasDynamicScale(); }
  Entry enter(const TrainedParameter &parameter);
  Layout stateLayout(const TrainedParameter &parameter) const;
  Layout accumulatorLayout(const TrainedParameter &parameter) const;
  mlir::Value addState(const llvm::Twine &name, mlir::RankedTensorType type, const Layout &layout,
                       bool isSaved = true);
  mlir::Value addScalarState(llvm::StringRef name, mlir::Type element, double initial = 0);
  /// The gradient in a layout, and in the type in which the parameter is updated.
  mlir::Value reduced(const TrainedParameter &parameter, const Layout &layout);
  mlir::Value gradientOf(const TrainedParameter &parameter, const Layout &layout);
  /// Bool: whether anything of these is not finite, on any rank.
  mlir::Value findNonFinite(llvm::ArrayRef<mlir::Value> tensors);
  /// A state: how many micro-batches of this step had a loss that is not finite. Null where nobody
  /// asks.
  mlir::Value badLossesSoFar();
  /// Says which steps are skipped, and divides gradients by the scale of the loss.
  void judge(mlir::Value loss, llvm::MutableArrayRef<Entry> entries);
  /// The next scale, given whether a gradient was not finite.
  void updateScale(mlir::Value isOverflow);
  void clip(llvm::MutableArrayRef<Entry> entries);
  /// `next`, or what was there where the step is skipped.
  mlir::Value unlessSkipped(mlir::Value old, mlir::Value next);

  StepBuilder &step;
  Emitter &emit;
  const plan::Training &training;
  llvm::SmallVector<unsigned> dataAxes;
  dist::MeshAttr mesh;
  llvm::ArrayRef<TrainedParameter> parameters;
  mlir::Value scale;                                              ///< of the loss, where it changes
  mlir::Value skipped;                                            ///< null where no step is skipped
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> updates; ///< states and their new values
  int64_t numStates = 0;
};

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_STEPUPDATE_H
