// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of runtime/abi/shardrt_program.h, as ops of LLVM's dialect. Offsets of fields come from the
// header itself.

#ifndef SHARDC_LOWERING_HOST_RUNTIMEABI_H
#define SHARDC_LOWERING_HOST_RUNTIMEABI_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace shardc::host::abi {

/// Loads a field of type `type` at `bytes` into the struct that `base` points to.
mlir::Value loadField(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                      mlir::Value base, size_t bytes);
void storeField(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value base,
                size_t bytes);

/// `frame` is the shardrt_frame of the run.
void callParallelFor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                     mlir::Value function, mlir::Value argument, mlir::Value count,
                     mlir::Value grain);
/// The value that `run` must return.
mlir::Value callFail(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                     mlir::Value location, mlir::Value message);
mlir::Value callGemm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                     mlir::Value gemm);
/// `descriptor` is a shardrt_collective, `tensors` an array of shardrt_collective_tensor.
mlir::Value callCollective(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                           mlir::Value descriptor, mlir::Value tensors);
/// The token.
mlir::Value callStart(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                      mlir::Value descriptor, mlir::Value tensors);
mlir::Value callWait(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                     mlir::Value token);
/// Memory of the calling thread; null where there is none.
mlir::Value callScratch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame,
                        mlir::Value slot, mlir::Value bytes);
void callMark(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value frame, mlir::Value op);

} // namespace shardc::host::abi

#endif // SHARDC_LOWERING_HOST_RUNTIMEABI_H
