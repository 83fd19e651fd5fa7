// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDACONVERTDEVICE
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

/// Functions that chips have instructions for: no library is needed for them. What libdevice has
/// for the others is accurate to a few units in the last place; the instructions for these
/// (ex2.approx, say) are not.
bool isInstruction(OperationName name) {
  static const llvm::StringSet<> instructions = {arith::MaxNumFOp::getOperationName(),
                                                 arith::MinNumFOp::getOperationName(),
                                                 math::AbsFOp::getOperationName(),
                                                 math::AbsIOp::getOperationName(),
                                                 math::CeilOp::getOperationName(),
                                                 math::CopySignOp::getOperationName(),
                                                 math::CountLeadingZerosOp::getOperationName(),
                                                 math::CountTrailingZerosOp::getOperationName(),
                                                 math::CtPopOp::getOperationName(),
                                                 math::FloorOp::getOperationName(),
                                                 math::FmaOp::getOperationName(),
                                                 math::IsFiniteOp::getOperationName(),
                                                 math::IsNaNOp::getOperationName(),
                                                 math::RoundEvenOp::getOperationName(),
                                                 math::RoundOp::getOperationName(),
                                                 math::SqrtOp::getOperationName(),
                                                 math::TruncOp::getOperationName()};
  return instructions.contains(name.getStringRef());
}

/// Moves the patterns of `from` whose ops `chosen` takes.
template <typename Chosen>
void addChosen(RewritePatternSet &from, RewritePatternSet &to, Chosen chosen) {
  for (std::unique_ptr<RewritePattern> &pattern : from.getNativePatterns())
    if (std::optional<OperationName> root = pattern->getRootKind(); !root || chosen(*root))
      to.add(std::move(pattern));
}

/// Ops of the device, and functions: what is an instruction is taken from LLVM, all else from
/// libdevice.
void populateDevice(const LLVMTypeConverter &converter, RewritePatternSet &patterns) {
  RewritePatternSet intrinsics(patterns.getContext()), device(patterns.getContext());
  populateMathToLLVMConversionPatterns(converter, intrinsics, /*approximateLog1p=*/false);
  addChosen(intrinsics, patterns, isInstruction);
  populateGpuToNVVMConversionPatterns(converter, device, /*benefit=*/2);
  addChosen(device, patterns, [](OperationName name) { return !isInstruction(name); });
}

/// The functions of the device that have ops which did not become LLVM's: all are told at once.
LogicalResult reportLeftovers(gpu::GPUModuleOp device) {
  llvm::MapVector<Operation *, llvm::SmallSetVector<Operation *, 4>> left;
  llvm::DenseSet<std::pair<Operation *, OperationName>> seen;
  device.walk<WalkOrder::PreOrder>([&](Operation *op) {
    // Casts are between converted ops and what is left.
    if (op == device || isa<UnrealizedConversionCastOp>(op) ||
        isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
      return WalkResult::advance();
    Operation *function = op;
    while (function->getParentOp() != device)
      function = function->getParentOp();
    if (seen.insert({function, op->getName()}).second)
      left[function].insert(op);
    return function == op ? WalkResult::advance() : WalkResult::skip();
  });
  for (auto &[function, ops] : left) {
    auto name = function->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    for (Operation *op : ops) {
      InFlightDiagnostic error = op->emitError("kernel '")
                                 << (name ? name.getValue() : "") << "' has '" << op->getName()
                                 << "', which cannot be compiled for CUDA";
      if (op->getNumResults() != 0)
        error << " with a result of type " << op->getResultTypes().front();
    }
  }
  return success(left.empty());
}

/// What a loop says of its unrolling, where LLVM's dialect has it.
void keepLoopAnnotations(gpu::GPUModuleOp device) {
  constexpr StringLiteral kAnnotation = "llvm.loop_annotation";
  auto keep = [&](auto branch) {
    if (auto annotation = branch->template getAttrOfType<LLVM::LoopAnnotationAttr>(kAnnotation)) {
      branch.setLoopAnnotationAttr(annotation);
      branch->removeDiscardableAttr(kAnnotation);
    }
  };
  device.walk([&](LLVM::BrOp branch) { keep(branch); });
  device.walk([&](LLVM::CondBrOp branch) { keep(branch); });
}

struct ConvertDevice : cuda::impl::CudaConvertDeviceBase<ConvertDevice> {
  void runOnOperation() override {
    gpu::GPUModuleOp device = getOperation();
    SmallVector<Operation *> narrow;
    device.walk([&](gpu::GPUFuncOp function) {
      ++functions;
      if (function->removeAttr(cuda::kNarrowIndicesAttr))
        narrow.push_back(function);
    });
    if (failed(convert(narrow, /*indexBits=*/32)) ||
        failed(convert({device.getOperation()}, /*indexBits=*/64)) ||
        failed(reportLeftovers(device)))
      return signalPassFailure();
    keepLoopAnnotations(device);
  }

  LogicalResult convert(ArrayRef<Operation *> ops, unsigned indexBits) {
    MLIRContext *context = &getContext();
    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(indexBits);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter converter(context, options);
    configureGpuToNVVMTypeConverter(converter);
    RewritePatternSet patterns(context);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    populateDevice(converter, patterns);
    populateGpuWMMAToNVVMConversionPatterns(converter, patterns);
    populateNVGPUToNVVMConversionPatterns(converter, patterns);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    // What is not known to it stays as it is, and is reported.
    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    return applyPartialConversion(ops, target, std::move(patterns));
  }
};

} // namespace
