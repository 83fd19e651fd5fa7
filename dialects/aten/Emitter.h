// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A few words for each `aten` op that passes emit. Result types are inferred.
#ifndef SHARDC_DIALECTS_ATEN_EMITTER_H
#define SHARDC_DIALECTS_ATEN_EMITTER_H

#include "dialects/aten/Aten.h"

#include "mlir/IR/Builders.h"

namespace shardc {

class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  // Constants, as 0-dim tensors that do not change the element type of what they meet.
  mlir::Value scalar(double value, mlir::Type elementType);
  mlir::Value integer(int64_t value, mlir::Type elementType);
  /// A 0-dim i64 tensor (or of another integer type) with the value of an index.
  mlir::Value ofIndex(mlir::Value index, mlir::Type elementType);
  /// A tensor of these sizes, all zero.
  mlir::Value zeros(llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type elementType);
  mlir::Value full(llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Value fill);
  /// start, start + step, ... (`length` elements); i64 unless said otherwise.
  mlir::Value range(mlir::Value start, mlir::Value length, int64_t step = 1,
                    mlir::Type elementType = {});

  template <typename Op> mlir::Value unary(mlir::Value x) { return Op::create(builder, loc, x); }
  template <typename Op> mlir::Value binary(mlir::Value x, mlir::Value y) {
    return Op::create(builder, loc, x, y);
  }
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y) { return binary<aten::MulOp>(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value where(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// The value itself where it already has the element type.
  mlir::Value cast(mlir::Value x, mlir::Type elementType);

  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keepdim);
  mlir::Value amax(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keepdim);
  mlir::Value amin(mlir::Value x, llvm::ArrayRef<int64_t> dims, bool keepdim);

  mlir::Value view(mlir::Value x, llvm::ArrayRef<mlir::OpFoldResult> sizes);
  mlir::Value unsqueeze(mlir::Value x, int64_t dim);
  mlir::Value cat(mlir::ValueRange parts, int64_t dim);
  /// Elements [start, end) with step. Bounds are indices, taken as they are: 0 <= start <= end.
  mlir::Value slice(mlir::Value x, int64_t dim, mlir::OpFoldResult start, mlir::OpFoldResult end,
                    int64_t step = 1);

  /// The type in which sums of this element type are formed: f32 for shorter floats.
  static mlir::Type accumulator(mlir::Type elementType);

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// Splits sizes into static values (kDynamic where not) and index operands. Constants become
/// static.
void splitMixed(llvm::ArrayRef<mlir::OpFoldResult> mixed, llvm::SmallVectorImpl<int64_t> &fixed,
                llvm::SmallVectorImpl<mlir::Value> &dynamic);

} // namespace shardc

#endif // SHARDC_DIALECTS_ATEN_EMITTER_H
