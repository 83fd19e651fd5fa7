// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values differ between what runs a piece of code more than once: threads, blocks,
// iterations.

#ifndef SHARDC_PASSES_VERIFY_VARIATION_H
#define SHARDC_PASSES_VERIFY_VARIATION_H

#include "mlir/IR/Operation.h"

#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// Values have sets of bits: those of the sources that they may depend on. What is read from memory
/// may depend on all of them. Linear in the size of the code, times the depth of its loops.
class Variation {
public:
  using Bits = unsigned;
  static constexpr Bits kThreadX = 1, kBlockX = 8, kAll = ~0u;

  /// Sources are `arguments`, each with its bits, and in code of a device its ids: kThreadX,
  /// kThreadX << 1 and kThreadX << 2 are those of a thread along x, y and z, kBlockX and so on
  /// those of a block.
  Variation(mlir::Region &code, const llvm::DenseMap<mlir::Value, Bits> &arguments);

  /// None for a value from outside the code.
  Bits of(mlir::Value value) const { return known.lookup(value); }
  /// All operands of an op together.
  Bits ofOperands(mlir::Operation *op) const;

private:
  void visit(mlir::Operation *op);
  void add(mlir::Value value, Bits bits);

  llvm::DenseMap<mlir::Value, Bits> known;
  /// What the terminators in an op's regions pass on.
  llvm::DenseMap<mlir::Operation *, Bits> passed;
  bool changed = false;
};

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_VARIATION_H
