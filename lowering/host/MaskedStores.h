// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A masked store of one lane, as a vectorised loop whose last iteration has one element ends with,
// is written as the scalar store that it is. LLVM 22 does so itself when it selects instructions,
// and gets it wrong for integers that were cut short: of `trunc <8 x i64> to <8 x i8>` it stores
// the element of the wide vector, with the seven bytes behind it.
#ifndef SHARDC_LOWERING_HOST_MASKEDSTORES_H
#define SHARDC_LOWERING_HOST_MASKEDSTORES_H

#include "llvm/IR/PassManager.h"

namespace shardc::host {

/// For the end of the optimisations of LLVM IR, where masks that are known are constants.
struct ScalariseMaskedStores : llvm::PassInfoMixin<ScalariseMaskedStores> {
  static llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &);
  /// Runs whatever the optimisation level is: this is about what is right.
  static bool isRequired() { return true; }
};

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_MASKEDSTORES_H
