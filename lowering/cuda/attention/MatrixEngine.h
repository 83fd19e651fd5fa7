// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products with the matrix units, for f16 and bf16: mma.sync of 16 x 8 x 16 with sums in f32. A
// warp has rows of its own, and weights go from the sums of one product to the operand of the next
// in the registers of their thread, rounded to 16 bits.
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_MATRIXENGINE_H
#define SHARDC_LOWERING_CUDA_ATTENTION_MATRIXENGINE_H

#include "lowering/cuda/attention/AttentionEngine.h"

namespace shardc::cuda {

class MatrixEngine : public AttentionEngine {
public:
  MatrixEngine(AttentionCode &code, const AttentionPlan &plan);
  AttentionPositions sumColumns(const AttentionColumns &of) const override;
  AttentionNumbers scores(const AttentionTile &left, const AttentionTile &right) override;
  void accumulate(AttentionNumbers &sums, const AttentionPositions &at,
                  const AttentionNumbers &weights, const AttentionTile &right, Value firstColumn,
                  bool isFirst) override;

private:
  using Values = AttentionCode::Values;

  /// Two numbers of 16 bits each, as mma.sync takes them.
  Value pack(Value low, Value high);
  /// Four squares of 8 x 8; a lane says where one of their rows is.
  Values loadSquares(const AttentionTile &tile, Value row, Value column, bool transposed);
  /// Adds to four sums of a thread the product of fragments.
  void multiply(mlir::ValueRange left, mlir::ValueRange right, AttentionNumbers &sums, int64_t i,
                int64_t j);
  /// Columns of lanes in squares of 8 columns.
  AttentionPositions columnsOfLanes(int64_t columns) const;

  Value lane;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_MATRIXENGINE_H
