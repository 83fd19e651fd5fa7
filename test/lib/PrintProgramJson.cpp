// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/lib/PrintProgramJson.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

template <typename T> std::string printed(T value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  value.print(stream);
  return text;
}

/// Writes one function; values are numbered in order of definition.
class FunctionWriter {
public:
  FunctionWriter(llvm::json::OStream &json) : json(json) {}

  LogicalResult write(func::FuncOp function) {
    json.objectBegin();
    json.attribute("name", function.getName());
    json.attributeArray("args", [&] {
      for (BlockArgument arg : function.getArguments()) {
        json.objectBegin();
        json.attribute("id", number(arg));
        json.attributeBegin("type");
        write(arg.getType());
        json.attributeEnd();
        json.attributeBegin("attrs");
        write(function.getArgAttrDict(arg.getArgNumber()));
        json.attributeEnd();
        json.objectEnd();
      }
    });
    json.attributeArray("results", [&] {
      for (unsigned i = 0, e = function.getNumResults(); i < e; ++i) {
        json.objectBegin();
        json.attributeBegin("type");
        write(function.getResultTypes()[i]);
        json.attributeEnd();
        json.attributeBegin("attrs");
        write(function.getResultAttrDict(i));
        json.attributeEnd();
        json.objectEnd();
      }
    });
    LogicalResult result = success();
    json.attributeArray("ops", [&] {
      for (Operation &op : function.getBody().front())
        if (failed(write(&op)))
          result = failure();
    });
    json.objectEnd();
    return result;
  }

private:
  int64_t number(Value value) {
    return ids.try_emplace(value, static_cast<int64_t>(ids.size())).first->second;
  }

  LogicalResult write(Operation *op) {
    if (op->getNumRegions() != 0)
      return op->emitError("an op with regions cannot be written as JSON");
    json.objectBegin();
    json.attribute("name", op->getName().getStringRef());
    json.attributeArray("operands", [&] {
      for (Value operand : op->getOperands())
        json.value(number(operand));
    });
    json.attributeArray("results", [&] {
      for (Value result : op->getResults()) {
        json.objectBegin();
        json.attribute("id", number(result));
        json.attributeBegin("type");
        write(result.getType());
        json.attributeEnd();
        json.objectEnd();
      }
    });
    json.attributeBegin("attrs");
    write(op->getAttrDictionary());
    json.attributeEnd();
    json.attribute("loc", printed(op->getLoc()));
    json.objectEnd();
    return success();
  }

  void write(Type type) {
    json.objectBegin();
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor) {
      json.attribute("kind", printed(type));
    } else {
      json.attribute("kind", "tensor");
      json.attributeArray("shape", [&] {
        for (int64_t size : tensor.getShape())
          if (ShapedType::isDynamic(size))
            json.value(nullptr);
          else
            json.value(size);
      });
      json.attribute("element", printed(tensor.getElementType()));
      if (Attribute encoding = tensor.getEncoding())
        json.attribute("layout", printed(encoding));
    }
    json.objectEnd();
  }

  void write(const APFloat &value) {
    if (value.isFinite()) {
      APFloat copy = value;
      bool lossy;
      copy.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
      return json.value(copy.convertToDouble());
    }
    json.value(value.isNaN() ? "nan" : value.isNegative() ? "-inf" : "inf");
  }

  void write(IntegerType type, const APInt &value) {
    if (type.getWidth() == 1)
      return json.value(value.getBoolValue());
    json.value(type.isUnsigned() ? static_cast<int64_t>(value.getZExtValue())
                                 : value.getSExtValue());
  }

  void write(Attribute attr) {
    if (!attr) // no argument or result attributes
      return json.object([] {});
    llvm::TypeSwitch<Attribute>(attr)
        .Case([&](IntegerAttr a) {
          if (auto type = dyn_cast<IntegerType>(a.getType()))
            return write(type, a.getValue());
          json.value(a.getInt());
        })
        .Case([&](FloatAttr a) { write(a.getValue()); })
        .Case([&](StringAttr a) { json.value(a.getValue()); })
        .Case([&](UnitAttr) { json.value(true); })
        .Case([&](TypeAttr a) { write(a.getValue()); })
        .Case([&](ArrayAttr a) {
          json.array([&] {
            for (Attribute element : a)
              write(element);
          });
        })
        .Case([&](DictionaryAttr a) {
          json.object([&] {
            for (NamedAttribute entry : a) {
              json.attributeBegin(entry.getName().getValue());
              write(entry.getValue());
              json.attributeEnd();
            }
          });
        })
        .Case([&](DenseBoolArrayAttr a) { writeArray(a.asArrayRef()); })
        .Case([&](DenseI32ArrayAttr a) { writeArray(a.asArrayRef()); })
        .Case([&](DenseI64ArrayAttr a) { writeArray(a.asArrayRef()); })
        .Case([&](DenseF64ArrayAttr a) { writeArray(a.asArrayRef()); })
        .Case([&](DenseIntOrFPElementsAttr a) { writeDense(a); })
        .Default([&](Attribute a) { json.object([&] { json.attribute("attr", printed(a)); }); });
  }

  template <typename T> void writeArray(ArrayRef<T> values) {
    json.array([&] {
      for (T value : values)
        json.value(value);
    });
  }

  template <typename Range> static auto firstOf(Range &&range, size_t count) {
    return llvm::make_range(range.begin(), std::next(range.begin(), count));
  }

  void writeDense(DenseElementsAttr elements) {
    json.object([&] {
      json.attributeBegin("type");
      write(elements.getType());
      json.attributeEnd();
      // Of a splat one element stands for all, however many they are.
      size_t count = elements.isSplat() ? std::min<int64_t>(elements.getNumElements(), 1)
                                        : elements.getNumElements();
      json.attributeArray("dense", [&] {
        if (auto type = dyn_cast<IntegerType>(elements.getElementType())) {
          for (const APInt &value : firstOf(elements.getValues<APInt>(), count))
            write(type, value);
        } else if (isa<FloatType>(elements.getElementType())) {
          for (const APFloat &value : firstOf(elements.getValues<APFloat>(), count))
            write(value);
        }
      });
    });
  }

  llvm::json::OStream &json;
  llvm::DenseMap<Value, int64_t> ids;
};

struct PrintProgramJson : public PassWrapper<PrintProgramJson, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintProgramJson)

  StringRef getArgument() const final { return "test-print-program-json"; }
  StringRef getDescription() const final {
    return "Write the functions of a module to standard output as JSON";
  }

  void runOnOperation() override {
    llvm::json::OStream json(llvm::outs());
    bool failedOne = false;
    json.array([&] {
      for (auto function : getOperation().getOps<func::FuncOp>())
        if (!function.isExternal())
          failedOne |= failed(FunctionWriter(json).write(function));
    });
    llvm::outs() << "\n";
    llvm::outs().flush();
    if (failedOne)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace

void shardc::registerPrintProgramJsonPass() { PassRegistration<PrintProgramJson>(); }
