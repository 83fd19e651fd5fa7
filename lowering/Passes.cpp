// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/Passes.h"

#include "lowering/cpu/Passes.h"
#include "lowering/exec/Exec.h"
#include "lowering/linalg/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

void shardc::registerLoweringPasses() {
  registerShardcLinalgPasses();
  cpu::registerShardcCpuPasses();
  cpu::registerPipelines();
}

void shardc::registerLoweringDialects(mlir::DialectRegistry &registry) {
  registry.insert<exec::ExecDialect, mlir::affine::AffineDialect,
                  mlir::bufferization::BufferizationDialect, mlir::cf::ControlFlowDialect,
                  mlir::linalg::LinalgDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::ub::UBDialect,
                  mlir::vector::VectorDialect>();
}
