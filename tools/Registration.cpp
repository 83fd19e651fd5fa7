// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "tools/Registration.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "importers/torch_export/import/TorchExport.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace shardc;

void shardc::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<aten::AtenDialect, dist::DistDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::tensor::TensorDialect>();
  mlir::func::registerAllExtensions(registry);
}

void shardc::registerAllImporters() { torch_export::registerTorchExportImporter(); }
