// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/HostProgram.h"

#include "lowering/memory/CopyKernel.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/SizeSigns.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/Iteration.h"
#include "lowering/linalg/ScalarBuilder.h"

using namespace mlir;

namespace shardc::memory {

FailureOr<Sizes> HostProgram::resultSizes(Operation *op, unsigned result) {
  return inferSizes(
      math(op->getLoc()), op, result, [&](Value tensor) { return sizesOf(tensor); },
      [&](Value index) { return scalars.lookup(index); });
}

Value HostProgram::extent(Location loc, dist::ExtentsAttr extents) {
  OpBuilder detached(builder.getContext());
  OwningOpRef<dist::ExtentOp> op = dist::ExtentOp::create(detached, loc, extents);
  Value value = indices.clone(builder, *op, {});
  if (!dist::mayBeNegative(extents))
    indices.noteNonNegative(value);
  return value;
}

StridedView HostProgram::allocate(Location loc, Type element, const Sizes &sizes) {
  IndexMath index = math(loc);
  SmallVector<Value> dynamic;
  for (Size size : sizes)
    if (!getConstantIntValue(size))
      dynamic.push_back(cast<Value>(size));
  auto type = MemRefType::get(staticSizes(sizes), storageType(element));
  Value buffer = exec::AllocOp::create(builder, loc, type, dynamic, IntegerAttr(), IntegerAttr());
  return denseView(index, buffer, sizes);
}

namespace {

/// Views that keep the number of dims and move none.
bool isIdentityView(Operation *op) {
  std::optional<ViewKind> kind = viewKindOf(op);
  if (kind == ViewKind::Reshape || kind == ViewKind::Expansion)
    return op->getResult(0).getType() == op->getOperand(0).getType();
  return kind == ViewKind::Alias || kind == ViewKind::Copy;
}

/// If all that reads a value permutes its dims in one way, and then needs it dense: that way. The
/// value is then best computed in that order.
std::optional<SmallVector<int64_t>> preferredOrder(Value tensor) {
  std::optional<SmallVector<int64_t>> order;
  bool needsDense = false;
  SmallVector<Value> work{tensor};
  while (!work.empty()) {
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (isIdentityView(user)) {
        work.push_back(user->getResult(0));
        continue;
      }
      std::optional<SmallVector<int64_t>> dims = permutationOf(user);
      if (!dims || (order && *order != *dims))
        return std::nullopt;
      order = dims;
      needsDense |= llvm::any_of(user->getUsers(), [](Operation *next) {
        return isa<aten::ViewOp>(next) || classify(next) == OpClass::Gemm ||
               classify(next) == OpClass::Call || classify(next) == OpClass::Collective;
      });
    }
  }
  return needsDense ? order : std::nullopt;
}

} // namespace

StridedView HostProgram::destination(Value tensor, const Sizes &sizes, bool mustBeDense) {
  Location loc = tensor.getLoc();
  Type element = aten::elementTypeOf(tensor);
  auto wish = wishes.find(tensor);
  if (wish != wishes.end() && wish->second.output >= 0)
    return denseView(math(loc), outputs[wish->second.output], sizes);
  if (wish != wishes.end() && wish->second.concat && !mustBeDense)
    return concatPart(wish->second.concat, wish->second.part);
  std::optional<SmallVector<int64_t>> order;
  if (!mustBeDense)
    order = preferredOrder(tensor);
  if (!order)
    return allocate(loc, element, sizes);
  Sizes physical;
  for (int64_t dim : *order)
    physical.push_back(sizes[dim]);
  StridedView buffer = allocate(loc, element, physical);
  SmallVector<int64_t> inverse(order->size());
  for (auto [position, dim] : llvm::enumerate(*order))
    inverse[dim] = position;
  return permute(buffer, inverse);
}

void HostProgram::launch(Location loc, func::FuncOp kernel, ArrayRef<Value> operands,
                         StringRef name) {
  exec::LaunchOp::create(builder, loc, kernel.getName(), operands, builder.getStringAttr(name));
}

void HostProgram::copy(Location loc, const StridedView &from, const StridedView &to) {
  if (hasNoElements(to.sizes))
    return;
  IndexMath index = math(loc);
  launchCopy(builder, loc, symbols, toMemref(index, from), toMemref(index, to));
}

StridedView HostProgram::reshaped(Location loc, const StridedView &view, const Sizes &sizes) {
  IndexMath index = math(loc);
  if (std::optional<StridedView> result = reshape(index, view, sizes))
    return *result;
  StridedView buffer = allocate(loc, view.elementType(), view.sizes);
  copy(loc, view, buffer);
  return denseView(index, buffer.base, sizes);
}

StridedView HostProgram::dense(Location loc, const StridedView &view) {
  IndexMath index = math(loc);
  if (isDense(index, view))
    return view;
  StridedView result = allocate(loc, view.elementType(), view.sizes);
  copy(loc, view, result);
  return result;
}

} // namespace shardc::memory
