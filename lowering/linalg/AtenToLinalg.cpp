// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Passes.h"

#include "dialects/aten/Aten.h"
#include "lowering/exec/Exec.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace shardc {
#define GEN_PASS_DEF_ATENTOLINALG
#include "lowering/linalg/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

StorageTypeConverter::StorageTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](RankedTensorType type) -> Type { return storageType(type); });
  auto cast = [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
  };
  addSourceMaterialization(cast);
  addTargetMaterialization(cast);
}

namespace {

struct AtenToLinalg : shardc::impl::AtenToLinalgBase<AtenToLinalg> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(exec::kKernelAttr))
      return;
    MLIRContext *context = &getContext();
    StorageTypeConverter converter;
    RewritePatternSet patterns(context);
    populateElementwiseToLinalg(converter, patterns);
    populateReductionsToLinalg(converter, patterns);
    populateNormalizationToLinalg(converter, patterns);
    populateIndexingToLinalg(converter, patterns);
    populateCreationToLinalg(converter, patterns);
    populateSpatialToLinalg(converter, patterns);
    ConversionTarget target(*context);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<aten::AtenDialect>();
    if (failed(applyPartialConversion(kernel, target, std::move(patterns))))
      return signalPassFailure();
  }
};

} // namespace
