// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention: operands as strided [batch, heads, rows, columns].

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/exec/Exec.h"

#include <cmath>

using namespace mlir;

namespace shardc::memory {
namespace {

struct Attention {
  HostProgram &program;
  aten::ScaledDotProductAttentionOp op;
  IndexMath math;

  /// All dims before the heads as one; a copy where strides cannot express it.
  StridedView normalize(StridedView view) {
    while (view.rank() < 4)
      view = insertDim(math, view, view.rank() == 3 ? 0 : view.rank() - 2);
    if (view.rank() == 4)
      return view;
    size_t outer = view.rank() - 3;
    Sizes sizes{math.product(ArrayRef<Size>(view.sizes).take_front(outer))};
    sizes.append(view.sizes.begin() + outer, view.sizes.end());
    return program.reshaped(op.getLoc(), view, sizes);
  }

  /// Key or value with the query's dims in front of its last two; with grouped queries heads are
  /// left alone.
  StridedView alike(const StridedView &view, const StridedView &query) {
    Sizes sizes = query.sizes;
    size_t own = op.getEnableGqa() ? 3 : 2;
    if (view.rank() < own || query.rank() < own)
      return view;
    for (size_t i = 1; i <= own; ++i)
      sizes[sizes.size() - i] = view.sizes[view.rank() - i];
    return broadcast(math, view, sizes);
  }

  LogicalResult run() {
    if (!op.getDropoutP().isZero())
      return op.emitOpError("has dropout, which inference does not: export the model in eval mode");
    FailureOr<Sizes> sizes = program.resultSizes(op, 0);
    if (failed(sizes))
      return failure();
    // Dims that only key and value have in front are those of the result.
    StridedView query = program.view(op.getQuery());
    Sizes whole = *sizes;
    whole.back() = query.sizes.back();
    query = broadcast(math, query, whole);
    SmallVector<StridedView> operands{normalize(query),
                                      normalize(alike(program.view(op.getKey()), query)),
                                      normalize(alike(program.view(op.getValue()), query))};
    double factor = 1;
    std::optional<int64_t> depth = getConstantIntValue(query.sizes.back());
    if (std::optional<llvm::APFloat> scale = op.getScale())
      factor = scale->convertToDouble();
    else if (depth)
      factor = *depth == 0 ? 0 : 1 / std::sqrt(static_cast<double>(*depth));
    else
      return op.emitOpError("needs 'scale' where the size of a head is symbolic");
    if (Value mask = op.getAttnMask()) {
      Sizes all = query.sizes;
      all.back() = program.view(op.getKey()).sizes.end()[-2];
      operands.push_back(normalize(broadcast(math, program.view(mask), all)));
    }
    StridedView target = program.destination(op.getResult(), *sizes, /*mustBeDense=*/false);
    program.views[op.getResult()] = target;
    if (hasNoElements(*sizes))
      return success();
    StridedView place = normalizeTarget(target, *sizes);
    operands.push_back(place);

    SmallVector<Value> memory;
    for (const StridedView &operand : operands)
      memory.push_back(toMemref(math, operand));
    Value mask = op.getAttnMask() ? memory[3] : Value();
    OpBuilder &b = program.builder;
    exec::AttentionOp::create(b, op.getLoc(), memory[0], memory[1], memory[2], mask, memory.back(),
                              op.getIsCausal(), llvm::APFloat(factor),
                              b.getStringAttr("attention"));
    if (place.base != target.base)
      program.copy(op.getLoc(), denseView(math, place.base, *sizes), target);
    return success();
  }

  /// The result's memory with four dims, or other memory to copy from in the end.
  StridedView normalizeTarget(const StridedView &target, const Sizes &sizes) {
    if (target.rank() <= 4)
      return normalize(target);
    size_t outer = target.rank() - 3;
    Sizes flat{math.product(ArrayRef<Size>(sizes).take_front(outer))};
    flat.append(sizes.begin() + outer, sizes.end());
    if (std::optional<StridedView> view = reshape(math, target, flat))
      return *view;
    return program.allocate(op.getLoc(), target.elementType(), flat);
  }
};

} // namespace

LogicalResult lowerAttention(HostProgram &program, Operation *op) {
  return Attention{program, cast<aten::ScaledDotProductAttentionOp>(op), program.math(op->getLoc())}
      .run();
}

} // namespace shardc::memory
