// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of functions that users have registered: the run fills a shardrt_op_call on its stack.

#include "dialects/exec/CustomOps.h"
#include "dialects/exec/ElementTypes.h"
#include "lowering/host/EmitPattern.h"

#include "runtime/abi/shardrt_program.h"

#include "dialects/interfaces/ModelLocation.h"

#include <cstddef>

using namespace mlir;

namespace shardc::host {
namespace {

/// What an attribute of `arguments` is as data.
struct ArgumentData {
  int32_t kind = 0;
  SmallVector<int64_t> numbers; ///< reals as their bits
  std::string text;

  void addReal(const APFloat &value) {
    double real = value.convertToDouble();
    numbers.push_back(llvm::bit_cast<int64_t>(real));
  }

  static std::optional<ArgumentData> of(Attribute attribute) {
    ArgumentData data;
    if (auto text = dyn_cast<StringAttr>(attribute)) {
      data.kind = SHARDRT_OP_TEXT;
      data.text = text.getValue();
    } else if (auto real = dyn_cast<FloatAttr>(attribute)) {
      data.kind = SHARDRT_OP_REALS;
      data.addReal(real.getValue());
    } else if (auto integer = dyn_cast<IntegerAttr>(attribute)) {
      data.kind = SHARDRT_OP_INTEGERS;
      bool isBool = integer.getType().isInteger(1);
      data.numbers.push_back(isBool ? integer.getValue().getZExtValue()
                                    : integer.getValue().getSExtValue());
    } else if (auto integers = dyn_cast<DenseI64ArrayAttr>(attribute)) {
      data.kind = SHARDRT_OP_INTEGERS;
      llvm::append_range(data.numbers, integers.asArrayRef());
    } else if (auto reals = dyn_cast<DenseF64ArrayAttr>(attribute)) {
      data.kind = SHARDRT_OP_REALS;
      for (double value : reals.asArrayRef())
        data.numbers.push_back(llvm::bit_cast<int64_t>(value));
    } else if (auto list = dyn_cast<ArrayAttr>(attribute);
               list && llvm::all_of(list, llvm::IsaPred<IntegerAttr>)) {
      data.kind = SHARDRT_OP_INTEGERS;
      for (auto integer : list.getAsRange<IntegerAttr>())
        data.numbers.push_back(integer.getValue().getZExtValue());
    } else {
      return std::nullopt;
    }
    return data;
  }

  int64_t count() const {
    return static_cast<int64_t>(kind == SHARDRT_OP_TEXT ? text.size() : numbers.size());
  }
};

struct LowerCallSymbol : EmitPattern<exec::CallSymbolOp> {
  using EmitPattern::EmitPattern;

  LogicalResult matchAndRewrite(exec::CallSymbolOp op, OpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    emission.mark(b, op);
    Value call = emission.parts.argument(b, op, sizeof(shardrt_op_call));
    size_t inputs = op.getInputs().size(), outputs = op.getOutputs().size();
    SmallVector<Value> memory(op.getOperands()), pointers(adaptor.getInputs());
    llvm::append_range(pointers, adaptor.getOutputs());
    FailureOr<Value> tensors = describeTensors(op, memory, pointers, b);
    if (failed(tensors))
      return b.notifyMatchFailure(op, "has an operand of unknown shape");
    FailureOr<Value> arguments = describeArguments(op, b);
    if (failed(arguments))
      return failure();
    auto store = [&](Value value, size_t field) { abi::storeField(b, loc, value, call, field); };
    auto count = [&](size_t number) {
      return constantInt(b, loc, static_cast<int64_t>(number), 32);
    };
    store(emission.pool.string(b, loc, op.getName().value_or(op.getSymbol())),
          offsetof(shardrt_op_call, name));
    store(emission.pool.string(b, loc, describePlace(loc)), offsetof(shardrt_op_call, location));
    store(*tensors, offsetof(shardrt_op_call, inputs));
    store(at(b, loc, *tensors, inputs * sizeof(shardrt_op_tensor)),
          offsetof(shardrt_op_call, outputs));
    store(*arguments, offsetof(shardrt_op_call, arguments));
    store(count(inputs), offsetof(shardrt_op_call, n_inputs));
    store(count(outputs), offsetof(shardrt_op_call, n_outputs));
    store(count(op.getArguments().value_or(b.getDictionaryAttr({})).size()),
          offsetof(shardrt_op_call, n_arguments));
    FailureOr<Value> function = addressOf(op, b);
    if (failed(function))
      return failure();
    emission.returnIfFailed(b, op, abi::callOp(b, loc, emission.frame(op), call, *function));
    b.eraseOp(op);
    return success();
  }

private:
  static Value at(OpBuilder &b, Location loc, Value base, size_t bytes) {
    return LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
  }

  /// The function of the user's library, which the linker finds.
  static FailureOr<Value> addressOf(exec::CallSymbolOp op, OpBuilder &b) {
    auto module = op->getParentOfType<ModuleOp>();
    auto type = LLVM::LLVMFunctionType::get(b.getI32Type(), {pointerType(b.getContext())});
    if (Operation *known = module.lookupSymbol(op.getSymbol())) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(known);
      if (!function || !function.isExternal() || function.getFunctionType() != type)
        return op.emitOpError("calls '")
               << op.getSymbol() << "', which is a name of the program's own: give the function "
               << "another name";
    } else {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(module.getBody());
      LLVM::LLVMFuncOp::create(b, module.getLoc(), op.getSymbol(), type);
    }
    return Value(
        LLVM::AddressOfOp::create(b, op.getLoc(), pointerType(b.getContext()), op.getSymbol()));
  }

  FailureOr<Value> describeTensors(exec::CallSymbolOp op, ValueRange memory, ValueRange pointers,
                                   ConversionPatternRewriter &b) const {
    Location loc = op.getLoc();
    Value list = stackSlot(
        b, loc, op,
        static_cast<int64_t>(std::max<size_t>(memory.size(), 1) * sizeof(shardrt_op_tensor)));
    for (auto [i, buffer, pointer] : llvm::enumerate(memory, pointers)) {
      FailureOr<BufferShape> shape = BufferShape::of(buffer, b);
      if (failed(shape))
        return failure();
      size_t begin = i * sizeof(shardrt_op_tensor);
      auto store = [&](Value value, size_t field) {
        abi::storeField(b, loc, value, list, begin + field);
      };
      store(pointer, offsetof(shardrt_op_tensor, data));
      store(describeSizes(op, *shape, b), offsetof(shardrt_op_tensor, sizes));
      store(constantInt(b, loc, static_cast<int64_t>(shape->sizes.size()), 32),
            offsetof(shardrt_op_tensor, rank));
      Type element = cast<TypeAttr>(op.getTypes()[i]).getValue();
      store(constantInt(b, loc, exec::runtimeType(element), 32), offsetof(shardrt_op_tensor, type));
    }
    return list;
  }

  /// Known ones are constants of the program.
  Value describeSizes(exec::CallSymbolOp op, const BufferShape &shape, OpBuilder &b) const {
    Location loc = op.getLoc();
    if (shape.dynamicSizes.empty())
      return emission.pool.integers(b, loc, shape.sizes);
    Value sizes = stackSlot(b, loc, op, static_cast<int64_t>(shape.sizes.size() * sizeof(int64_t)));
    for (unsigned dim = 0; dim < shape.sizes.size(); ++dim)
      abi::storeField(b, loc, valueOf(b, loc, shape.size(b, dim)), sizes, dim * sizeof(int64_t));
    return sizes;
  }

  FailureOr<Value> describeArguments(exec::CallSymbolOp op, OpBuilder &b) const {
    Location loc = op.getLoc();
    DictionaryAttr arguments = op.getArguments().value_or(b.getDictionaryAttr({}));
    Value list = stackSlot(
        b, loc, op,
        static_cast<int64_t>(std::max<size_t>(arguments.size(), 1) * sizeof(shardrt_op_argument)));
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      std::optional<ArgumentData> data = ArgumentData::of(argument.getValue());
      if (!data)
        return op.emitOpError("has the argument '")
               << argument.getName().getValue() << "' of " << argument.getValue()
               << ", which functions in C cannot have";
      size_t begin = i * sizeof(shardrt_op_argument);
      auto store = [&](Value value, size_t field) {
        abi::storeField(b, loc, value, list, begin + field);
      };
      store(emission.pool.string(b, loc, argument.getName()), offsetof(shardrt_op_argument, name));
      store(data->kind == SHARDRT_OP_TEXT ? emission.pool.string(b, loc, data->text)
                                          : emission.pool.integers(b, loc, data->numbers),
            offsetof(shardrt_op_argument, values));
      store(constantInt(b, loc, data->count()), offsetof(shardrt_op_argument, count));
      store(constantInt(b, loc, data->kind, 32), offsetof(shardrt_op_argument, kind));
    }
    return list;
  }
};

} // namespace

void populateCustomOpPatterns(const Emission &emission, RewritePatternSet &patterns) {
  patterns.add<LowerCallSymbol>(emission);
}

} // namespace shardc::host
