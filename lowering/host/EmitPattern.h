// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What patterns that emit calls share: the base of them, and shapes of buffers as converted values.

#ifndef SHARDC_LOWERING_HOST_EMITPATTERN_H
#define SHARDC_LOWERING_HOST_EMITPATTERN_H

#include "lowering/host/Emission.h"

namespace shardc::host {

template <typename Op> struct EmitPattern : mlir::ConvertOpToLLVMPattern<Op> {
  explicit EmitPattern(const Emission &emission)
      : mlir::ConvertOpToLLVMPattern<Op>(emission.converter), emission(emission) {}

  Emission emission;
};

inline mlir::Type pointerType(mlir::MLIRContext *context) {
  return mlir::LLVM::LLVMPointerType::get(context);
}
/// A number as a value of 64 bits.
mlir::Value valueOf(mlir::OpBuilder &b, mlir::Location loc, mlir::OpFoldResult number);

/// Sizes and strides of a memref that its type leaves open, as converted values.
struct BufferShape {
  llvm::SmallVector<int64_t> sizes, strides;
  llvm::SmallVector<mlir::Value> dynamicSizes, dynamicStrides;

  static mlir::FailureOr<BufferShape> of(mlir::Value memref, mlir::ConversionPatternRewriter &b);

  mlir::OpFoldResult size(mlir::OpBuilder &b, unsigned dim) const {
    return pick(b, sizes, dynamicSizes, dim);
  }
  mlir::OpFoldResult stride(mlir::OpBuilder &b, unsigned dim) const {
    return pick(b, strides, dynamicStrides, dim);
  }

private:
  static mlir::OpFoldResult pick(mlir::OpBuilder &b, llvm::ArrayRef<int64_t> known,
                                 llvm::ArrayRef<mlir::Value> dynamic, unsigned dim);
  void fillDenseStrides(mlir::OpBuilder &b, mlir::Location loc);
};

void populateCustomOpPatterns(const Emission &emission, mlir::RewritePatternSet &patterns);
void populateProductPatterns(const Emission &emission, mlir::RewritePatternSet &patterns);

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_EMITPATTERN_H
