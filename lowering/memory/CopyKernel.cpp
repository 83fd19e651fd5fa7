// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/CopyKernel.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

void shardc::memory::launchCopy(OpBuilder &builder, Location loc, SymbolTable &symbols, Value from,
                                Value to) {
  Value operands[] = {from, to};
  SmallVector<Type> types;
  for (Value operand : operands)
    types.push_back(exec::kernelArgumentType(cast<MemRefType>(operand.getType())));
  auto kernel = func::FuncOp::create(loc, "copy", builder.getFunctionType(types, {}));
  kernel.setPrivate();
  kernel->setAttr(exec::kKernelAttr, builder.getUnitAttr());
  kernel->setAttr(exec::kWritesAttr, builder.getDenseI64ArrayAttr(1));
  Block *entry = kernel.addEntryBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(entry);
  auto sourceType = cast<MemRefType>(types[0]);
  Value tensor = bufferization::ToTensorOp::create(
      inner, loc, RankedTensorType::get(sourceType.getShape(), sourceType.getElementType()),
      entry->getArgument(0), /*restrict=*/true);
  bufferization::MaterializeInDestinationOp::create(inner, loc, Type(), tensor,
                                                    entry->getArgument(1), /*restrict=*/true,
                                                    /*writable=*/true);
  func::ReturnOp::create(inner, loc);
  symbols.insert(kernel);
  exec::LaunchOp::create(builder, loc, kernel.getName(), operands, builder.getStringAttr("copy"));
}
