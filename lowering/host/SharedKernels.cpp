// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/SharedKernels.h"

using namespace mlir;

namespace shardc::host {

bool SharedKernels::replace(Operation *op, llvm::function_ref<func::FuncOp(ArrayRef<Type>)> build,
                            unsigned skipped) {
  OpBuilder b(op);
  SmallVector<Type> types;
  auto operands = op->getOperands().drop_front(skipped);
  for (Value operand : operands)
    if (auto memory = dyn_cast<MemRefType>(operand.getType()))
      types.push_back(exec::kernelArgumentType(memory));
    else
      types.push_back(operand.getType());
  // The attributes say which of the optional operands are there.
  NamedAttrList attributes(op->getAttrDictionary());
  // For traces alone; all ops of exec that are launched call it so.
  auto name = dyn_cast_or_null<StringAttr>(attributes.erase("name"));
  func::FuncOp &kernel =
      known[b.getArrayAttr({b.getStringAttr(op->getName().getStringRef()),
                            b.getTypeArrayAttr(types), attributes.getDictionary(b.getContext())})];
  bool isNew = !kernel;
  if (isNew) {
    kernel = build(types);
    symbols.insert(kernel);
  }
  exec::LaunchOp::create(b, op->getLoc(), kernel.getName(), operands, name);
  op->erase();
  return isNew;
}

func::FuncOp makeKernel(Location loc, StringRef name, ArrayRef<Type> arguments, unsigned results) {
  Builder builder(loc.getContext());
  auto kernel = func::FuncOp::create(loc, name, builder.getFunctionType(arguments, {}));
  kernel.setPrivate();
  kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
  auto end = static_cast<int64_t>(arguments.size());
  SmallVector<int64_t> written;
  for (int64_t i = end - results; i < end; ++i)
    if (!llvm::is_contained(cast<MemRefType>(arguments[i]).getShape(), 0)) // else there is nothing
      written.push_back(i);
  kernel->setAttr(exec::kWritesAttr, builder.getDenseI64ArrayAttr(written));
  kernel.addEntryBlock();
  return kernel;
}

} // namespace shardc::host
