// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/EntryArguments.h"
#include "dialects/exec/Exec.h"
#include "lowering/host/EmitPattern.h"
#include "lowering/host/Passes.h"
#include "lowering/host/RuntimeAbi.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace shardc::host {
#define GEN_PASS_DEF_EMITPROGRAM
#include "lowering/host/Passes.h.inc"
} // namespace shardc::host

using namespace mlir;
using namespace shardc;
using namespace shardc::host;

namespace {

bool isHostFunction(func::FuncOp function) {
  return function->hasAttr(exec::kEntryAttr) || function->hasAttrOfType<UnitAttr>(exec::kPlanAttr);
}

/// Arguments are loads from the frame.
void replaceArguments(func::FuncOp function) {
  Block &entry = function.getBody().front();
  OpBuilder builder = OpBuilder::atBlockBegin(&entry);
  llvm::DenseMap<Attribute, int64_t> count;
  for (auto [i, argument] : llvm::enumerate(entry.getArguments())) {
    auto kind = function.getArgAttrOfType<exec::ArgumentKindAttr>(i, exec::kArgumentAttr);
    auto index = function.getArgAttrOfType<IntegerAttr>(i, exec::kIndexAttr);
    if (!index)
      index = builder.getI64IntegerAttr(count[kind]++);
    argument.replaceAllUsesWith(
        exec::ArgumentOp::create(builder, function.getLoc(), argument.getType(), kind, index));
  }
  entry.eraseArguments(0, entry.getNumArguments());
  function.setAllArgAttrs(ArrayRef<DictionaryAttr>());
  function.setType(builder.getFunctionType({}, {}));
}

struct LowerFunction : ConvertOpToLLVMPattern<func::FuncOp> {
  explicit LowerFunction(const Emission &emission) : ConvertOpToLLVMPattern(emission.converter) {}
  LogicalResult matchAndRewrite(func::FuncOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    Type pointer = LLVM::LLVMPointerType::get(getContext());
    auto type = LLVM::LLVMFunctionType::get(b.getI32Type(), {pointer});
    auto function = LLVM::LLVMFuncOp::create(b, op.getLoc(), op.getName(), type);
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      function->setDiscardableAttr(attribute.getName(), attribute.getValue());
    b.inlineRegionBefore(op.getBody(), function.getBody(), function.end());
    function.getBody().front().addArgument(pointer, op.getLoc());
    b.eraseOp(op);
    return success();
  }
};

struct LowerReturn : ConvertOpToLLVMPattern<func::ReturnOp> {
  explicit LowerReturn(const Emission &emission) : ConvertOpToLLVMPattern(emission.converter) {}
  LogicalResult matchAndRewrite(func::ReturnOp op, OpAdaptor,
                                ConversionPatternRewriter &b) const override {
    b.replaceOpWithNewOp<LLVM::ReturnOp>(op, constantInt(b, op.getLoc(), 0, 32));
    return success();
  }
};

struct EmitProgram : host::impl::EmitProgramBase<EmitProgram> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    ProgramTables tables(module);
    SmallVector<Operation *> roots;
    bool hasLaunches = false;
    for (auto function : module.getOps<func::FuncOp>())
      if (isHostFunction(function)) {
        if (failed(exec::verifyEntryArguments(function)))
          return signalPassFailure();
        replaceArguments(function);
        RewritePatternSet expansions(context);
        arith::populateCeilFloorDivExpandOpsPatterns(expansions);
        if (failed(applyPatternsGreedily(function, std::move(expansions))))
          return signalPassFailure();
        roots.push_back(function);
        ++functions;
        function.walk([&](exec::LaunchOp) {
          hasLaunches = true;
          ++launches;
        });
        function.walk(
            [&](Operation *op) { collectives += isa<exec::CollectiveOp, exec::StartOp>(op); });
      }
    for (auto global : module.getOps<memref::GlobalOp>())
      roots.push_back(global);
    tables.writeTo(module);
    declareCollectives(module);

    LowerToLLVMOptions options(context);
    LLVMTypeConverter converter(context, options);
    converter.addConversion(
        [&](MemRefType type) -> Type { return LLVM::LLVMPointerType::get(context); });
    converter.addConversion(
        [&](exec::TokenType type) -> Type { return IntegerType::get(context, 64); });
    std::unique_ptr<target::LaunchLowering> launching;
    if (hasLaunches) {
      auto found = target::backendOf(module);
      if (failed(found))
        return signalPassFailure();
      launching = found->first->createLaunchLowering(module);
    }
    FailureOr<target::Limits> limits = target::readLimits(module);
    if (failed(limits))
      return signalPassFailure();
    GlobalPool pool(module);
    FunctionParts parts;
    Emission emission{converter, tables, pool, parts, limits->bufferAlignment, launching.get()};
    RewritePatternSet patterns(context);
    populateHostPatterns(emission, patterns);
    populateProductPatterns(emission, patterns);
    populateCustomOpPatterns(emission, patterns);
    populateCollectivePatterns(emission, patterns);
    populateExtentPatterns(emission, patterns);
    patterns.add<LowerFunction, LowerReturn>(emission);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(*context);
    if (failed(applyFullConversion(roots, target, std::move(patterns))))
      return signalPassFailure();
  }

  static void declareCollectives(ModuleOp module) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp::create(b, module.getLoc(), b.getI8Type(), /*isConstant=*/true,
                           LLVM::Linkage::External, kCollectivesSymbol, Attribute());
  }
};

} // namespace
