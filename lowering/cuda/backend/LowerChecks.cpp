// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cuda/backend/KernelFacts.h"
#include "lowering/cuda/backend/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDALOWERCHECKS
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

/// Writes what happened into the error word, unless something is written there.
void record(exec::FailIfOp op, Value word, Value launch, unsigned message) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto guard = scf::IfOp::create(builder, loc, op.getCondition(), /*withElseRegion=*/false);
  builder.setInsertionPointToStart(guard.thenBlock());
  Type i64 = builder.getI64Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  Value wide = arith::ExtUIOp::create(builder, loc, i64, launch);
  Value ordinal = arith::AddIOp::create(builder, loc, wide, number(1));
  Value high = arith::ShLIOp::create(builder, loc, ordinal, number(32));
  Value code = arith::OrIOp::create(builder, loc, high, number(message));
  LLVM::AtomicCmpXchgOp::create(builder, loc, word, number(0), code,
                                LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic);
  op.erase();
}

struct LowerChecks : cuda::impl::CudaLowerChecksBase<LowerChecks> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!function.isKernel())
        continue;
      Location loc = function.getLoc();
      Type word = LLVM::LLVMPointerType::get(&getContext());
      Type number = IntegerType::get(&getContext(), 32);
      if (failed(function.insertArguments({0, 0}, {word, number}, {{}, {}}, {loc, loc})))
        return signalPassFailure();
      SmallVector<exec::FailIfOp> checks;
      function.walk([&](exec::FailIfOp check) { checks.push_back(check); });
      for (exec::FailIfOp check : checks) {
        record(check, function.getArgument(0), function.getArgument(1),
               cuda::addMessage(function, check.getMessage()));
        ++numChecks;
      }
    }
  }
};

} // namespace
