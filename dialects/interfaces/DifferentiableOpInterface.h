// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an op's derivative gets from the pass that builds a backward, and gives to it.
#ifndef SHARDC_DIALECTS_INTERFACES_DIFFERENTIABLEOPINTERFACE_H
#define SHARDC_DIALECTS_INTERFACES_DIFFERENTIABLEOPINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace shardc {

class GradientContext {
public:
  virtual ~GradientContext() = default;

  /// The cotangent of a result; null where the loss does not depend on it. Its type is that of the
  /// result, without a layout.
  virtual mlir::Value cotangent(unsigned result) = 0;
  /// Whether anybody asks for the cotangent of an operand.
  virtual bool isNeeded(unsigned operand) const = 0;
  /// Adds to the cotangent of an operand. What the operand was broadcast to is summed to its shape,
  /// and cast to its element type.
  virtual void add(unsigned operand, mlir::Value cotangent) = 0;
  /// Puts another op of the forward in the place of this one, whose first results are this one's
  /// and have their types, and which keeps more of what the derivative needs. This op is erased;
  /// results and operands are those of the other from now on.
  virtual void replace(mlir::Operation *other) = 0;
  /// Where the ops that are built come from: the backward of this op.
  virtual mlir::Location getLoc() const = 0;
  /// An error at the op, which names it and its place in the model. Add why, and what to do.
  virtual mlir::InFlightDiagnostic refuse() = 0;
};

} // namespace shardc

#include "dialects/interfaces/DifferentiableOpInterface.h.inc"

#endif // SHARDC_DIALECTS_INTERFACES_DIFFERENTIABLEOPINTERFACE_H
