// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention and its backward: operands as strided [batch, heads, rows, columns].

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/exec/Exec.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace shardc::memory {
namespace {

template <typename OpT> struct Attention {
  HostProgram &program;
  OpT op;
  IndexMath math;

  Attention(HostProgram &program, OpT op)
      : program(program), op(op), math(program.math(op.getLoc())) {}

  /// The sizes with all dims before the heads as one; `last`: dims behind the heads.
  Sizes flatten(ArrayRef<Size> sizes, size_t last) {
    size_t outer = sizes.size() - last - 1;
    Sizes flat{math.product(sizes.take_front(outer))};
    flat.append(sizes.begin() + outer, sizes.end());
    return flat;
  }

  /// [batch, heads, ...]; a copy where strides cannot express it.
  StridedView normalize(StridedView view, size_t last = 2) {
    while (view.rank() < last + 2)
      view = insertDim(math, view, 0);
    if (view.rank() == last + 2)
      return view;
    return program.reshaped(op.getLoc(), view, flatten(view.sizes, last));
  }

  Value memory(const StridedView &view) { return toMemref(math, view); }
  Value memoryOf(Value tensor, size_t last = 2) {
    return memory(normalize(program.view(tensor), last));
  }

  /// The query with all dims that the first result has in front of its last two: key and value may
  /// have more of them.
  StridedView wholeQuery() {
    StridedView query = program.view(op.getQuery());
    Sizes whole = targets.front().sizes;
    whole.back() = query.sizes.back();
    return broadcast(math, query, whole);
  }

  /// Key or value with the query's dims in front of its last two; with grouped queries heads are
  /// left alone.
  Value memoryLikeQuery(Value tensor) {
    StridedView view = program.view(tensor), query = wholeQuery();
    Sizes sizes = query.sizes;
    size_t own = op.getEnableGqa() ? 3 : 2;
    if (view.rank() < own || query.rank() < own)
      return memory(normalize(view));
    for (size_t i = 1; i <= own; ++i)
      sizes[sizes.size() - i] = view.sizes[view.rank() - i];
    return memory(normalize(broadcast(math, view, sizes)));
  }

  Value maskMemory() {
    Value mask = op.getAttnMask();
    if (!mask)
      return {};
    Sizes all = wholeQuery().sizes;
    all.back() = program.view(op.getKey()).sizes.end()[-2];
    return memory(normalize(broadcast(math, program.view(mask), all)));
  }

  /// Null where the first query is at the first key.
  Value firstQuery() {
    if (Value first = op.getFirst())
      return program.scalars.lookup(first);
    auto known = static_cast<int64_t>(op.getStaticFirst());
    return known == 0 ? Value() : math.constantValue(known);
  }

  FailureOr<llvm::APFloat> scale() {
    if (std::optional<llvm::APFloat> scale = op.getScale())
      return *scale;
    std::optional<int64_t> depth = getConstantIntValue(program.view(op.getQuery()).sizes.back());
    if (!depth)
      return op.emitOpError("needs 'scale' where the size of a head is symbolic");
    return llvm::APFloat(*depth == 0 ? 0 : 1 / std::sqrt(static_cast<double>(*depth)));
  }

  /// Where a result goes: its own memory as [batch, heads, ...], or other memory to copy from when
  /// the op has run.
  struct Target {
    StridedView target, place;
    Sizes sizes;
  };
  std::vector<Target> targets;

  /// Fails where the sizes are not known; all results get views.
  LogicalResult placeResults(ArrayRef<size_t> last) {
    for (auto [i, dims] : llvm::enumerate(last)) {
      Value result = op->getResult(i);
      FailureOr<Sizes> sizes = program.resultSizes(op, i);
      if (failed(sizes))
        return failure();
      Target &made = targets.emplace_back();
      made.sizes = *sizes;
      made.target = program.destination(result, *sizes, /*mustBeDense=*/false);
      program.views[result] = made.target;
    }
    return success();
  }
  bool hasNothingToDo() const {
    return llvm::all_of(targets, [](const Target &made) { return hasNoElements(made.sizes); });
  }
  Value resultMemory(unsigned result, size_t last = 2) {
    Target &made = targets[result];
    made.place = placeOf(made, last);
    return memory(made.place);
  }
  StridedView placeOf(const Target &made, size_t last) {
    if (made.target.rank() <= last + 2)
      return normalize(made.target, last);
    Sizes flat = flatten(made.sizes, last);
    if (std::optional<StridedView> view = reshape(math, made.target, flat))
      return *view;
    return program.allocate(op.getLoc(), made.target.elementType(), flat);
  }
  void copyToTargets() {
    for (const Target &made : targets)
      if (made.place.base != made.target.base)
        program.copy(op.getLoc(), denseView(math, made.place.base, made.sizes), made.target);
  }

  bool isPartial() {
    if constexpr (!std::is_same_v<OpT, aten::ScaledDotProductAttentionOp>)
      return op.getPartial();
    return false;
  }

  LogicalResult check() {
    if (op.getDropoutP().isZero())
      return success();
    return op.emitOpError("has dropout, which inference does not: export the model in eval mode");
  }

  LogicalResult runForward() {
    FailureOr<llvm::APFloat> factor = scale();
    bool hasSums = op->getNumResults() == 2;
    if (failed(check()) || failed(factor) ||
        failed(placeResults(hasSums ? ArrayRef<size_t>{2, 1} : ArrayRef<size_t>{2})))
      return failure();
    if (hasNothingToDo())
      return success();
    Value query = memory(normalize(wholeQuery())), key = memoryLikeQuery(op.getKey()),
          value = memoryLikeQuery(op.getValue()), mask = maskMemory();
    Value out = resultMemory(0), sums = hasSums ? resultMemory(1, /*last=*/1) : Value();
    OpBuilder &b = program.builder;
    exec::AttentionOp::create(b, op.getLoc(), query, key, value, mask, firstQuery(), out, sums,
                              op.getIsCausal(), isPartial(), *factor, b.getStringAttr("attention"));
    copyToTargets();
    return success();
  }

  LogicalResult runBackward() {
    FailureOr<llvm::APFloat> factor = scale();
    if (failed(check()) || failed(factor) || failed(placeResults({2, 2, 2})))
      return failure();
    if (hasNothingToDo())
      return success();
    Value operands[] = {memoryOf(op.getGradOut()),    memoryOf(op.getQuery()),
                        memoryLikeQuery(op.getKey()), memoryLikeQuery(op.getValue()),
                        memoryOf(op.getOut()),        memoryOf(op.getLogsumexp(), /*last=*/1)};
    Value mask = maskMemory();
    Value results[] = {resultMemory(0), resultMemory(1), resultMemory(2)};
    OpBuilder &b = program.builder;
    exec::AttentionBackwardOp::create(b, op.getLoc(), operands[0], operands[1], operands[2],
                                      operands[3], operands[4], operands[5], mask, firstQuery(),
                                      results[0], results[1], results[2], op.getIsCausal(),
                                      isPartial(), *factor, b.getStringAttr("attention_backward"));
    copyToTargets();
    return success();
  }
};

} // namespace

LogicalResult lowerAttention(HostProgram &program, Operation *op) {
  using Forward = aten::ScaledDotProductAttentionOp;
  using WithSums = aten::ScaledDotProductFlashAttentionOp;
  using Backward = aten::ScaledDotProductFlashAttentionBackwardOp;
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<Forward>([&](auto op) { return Attention<Forward>(program, op).runForward(); })
      .Case<WithSums>([&](auto op) { return Attention<WithSums>(program, op).runForward(); })
      .Case<Backward>([&](auto op) { return Attention<Backward>(program, op).runBackward(); })
      .Default([](Operation *op) { return op->emitOpError("has no lowering as attention"); });
}

} // namespace shardc::memory
