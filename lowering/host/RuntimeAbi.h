// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of runtime/abi/shardrt_program.h, as ops of LLVM's dialect. Offsets of fields come from the
// header itself.

#ifndef SHARDC_LOWERING_HOST_RUNTIMEABI_H
#define SHARDC_LOWERING_HOST_RUNTIMEABI_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace shardc::host::abi {

/// How code gets at what the shardrt_frame of the run holds: here, by loading it where it is used.
class Frame {
public:
  Frame(mlir::Value frame) : frame(frame) {}
  virtual ~Frame() = default;

  /// The field of type `type` at `bytes`.
  virtual mlir::Value field(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                            size_t bytes) const;
  /// The service whose address is at `bytes` of shardrt_services.
  virtual mlir::Value service(mlir::OpBuilder &builder, mlir::Location loc, size_t bytes) const;

protected:
  mlir::Value frame;
};

/// Loads a field of type `type` at `bytes` into the struct that `base` points to.
mlir::Value loadField(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                      mlir::Value base, size_t bytes);
void storeField(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Value base,
                size_t bytes);

void callParallelFor(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                     mlir::Value function, mlir::Value argument, mlir::Value count,
                     mlir::Value grain);
/// The value that `run` must return.
mlir::Value callFail(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                     mlir::Value location, mlir::Value message);
mlir::Value callGemm(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                     mlir::Value gemm);
/// `descriptor` is a shardrt_collective, `tensors` an array of shardrt_collective_tensor.
mlir::Value callCollective(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                           mlir::Value descriptor, mlir::Value tensors);
/// The token.
mlir::Value callStart(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                      mlir::Value descriptor, mlir::Value tensors);
mlir::Value callWait(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                     mlir::Value token);
/// Memory of the calling thread; null where there is none.
mlir::Value callScratch(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                        mlir::Value slot, mlir::Value bytes);
/// `launch` is a shardrt_launch. The status of a failure, which the runtime has recorded.
mlir::Value callLaunch(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                       mlir::Value launch);
/// The status of what has failed so far.
mlir::Value callCommit(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame);
mlir::Value callReadSizes(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                          mlir::Value sizes, mlir::Value from, mlir::Value count,
                          mlir::Value atMost);
/// `call` is a shardrt_op_call without what the runtime fills in, `function` a shardrt_op_function.
mlir::Value callOp(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame,
                   mlir::Value call, mlir::Value function);
void callMark(mlir::OpBuilder &builder, mlir::Location loc, const Frame &frame, mlir::Value op);

} // namespace shardc::host::abi

#endif // SHARDC_LOWERING_HOST_RUNTIMEABI_H
