// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The optimizers of torch.optim, as ops on one parameter.
//
// To add one: derive from Optimizer, and name it in the table of Optimizers.cpp.
#ifndef SHARDC_PASSES_TRAINING_OPTIMIZERS_H
#define SHARDC_PASSES_TRAINING_OPTIMIZERS_H

#include "dialects/aten/Emitter.h"
#include "importers/plan/Training.h"

#include <memory>

namespace shardc::training {

/// What all parameters share in one step: 0-dim tensors of f64.
struct StepScalars {
  mlir::Value learningRate;
  mlir::Value step;    ///< number of the step, counted from 1
  mlir::Value isFirst; ///< bool: whether it is the first
};

/// A parameter, its gradient and states in one layout; new values of all are made of them.
struct ParameterUpdate {
  mlir::Value parameter, gradient;
  llvm::SmallVector<mlir::Value> states; ///< in the order of Optimizer::stateNames
};

class Optimizer {
public:
  /// `numbers` are complete (plan::Training::numbersOf).
  static std::unique_ptr<Optimizer> make(llvm::StringRef name,
                                         const plan::OptimizerNumbers &numbers);
  virtual ~Optimizer() = default;

  /// As in the state of torch.optim: "exp_avg". Each is zero before the first step, and has the
  /// shape and the element type of the parameter.
  virtual llvm::SmallVector<llvm::StringRef> stateNames() const = 0;
  /// Replaces parameter and states by their new values. Arithmetic is that of torch.optim's
  /// single-tensor form: what depends on the step alone is computed in f64.
  virtual void update(Emitter &emit, const StepScalars &scalars, ParameterUpdate &values) const = 0;
};

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_OPTIMIZERS_H
