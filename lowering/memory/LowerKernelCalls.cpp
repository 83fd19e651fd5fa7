// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of kernels: results get memory, and the kernel is rewritten for the memory it is called
// with (strides are part of its types).

#include "lowering/memory/HostProgram.h"

#include "dialects/aten/Aten.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::memory {
namespace {

/// Sizes of a value inside a kernel, from those of the call's operands.
class InnerSizes {
public:
  InnerSizes(HostProgram &program, func::CallOp call, func::FuncOp kernel)
      : math(program.math(call.getLoc())) {
    for (auto [operand, argument] :
         llvm::zip_equal(call.getOperands(), kernel.getBody().front().getArguments())) {
      if (isa<RankedTensorType>(operand.getType()))
        known[argument] = program.sizesOf(operand);
      else
        scalars[argument] = program.scalars.lookup(operand);
    }
  }

  FailureOr<Sizes> of(Value value) {
    auto it = known.find(value);
    if (it != known.end())
      return it->second;
    bool complete = true;
    Operation *op = value.getDefiningOp();
    FailureOr<Sizes> sizes = inferSizes(
        math, op, cast<OpResult>(value).getResultNumber(),
        [&](Value operand) {
          FailureOr<Sizes> inner = of(operand);
          complete &= succeeded(inner);
          return succeeded(inner)
                     ? *inner
                     : Sizes(cast<RankedTensorType>(operand.getType()).getRank(), math.constant(1));
        },
        [&](Value index) { return scalars.lookup(index); });
    if (!complete)
      return failure();
    if (succeeded(sizes))
      known[value] = *sizes;
    return sizes;
  }

private:
  IndexMath math;
  llvm::DenseMap<Value, Sizes> known;
  llvm::DenseMap<Value, Value> scalars;
};

Value castTo(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(builder, loc, type, value).getResult(0);
}

/// Whether a kernel without elements to compute looks at positions all the same, and fails where
/// they are out of range, as PyTorch does.
bool checksPositions(func::FuncOp kernel) {
  auto hasElements = [](Value value) {
    return !llvm::is_contained(cast<RankedTensorType>(value.getType()).getShape(), 0);
  };
  bool found = false;
  for (Operation &op : kernel.getOps())
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](aten::EmbeddingOp lookup) { found |= hasElements(lookup.getIndices()); })
        .Case([&](aten::IndexSelectOp lookup) { found |= hasElements(lookup.getIndex()); })
        .Case([&](aten::IndexOp lookup) {
          ArrayRef<int64_t> table = cast<RankedTensorType>(lookup.getSelf().getType()).getShape();
          found |=
              llvm::any_of(lookup.getIndicesAt(), [&](int64_t dim) { return table[dim] == 0; }) &&
              llvm::all_of(lookup.getIndices(), hasElements);
        });
  return found;
}

/// From tensors in and out to memrefs of these types, results last.
void rewriteKernel(func::FuncOp kernel, ArrayRef<Type> types) {
  Block &block = kernel.getBody().front();
  Location loc = kernel.getLoc();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  unsigned count = block.getNumArguments();
  for (unsigned i = 0; i < count; ++i) {
    BlockArgument argument = block.getArgument(i);
    Type tensor = argument.getType();
    if (!isa<RankedTensorType>(tensor))
      continue;
    argument.setType(types[i]);
    auto memref = cast<MemRefType>(types[i]);
    auto read = bufferization::ToTensorOp::create(
        builder, loc, RankedTensorType::get(memref.getShape(), memref.getElementType()), argument,
        /*restrict=*/true);
    // Sizes of memory that folding found are sizes of the tensor.
    SmallVector<int64_t> shape(cast<RankedTensorType>(tensor).getShape());
    for (auto [size, known] : llvm::zip_equal(shape, memref.getShape()))
      size = ShapedType::isDynamic(size) ? known : size;
    Value value = castTo(builder, loc, read.getResult(),
                         cast<RankedTensorType>(tensor).clone(ArrayRef(shape)));
    argument.replaceUsesWithIf(value, [&](OpOperand &use) { return use.getOwner() != read; });
  }
  for (Operation &op : block)
    (void)aten::inferAndSetTypes(&op); // they were right, and become more exact
  Operation *terminator = block.getTerminator();
  builder.setInsertionPoint(terminator);
  bool checks = checksPositions(kernel);
  SmallVector<int64_t> written;
  for (auto [i, result] : llvm::enumerate(terminator->getOperands())) {
    Value target = block.addArgument(types[count + i], loc);
    // On this rank. What has no elements keeps its op if that checks positions.
    bool isEmpty = llvm::is_contained(cast<MemRefType>(types[count + i]).getShape(), 0);
    if (isEmpty && !checks)
      continue;
    if (!isEmpty)
      written.push_back(count + i);
    auto type = cast<MemRefType>(target.getType());
    Value stored =
        castTo(builder, loc, result, RankedTensorType::get(type.getShape(), type.getElementType()));
    bufferization::MaterializeInDestinationOp::create(builder, loc, Type(), stored, target,
                                                      /*restrict=*/true, /*writable=*/true);
  }
  terminator->setOperands({});
  kernel.setType(builder.getFunctionType(types, {}));
  kernel->setAttr(exec::kWritesAttr, builder.getDenseI64ArrayAttr(written));
}

} // namespace

LogicalResult lowerKernelCall(HostProgram &program, func::CallOp call) {
  auto kernel = program.symbols.lookup<func::FuncOp>(call.getCallee());
  if (!kernel || !kernel->hasAttr(exec::kKernelAttr))
    return call.emitOpError("calls a function that is no kernel");
  IndexMath math = program.math(call.getLoc());
  SmallVector<Value> operands;
  for (Value operand : call.getOperands())
    operands.push_back(isa<RankedTensorType>(operand.getType())
                           ? toMemref(math, program.view(operand))
                           : program.scalars.lookup(operand));
  InnerSizes inner(program, call, kernel);
  bool computes = false;
  for (auto [result, returned] : llvm::zip_equal(
           call.getResults(), kernel.getBody().front().getTerminator()->getOperands())) {
    FailureOr<Sizes> sizes = inner.of(returned);
    if (failed(sizes))
      return failure();
    StridedView target = program.destination(result, *sizes, /*mustBeDense=*/false);
    operands.push_back(toMemref(math, target));
    program.views[result] = target;
    computes |= !hasNoElements(target.sizes);
  }
  // On a rank whose shard is empty there is nothing to compute.
  if (!computes && !checksPositions(kernel)) {
    program.symbols.erase(kernel);
    return success();
  }
  SmallVector<Type> types;
  for (Value operand : operands) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    types.push_back(memref ? Type(exec::kernelArgumentType(memref)) : operand.getType());
  }
  rewriteKernel(kernel, types);
  auto name = call->getAttrOfType<StringAttr>(exec::kNameAttr);
  program.launch(call.getLoc(), kernel, operands,
                 name ? name.getValue() : StringRef(kernel.getName()));
  return success();
}

} // namespace shardc::memory
