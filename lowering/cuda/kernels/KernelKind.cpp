// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/KernelKind.h"

using namespace mlir;

namespace shardc::cuda {

KernelStage makeStage(FusedKernel &kernel, ArrayRef<linalg::LinalgOp> ops, size_t count) {
  KernelStage stage{kernel, ops.take_front(count), {}};
  for (linalg::LinalgOp op : stage.ops)
    for (OpResult result : op->getResults()) {
      bool isReadLater = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return llvm::any_of(ops.drop_front(count),
                            [&](linalg::LinalgOp later) { return later->isAncestor(user); });
      });
      if (isReadLater || !kernel.destinationsOf(result).empty())
        stage.stored.push_back(result);
    }
  return stage;
}

ArrayRef<std::unique_ptr<KernelKind>> kernelKinds() {
  static const std::vector<std::unique_ptr<KernelKind>> kinds = [] {
    std::vector<std::unique_ptr<KernelKind>> list;
    list.push_back(createPointwiseKind());
    list.push_back(createRowsKind());
    list.push_back(createGeneralKind());
    return list;
  }();
  return kinds;
}

} // namespace shardc::cuda
