// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_LOCALIZE_GROUPED_H
#define SHARDC_PASSES_LOCALIZE_GROUPED_H

namespace mlir {
class MLIRContext;
}

namespace shardc {

/// Local forms of products with matrices that their rows name.
void attachGroupedModels(mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_GROUPED_H
