// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/HostProgram.h"
#include "lowering/memory/Passes.h"
#include "lowering/memory/SizeEstimator.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/dist/SignatureAttributes.h"
#include "dialects/dist/StateArguments.h"
#include "dialects/exec/Exec.h"
#include "lowering/linalg/Iteration.h"
#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace shardc::memory {
#define GEN_PASS_DEF_ASSIGNBUFFERS
#include "lowering/memory/Passes.h.inc"
} // namespace shardc::memory

using namespace mlir;
using namespace shardc;
using namespace shardc::memory;

namespace {

RankedTensorType tensorOf(Type type) { return dist::getDeliveredType(type); }

class EntryLowering {
public:
  EntryLowering(func::FuncOp source, SymbolTable &symbols) : program(source, symbols) {}

  LogicalResult run();

private:
  FailureOr<func::FuncOp> makeFunction();
  ArrayAttr argumentExtents(unsigned argument);
  LogicalResult placeInputs(func::FuncOp target);
  FailureOr<Sizes> argumentSizes(unsigned argument);
  LogicalResult lower(Operation *op);
  void lowerScalar(Operation *op);
  void readSizes(dist::ReadSizesOp op);
  void returnResults(func::ReturnOp op);

  HostProgram program;
};

MemRefType denseType(RankedTensorType type) {
  return MemRefType::get(type.getShape(), storageType(type.getElementType()));
}

/// How large a dim of an argument is, by the sizes of the whole tensor and its layout.
dist::ExtentsAttr extentsOf(Attribute globalSize, dist::LayoutAttr layout, unsigned dim) {
  auto symbolic = cast<dist::SizeAttr>(globalSize);
  return layout ? dist::ExtentsAttr::get(symbolic, layout, dim) : dist::ExtentsAttr::get(symbolic);
}

/// Of an argument, or of a result, which follow as arguments; null where all dims are static or
/// their sizes are not written down.
ArrayAttr EntryLowering::argumentExtents(unsigned argument) {
  func::FuncOp source = program.source;
  unsigned count = source.getNumArguments();
  bool isResult = argument >= count;
  RankedTensorType type = tensorOf(isResult ? source.getResultTypes()[argument - count]
                                            : source.getArgumentTypes()[argument]);
  auto attribute = [&](StringRef name) {
    return isResult ? source.getResultAttr(argument - count, name)
                    : source.getArgAttr(argument, name);
  };
  if (type.hasStaticShape())
    return nullptr;
  auto global = dyn_cast_or_null<ArrayAttr>(attribute(dist::kSizesAttr));
  if (auto whole = dyn_cast_or_null<TypeAttr>(attribute(dist::kGlobalTypeAttr)); !global && whole) {
    auto tensor = dyn_cast<RankedTensorType>(whole.getValue());
    if (tensor && tensor.hasStaticShape())
      global = program.builder.getArrayAttr(
          llvm::map_to_vector(tensor.getShape(), [&](int64_t size) -> Attribute {
            return dist::SizeAttr::get(tensor.getContext(), size);
          }));
  }
  if (!global)
    return nullptr;
  auto layout = dyn_cast_or_null<dist::LayoutAttr>(attribute(dist::kLayoutAttr));
  SmallVector<Attribute> extents;
  for (auto [dim, size] : llvm::enumerate(global))
    extents.push_back(extentsOf(size, layout, dim));
  return program.builder.getArrayAttr(extents);
}

FailureOr<func::FuncOp> EntryLowering::makeFunction() {
  func::FuncOp source = program.source;
  OpBuilder &builder = program.builder;
  SmallVector<Type> types;
  SmallVector<Attribute> kinds;
  auto kindAttr = [&](exec::ArgumentKind kind) {
    return exec::ArgumentKindAttr::get(builder.getContext(), kind);
  };
  for (auto [i, type] : llvm::enumerate(source.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return source.emitOpError("has an argument that is no tensor: ") << type;
    types.push_back(denseType(tensor));
    auto kind = source.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
    bool isInput = !kind || kind.getValue() == "input";
    kinds.push_back(kindAttr(isInput ? exec::ArgumentKind::Input : exec::ArgumentKind::Parameter));
  }
  for (Type type : source.getResultTypes()) {
    if (!isa<RankedTensorType, dist::FutureType>(type))
      return source.emitOpError("has a result that is no tensor: ") << type;
    types.push_back(denseType(tensorOf(type)));
    kinds.push_back(kindAttr(exec::ArgumentKind::Output));
  }
  builder.setInsertionPoint(source);
  auto target = func::FuncOp::create(builder, source.getLoc(), source.getName(),
                                     builder.getFunctionType(types, {}));
  target.setVisibility(source.getVisibility());
  target->setAttr(exec::kEntryAttr, builder.getUnitAttr());
  if (Attribute symbols = source->getAttr(dist::kSymbolsAttr))
    target->setAttr(dist::kSymbolsAttr, symbols);
  dist::SignatureAttributes signature(target);
  for (auto [i, kind] : llvm::enumerate(kinds))
    signature.argument(i).set(exec::kArgumentAttr, kind);
  for (unsigned i = 0; i < source.getNumArguments(); ++i)
    if (Attribute index = source.getArgAttr(i, exec::kIndexAttr))
      signature.argument(i).set(exec::kIndexAttr, index);
  for (unsigned i = 0; i < types.size(); ++i)
    if (ArrayAttr extents = argumentExtents(i))
      signature.argument(i).set(exec::kExtentsAttr, extents);
  for (auto [i, updated] : llvm::enumerate(dist::findStateArguments(source)))
    if (updated)
      signature.argument(source.getNumArguments() + i)
          .set(exec::kUpdatesAttr, builder.getI64IntegerAttr(*updated));
  signature.store();
  target.addEntryBlock();
  return target;
}

/// Static ones from the type, others from the argument's global sizes and layout.
FailureOr<Sizes> EntryLowering::argumentSizes(unsigned argument) {
  func::FuncOp source = program.source;
  auto type = cast<RankedTensorType>(source.getArgumentTypes()[argument]);
  IndexMath math = program.math(source.getLoc());
  auto global = source.getArgAttrOfType<ArrayAttr>(argument, dist::kSizesAttr);
  auto layout = source.getArgAttrOfType<dist::LayoutAttr>(argument, dist::kLayoutAttr);
  Sizes sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(math.constant(size));
      continue;
    }
    if (!global)
      return source.emitOpError("has an argument whose dim ")
             << dim << " is dynamic, but no '" << dist::kSizesAttr
             << "' that says its size: " << type;
    sizes.push_back(program.extent(source.getLoc(), extentsOf(global[dim], layout, dim)));
  }
  return sizes;
}

LogicalResult EntryLowering::placeInputs(func::FuncOp target) {
  func::FuncOp source = program.source;
  Block &body = target.getBody().front();
  program.builder.setInsertionPointToStart(&body);
  IndexMath math = program.math(source.getLoc());
  unsigned count = source.getNumArguments();
  for (unsigned i = 0; i < count; ++i) {
    FailureOr<Sizes> sizes = argumentSizes(i);
    if (failed(sizes))
      return failure();
    program.views[source.getArgument(i)] = denseView(math, body.getArgument(i), *sizes);
  }
  for (unsigned i = count; i < body.getNumArguments(); ++i)
    program.outputs.push_back(body.getArgument(i));
  return success();
}

void EntryLowering::readSizes(dist::ReadSizesOp op) {
  IndexMath math = program.math(op.getLoc());
  Value memory = toMemref(math, program.dense(op.getLoc(), program.view(op.getTensor())));
  auto read = exec::ReadSizesOp::create(program.builder, op.getLoc(), op.getResultTypes(), memory,
                                        op.getAtMostAttr());
  for (auto [size, result] : llvm::zip_equal(op.getSizes(), read.getSizes())) {
    program.indices.noteNonNegative(result);
    program.scalars.map(size, result);
  }
}

void EntryLowering::lowerScalar(Operation *op) {
  if (auto read = dyn_cast<dist::ReadSizesOp>(op))
    return readSizes(read);
  if (auto size = dyn_cast<aten::SymSizeOp>(op)) {
    IndexMath math = program.math(op->getLoc());
    program.scalars.map(size.getResult(),
                        math.value(program.sizesOf(size.getSelf())[size.getDim()]));
    return;
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(program.scalars.lookup(operand));
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isIndex()) {
    program.builder.clone(*op, program.scalars);
    return;
  }
  // Arithmetic goes where equal expressions are found to be equal.
  IndexMath math = program.math(op->getLoc());
  Size result;
  if (isa<arith::AddIOp>(op))
    result = math.add(operands[0], operands[1]);
  else if (isa<arith::SubIOp>(op))
    result = math.sub(operands[0], operands[1]);
  else if (isa<arith::MulIOp>(op))
    result = math.mul(operands[0], operands[1]);
  else if (isa<arith::MaxSIOp>(op))
    result = math.max(operands[0], operands[1]);
  else if (isa<arith::MinSIOp>(op))
    result = math.min(operands[0], operands[1]);
  else if (auto extent = dyn_cast<dist::ExtentOp>(op))
    result = program.extent(op->getLoc(), extent.getExtents());
  else
    result = program.indices.clone(program.builder, op, operands);
  if (isa<dist::AxisIndexOp>(op))
    program.indices.noteNonNegative(cast<Value>(result));
  program.scalars.map(op->getResult(0), math.value(result));
}

LogicalResult EntryLowering::lower(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return lowerKernelCall(program, call);
  switch (classify(op)) {
  case OpClass::View:
    return lowerView(program, op);
  case OpClass::Gemm:
    return lowerProduct(program, op);
  case OpClass::Attention:
    return lowerAttention(program, op);
  case OpClass::Scatter:
    return lowerScatter(program, op);
  case OpClass::Call:
    return lowerCustomOp(program, op);
  case OpClass::Concat:
    return lowerConcat(program, op);
  case OpClass::Collective:
    return lowerCollective(program, op);
  case OpClass::Scalar:
    lowerScalar(op);
    return success();
  default:
    return op->emitOpError("is not in a kernel: run exec-form-kernels first");
  }
}

/// Results that are not where they should be: inputs, views, values returned twice.
void EntryLowering::returnResults(func::ReturnOp op) {
  IndexMath math = program.math(op.getLoc());
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    StridedView view = program.view(operand);
    Value output = program.outputs[i];
    bool inPlace = view.base == output && isConstant(view.offset, 0) && isDense(math, view);
    if (!inPlace)
      program.copy(op.getLoc(), view, denseView(math, output, view.sizes));
  }
  func::ReturnOp::create(program.builder, op.getLoc());
}

LogicalResult EntryLowering::run() {
  FailureOr<func::FuncOp> target = makeFunction();
  if (failed(target) || failed(placeInputs(*target)))
    return failure();
  planDestinations(program);
  Block &block = program.source.getBody().front();
  for (Operation &op : block.without_terminator())
    if (failed(lower(&op)))
      return failure();
  returnResults(cast<func::ReturnOp>(block.getTerminator()));
  program.symbols.remove(program.source);
  program.source.erase();
  program.symbols.insert(*target);
  return success();
}

struct AssignBuffers : memory::impl::AssignBuffersBase<AssignBuffers> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> entries;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(exec::kKernelAttr) && !function->hasAttr(exec::kEntryAttr) &&
          !function.isDeclaration())
        entries.push_back(function);
    for (func::FuncOp entry : entries)
      if (failed(EntryLowering(entry, symbols).run()))
        return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(exec::kEntryAttr))
        continue;
      function.walk([&](exec::AllocOp) { ++buffers; });
      function.walk([&](exec::LaunchOp) { ++launches; });
    }
  }
};

} // namespace
