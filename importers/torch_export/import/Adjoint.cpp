// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Adjoint.h"

#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/SumTo.h"
#include "dialects/interfaces/DifferentiableOpInterface.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// One op, whose first result has a cotangent.
class OneOp final : public GradientContext {
public:
  OneOp(Call &call, Operation *forward, Value cotangent, ArrayRef<bool> wanted)
      : call(call), forward(forward), given(cotangent), wanted(wanted),
        cotangents(forward->getNumOperands()) {}

  Value cotangent(unsigned result) override { return result == 0 ? given : Value(); }
  bool isNeeded(unsigned operand) const override {
    return operand < wanted.size() && wanted[operand];
  }
  void add(unsigned operand, Value cotangent) override {
    if (!cotangent || !isNeeded(operand))
      return;
    Emitter emit(call.builder, call.loc);
    cotangent = sumTo(emit, cotangent, aten::typeOf(forward->getOperand(operand)));
    Value &sum = cotangents[operand];
    sum = sum ? emit.add(sum, cotangent) : cotangent;
  }
  Location getLoc() const override { return call.loc; }
  InFlightDiagnostic refuse() override {
    InFlightDiagnostic error = call.error();
    error << "the derivative of '" << forward->getName() << "' ";
    return error;
  }

  Call &call;
  Operation *forward;
  Value given;
  ArrayRef<bool> wanted;
  SmallVector<Value> cotangents;
};

} // namespace

FailureOr<SmallVector<Value>> buildAdjoint(Call &call, Operation *forward, Value cotangent,
                                           ArrayRef<bool> wanted) {
  auto differentiable = dyn_cast<DifferentiableOpInterface>(forward);
  if (!differentiable)
    return call.error() << "'" << forward->getName() << "' has no derivative";
  OneOp context(call, forward, cotangent, wanted);
  if (failed(differentiable.differentiate(call.builder, context)))
    return failure();
  if (forward->use_empty())
    forward->erase();
  return std::move(context.cotangents);
}

FailureOr<OutputMask> OutputMask::of(Call &call, unsigned count) {
  FailureOr<SmallVector<bool>> given = call.booleans("output_mask");
  if (failed(given))
    return failure();
  OutputMask mask;
  mask.given = std::move(*given);
  if (mask.given.size() != count)
    return call.error() << "the argument 'output_mask' has " << mask.given.size()
                        << " entries, not " << count;
  if (static_cast<size_t>(llvm::count(mask.given, true)) != call.results.size())
    return call.error() << "the argument 'output_mask' asks for " << llvm::count(mask.given, true)
                        << " results, but the program names " << call.results.size();
  return mask;
}

OutputMask OutputMask::all(unsigned count) {
  OutputMask mask;
  mask.given.assign(count, true);
  return mask;
}

unsigned OutputMask::resultOf(unsigned i) const {
  return static_cast<unsigned>(llvm::count(ArrayRef(given).take_front(i), true));
}

Results OutputMask::results(ArrayRef<Value> cotangents) const {
  Results results;
  for (auto [isGiven, value] : llvm::zip_equal(given, cotangents))
    if (isGiven)
      results.push_back(value);
  return results;
}

FailureOr<SmallVector<Value>> cotangentsOf(Call &call, Operation *forward, Value cotangent,
                                           ArrayRef<unsigned> operands, const OutputMask &mask) {
  SmallVector<bool> wanted(forward->getNumOperands(), false);
  for (auto [i, operand] : llvm::enumerate(operands))
    if (operand != kNoOperand && mask.wants(call, i))
      wanted[operand] = true;
  FailureOr<SmallVector<Value>> ofOperands = buildAdjoint(call, forward, cotangent, wanted);
  if (failed(ofOperands))
    return failure();
  SmallVector<Value> cotangents(operands.size());
  for (auto [i, operand] : llvm::enumerate(operands)) {
    if (operand == kNoOperand || !wanted[operand])
      continue;
    cotangents[i] = (*ofOperands)[operand];
    if (cotangents[i])
      continue;
    unsigned result = mask.resultOf(i);
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes(result);
    if (failed(sizes))
      return failure();
    cotangents[i] = Emitter(call.builder, call.loc).zeros(*sizes, call.resultElementType(result));
  }
  return cotangents;
}

FailureOr<Results> adjointOf(Call &call, Operation *forward, Value cotangent,
                             ArrayRef<unsigned> operands) {
  return cotangentsOf(call, forward, cotangent, operands, OutputMask::all(operands.size()));
}

FailureOr<Results> buildBackward(Call &call, StringRef name) {
  static constexpr llvm::StringLiteral notInForward[] = {"grad_output", "grad", "indices"};
  FailureOr<Value> cotangent = call.tensor(call.schema.find("grad") ? "grad" : "grad_output");
  FailureOr<Results> forward = buildByName(call, name, {.given = {}, .unread = notInForward});
  if (failed(cotangent) || failed(forward))
    return failure();
  return adjointOf(call, forward->front().getDefiningOp(), *cotangent, {0});
}

} // namespace shardc::torch_export
