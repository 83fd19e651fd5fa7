// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_GRADIENT_DIFFERENTIATE_GROUPED_H
#define SHARDC_PASSES_GRADIENT_DIFFERENTIATE_GROUPED_H

namespace mlir {
class MLIRContext;
}

namespace shardc {

/// Derivatives of products with matrices that their rows name.
void attachGroupedGradients(mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_DIFFERENTIATE_GROUPED_H
