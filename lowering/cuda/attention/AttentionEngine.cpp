// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lowering/cuda/attention/AttentionEngine.h"

#include "lowering/cuda/Accesses.h"
#include "lowering/cuda/attention/FmaEngine.h"
#include "lowering/cuda/attention/MatrixEngine.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace shardc::cuda {

std::unique_ptr<AttentionEngine>
AttentionEngine::create(AttentionCode &code, const AttentionPlan &plan, Value exchange) {
  if (plan.matrixUnits)
    return std::make_unique<MatrixEngine>(code, plan);
  return std::make_unique<FmaEngine>(code, plan, exchange);
}

Type AttentionEngine::exchangeType(const AttentionCode &code, const AttentionPlan &plan) {
  if (plan.matrixUnits)
    return {};
  return sharedMemory({plan.rows, plan.exchangeStride}, code.type);
}

Value AttentionEngine::acrossRow(Value v, function_ref<Value(Value, Value)> combine) {
  for (int64_t bit = 1; bit < threadsOfRow; bit *= 2)
    v = combine(v, code.shuffle(v, bit));
  return v;
}

void AttentionEngine::stage(const AttentionNumbers &sums, const AttentionPositions &at,
                            const AttentionTile &to, Value firstColumn) {
  Value base = firstColumn ? code.add(firstColumn, at.base) : at.base;
  for (int64_t i = 0; i < rowPositions.size(); ++i) {
    Value row = code.add(rowPositions.base, rowPositions.offsets[i]);
    for (int64_t j = 0; j < at.size(); j += at.group) {
      auto wide = VectorType::get({at.group}, code.type);
      Value numbers = vector::FromElementsOp::create(
          code.builder, code.loc, wide,
          ArrayRef(sums.values).slice(i * sums.columns + j, at.group));
      numbers = code.narrow(numbers, VectorType::get({at.group}, code.element));
      code.storeVector(numbers, to.memory,
                       AttentionCode::at(to, row, code.add(base, at.offsets[j])));
    }
  }
}

} // namespace shardc::cuda
