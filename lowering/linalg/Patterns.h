// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversion of aten ops to linalg on tensors, by family. Types are converted by
// `StorageTypeConverter`.

#ifndef SHARDC_LOWERING_LINALG_PATTERNS_H
#define SHARDC_LOWERING_LINALG_PATTERNS_H

#include "mlir/Transforms/DialectConversion.h"

namespace shardc {

/// Tensors get the element types that they have in memory: bool is i8, unsigned integers are
/// signless.
class StorageTypeConverter : public mlir::TypeConverter {
public:
  StorageTypeConverter();
};

void populateElementwiseToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateReductionsToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateScansToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateNormalizationToLinalg(mlir::TypeConverter &converter,
                                   mlir::RewritePatternSet &patterns);
void populateNeighborhoodToLinalg(mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);
void populateIndexingToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateCreationToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);
void populatePoolsToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateSpatialToLinalg(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_PATTERNS_H
