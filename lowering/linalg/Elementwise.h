// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What elementwise ops compute for one element: one table for all lowerings.

#ifndef SHARDC_LOWERING_LINALG_ELEMENTWISE_H
#define SHARDC_LOWERING_LINALG_ELEMENTWISE_H

#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// In which ATen type an op gets its operands.
enum class Operands {
  Result,   // all in the type of the result
  Promoted, // all in the type in which they meet (the result may be of another: comparisons)
  Own,      // each in its own
};

struct ElementwiseRule {
  Operands operands;
  /// Builds the result for one element, in the compute type of the result. `s` computes in the type
  /// of the operands (of the result, for `Own`).
  mlir::Value (*emit)(mlir::Operation *op, const ScalarBuilder &s,
                      llvm::ArrayRef<mlir::Value> operands);
};

class ElementwiseTable {
public:
  /// Null for an op that is not elementwise.
  static const ElementwiseRule *find(mlir::Operation *op);

  template <typename Op>
  void add(Operands operands, mlir::Value (*emit)(mlir::Operation *, const ScalarBuilder &,
                                                  llvm::ArrayRef<mlir::Value>)) {
    rules[mlir::TypeID::get<Op>()] = {operands, emit};
  }

private:
  ElementwiseTable();
  llvm::DenseMap<mlir::TypeID, ElementwiseRule> rules;
};

// Each family adds its rules.
void addUnaryRules(ElementwiseTable &table);
void addErfinvRule(ElementwiseTable &table);
void addActivationRules(ElementwiseTable &table);
void addBinaryRules(ElementwiseTable &table);
void addRandomRules(ElementwiseTable &table);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_ELEMENTWISE_H
