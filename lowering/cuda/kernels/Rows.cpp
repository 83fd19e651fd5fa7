// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions along one set of dims, what is computed from them, and scans. A warp, a block or
// several blocks have each row; where neighbours in memory belong to different rows, threads side
// by side have rows side by side.

#include "lowering/cuda/kernels/RowEmitter.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

class RowsKind : public KernelKind {
public:
  StringRef name() const override { return "rows"; }

  /// As many ops as have the same rows.
  size_t match(FusedKernel &kernel, ArrayRef<linalg::LinalgOp> ops) const override {
    for (size_t count = ops.size(); count > 0; --count) {
      if (llvm::all_of(ops.take_front(count), isPointwise))
        return 0;
      KernelStage stage = makeStage(kernel, ops, count);
      if (stage.stored.empty())
        continue;
      std::optional<RowSpace> space = RowSpace::analyze(stage);
      if (space && (!space->isScan() || count == 1))
        return count;
    }
    return 0;
  }

  LogicalResult emit(const KernelStage &stage, OpBuilder &host) const override {
    std::optional<RowSpace> space = RowSpace::analyze(stage);
    linalg::LinalgOp first = stage.ops.front();
    if (!space)
      return first.emitOpError("is not of the form that this kind of launch has");
    RowEmitter(stage, *space, host).emit();
    return success();
  }
};

} // namespace

std::unique_ptr<KernelKind> createRowsKind() { return std::make_unique<RowsKind>(); }

} // namespace shardc::cuda
