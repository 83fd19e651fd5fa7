// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/Registration.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "importers/torch_export/import/TorchExport.h"
#include "importers/torchscript/TorchScript.h"
#include "lowering/Passes.h"
#include "passes/gradient/differentiate/Models.h"
#include "passes/localize/Models.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace shardc;

void shardc::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<aten::AtenDialect, dist::DistDialect>();
  // imported to scheduled
  registry
      .insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::tensor::TensorDialect>();
  // on the way to lowered, and lowered
  registry.insert<mlir::affine::AffineDialect, mlir::bufferization::BufferizationDialect,
                  mlir::cf::ControlFlowDialect, mlir::linalg::LinalgDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::memref::MemRefDialect,
                  mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
  registerLoweringDialects(registry);
  mlir::func::registerAllExtensions(registry);
  registerDifferentiateModels(registry);
  registerLocalizeModels(registry);
}

llvm::ArrayRef<Importer> shardc::allImporters() {
  // Both are zip archives; the second takes any that the first does not.
  static const Importer importers[] = {torchscript::getImporter(), torch_export::getImporter()};
  return importers;
}
