// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products in multiply-adds of scalars, for f32 and f64. Threads are a square; each has rows and
// columns of the scores at distances of its side, so that reads of shared memory do not collide.
// Weights reach the threads that sum with them through a tile in shared memory, within a warp.
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_FMAENGINE_H
#define SHARDC_LOWERING_CUDA_ATTENTION_FMAENGINE_H

#include "lowering/cuda/attention/AttentionEngine.h"

namespace shardc::cuda {

class FmaEngine : public AttentionEngine {
public:
  FmaEngine(AttentionCode &code, const AttentionPlan &plan, Value exchange);
  AttentionPositions sumColumns(const AttentionColumns &of) const override;
  bool readsOwnRows() const override { return true; }
  AttentionNumbers scores(const AttentionTile &left, const AttentionTile &right) override;
  void accumulate(AttentionNumbers &sums, const AttentionPositions &at,
                  const AttentionNumbers &weights, const AttentionTile &right, Value firstColumn,
                  bool isFirst) override;

private:
  int64_t vector; ///< elements of 16 bytes
  Value exchange;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_FMAENGINE_H
