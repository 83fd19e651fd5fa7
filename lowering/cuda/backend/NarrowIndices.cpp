// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/IndexBounds.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDANARROWINDICES
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

bool hasIndices(gpu::GPUFuncOp function) {
  return function
      ->walk([](Operation *op) {
        bool has = llvm::any_of(op->getResultTypes(), [](Type type) { return type.isIndex(); });
        return has ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct NarrowIndices : cuda::impl::CudaNarrowIndicesBase<NarrowIndices> {
  void runOnOperation() override {
    llvm::MapVector<Operation *, SmallVector<gpu::LaunchFuncOp>> launches;
    SymbolTableCollection symbols;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (auto function =
              symbols.lookupNearestSymbolFrom<gpu::GPUFuncOp>(launch, launch.getKernelAttr()))
        launches[function].push_back(launch);
    });
    for (auto &[op, list] : launches)
      if (auto function = cast<gpu::GPUFuncOp>(op); hasIndices(function))
        narrow(function, list, symbols);
  }

private:
  /// Launches for which 32 bits are enough go to one function, those for which they are not to
  /// another, and the host chooses where only it can tell.
  void narrow(gpu::GPUFuncOp function, ArrayRef<gpu::LaunchFuncOp> list,
              SymbolTableCollection &symbols) {
    struct Chosen {
      gpu::LaunchFuncOp launch;
      Value condition;
    };
    SmallVector<Chosen> chosen;
    bool anyWide = false;
    for (gpu::LaunchFuncOp launch : list) {
      cuda::IndexBounds bounds(function, launch);
      if (bounds.prove()) {
        chosen.push_back({launch, bounds.condition()});
        anyWide |= chosen.back().condition != nullptr;
      } else {
        anyWide = true;
      }
    }
    if (chosen.empty()) {
      ++wide;
      return;
    }
    gpu::GPUFuncOp small = function;
    if (anyWide) {
      small = function.clone();
      small.setName((function.getName() + "_narrow").str());
      symbols.getSymbolTable(function->getParentOp()).insert(small);
      ++variants;
    }
    passWide(small);
    small->setAttr(cuda::kNarrowIndicesAttr, UnitAttr::get(&getContext()));
    ++narrowed;
    for (auto &[launch, condition] : chosen) {
      OpBuilder builder(launch);
      gpu::LaunchFuncOp ofSmall = launch;
      if (condition) {
        auto choice =
            scf::IfOp::create(builder, launch.getLoc(), condition, /*withElseRegion=*/true);
        launch->moveBefore(choice.elseBlock()->getTerminator());
        builder.setInsertionPoint(choice.thenBlock()->getTerminator());
        ofSmall = cast<gpu::LaunchFuncOp>(builder.clone(*launch));
      }
      call(ofSmall, small);
    }
  }

  /// Indices that a function takes stay 64 bits where they are passed.
  static void passWide(gpu::GPUFuncOp function) {
    Block &entry = function.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    SmallVector<Type> types(function.getArgumentTypes());
    for (auto [number, type] : llvm::enumerate(types)) {
      if (!type.isIndex())
        continue;
      type = builder.getI64Type();
      BlockArgument argument = entry.getArgument(number);
      argument.setType(type);
      auto index =
          arith::IndexCastOp::create(builder, function.getLoc(), builder.getIndexType(), argument);
      argument.replaceAllUsesExcept(index, index);
    }
    function.setFunctionType(builder.getFunctionType(types, {}));
  }

  static void call(gpu::LaunchFuncOp launch, gpu::GPUFuncOp function) {
    launch.setKernelAttr(SymbolRefAttr::get(launch.getKernelModuleName(),
                                            FlatSymbolRefAttr::get(function.getNameAttr())));
    OpBuilder builder(launch);
    for (OpOperand &operand : launch.getKernelOperandsMutable())
      if (operand.get().getType().isIndex())
        operand.set(arith::IndexCastOp::create(builder, launch.getLoc(), builder.getI64Type(),
                                               operand.get()));
  }
};

} // namespace
