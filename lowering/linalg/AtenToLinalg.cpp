// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Passes.h"

#include "dialects/aten/Aten.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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
    populateScansToLinalg(converter, patterns);
    populateNormalizationToLinalg(converter, patterns);
    populateIndexingToLinalg(converter, patterns);
    populateCreationToLinalg(converter, patterns);
    populatePoolsToLinalg(converter, patterns);
    populateSpatialToLinalg(converter, patterns);
    populateNeighborhoodToLinalg(converter, patterns);
    ConversionTarget target(*context);
    // Nothing is said of aten: what is illegal would end the conversion with the first op that
    // fails.
    target.addLegalDialect<arith::ArithDialect, bufferization::BufferizationDialect, BuiltinDialect,
                           exec::ExecDialect, func::FuncDialect, linalg::LinalgDialect,
                           math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                           tensor::TensorDialect>();
    // Types as the model has them: those of what is left are of memory already.
    SmallVector<std::pair<Operation *, std::string>> signatures;
    for (Operation &op : kernel.getOps())
      if (isAten(&op))
        signatures.emplace_back(&op, signatureOf(&op));
    DenseSet<Operation *> left;
    ConversionConfig config;
    config.unlegalizedOps = &left;
    if (failed(applyPartialConversion(kernel, target, std::move(patterns), config)))
      return signalPassFailure();
    // No operation is printed here: its kernel is in an intermediate state.
    bool complete = true;
    for (auto &[op, signature] : signatures) {
      if (!left.contains(op)) {
        ++converted;
        continue;
      }
      emitError(op->getLoc()) << "'" << op->getName() << "' has no kernel for " << signature;
      complete = false;
    }
    if (!complete)
      signalPassFailure();
  }

  static bool isAten(Operation *op) { return isa_and_nonnull<aten::AtenDialect>(op->getDialect()); }

  static std::string signatureOf(Operation *op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    stream << "(" << op->getOperandTypes() << ") -> " << op->getResultTypes();
    return text;
  }
};

} // namespace
