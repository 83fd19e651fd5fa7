// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/Passes.h"
#include "passes/training/PrecisionPolicy.h"

#include "dialects/aten/Emitter.h"
#include "dialects/dist/FunctionAttributes.h"
#include "importers/plan/Training.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace shardc {
#define GEN_PASS_DEF_LOWERPRECISION
#include "passes/training/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::training;

namespace {

Type elementOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getElementType() : Type();
}

bool isShort(Type element) { return element && (element.isBF16() || element.isF16()); }

/// What autocast changes the type of: floats of at most 32 bits.
bool isEligible(Value value) {
  Type element = elementOf(value.getType());
  return element && (element.isF32() || isShort(element));
}

RankedTensorType withElement(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

/// One function, from the first op to the last.
class Lowering {
public:
  Lowering(func::FuncOp function, Type shortType)
      : function(function), shortType(shortType), wideType(Float32Type::get(function.getContext())),
        builder(function.getContext()) {}

  LogicalResult run() {
    Operation *end = function.getBody().front().getTerminator();
    for (Operation &op :
         llvm::make_early_inc_range(function.getBody().front().without_terminator()))
      if (!made.contains(&op) && failed(lower(op)))
        return failure();
    for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
      if (end->getOperand(i).getType() != type)
        end->setOperand(i, castTo(end->getOperand(i), elementOf(type)));
    return success();
  }

  int64_t numShort = 0, numWide = 0;
  int64_t numCasts() const { return int64_t(made.size()); }

private:
  /// The value in another type. All that want it share a cast, which stands behind its definition:
  /// a parameter is cast once, and before it is moved to where it is used.
  Value castTo(Value value, Type element) {
    if (elementOf(value.getType()) == element)
      return value;
    Value &known = casts[{value, element}];
    if (known)
      return known;
    builder.setInsertionPointAfterValue(value);
    auto op = aten::ToCopyOp::create(builder, value.getLoc(), value, element);
    op.getResult().setType(withElement(cast<RankedTensorType>(value.getType()), element));
    made.insert(op);
    return known = op.getResult();
  }

  void castOperands(Operation &op, Type element, llvm::function_ref<bool(Value)> which) {
    for (OpOperand &operand : op.getOpOperands())
      if (which(operand.get()))
        operand.set(castTo(operand.get(), element));
  }

  LogicalResult lower(Operation &op) {
    bool hasFloats = llvm::any_of(op.getOperands(), isEligible);
    if (!hasFloats)
      return success();
    switch (precisionOf(&op)) {
    case PrecisionClass::Short:
      // As in PyTorch, f64 stays what it is, and so does what meets it.
      if (llvm::all_of(op.getOperands(), [](Value value) {
            Type element = elementOf(value.getType());
            return !element || !isa<FloatType>(element) || isEligible(value);
          })) {
        castOperands(op, shortType, isEligible);
        ++numShort;
      }
      break;
    case PrecisionClass::Wide: {
      auto isShortValue = [](Value value) { return isShort(elementOf(value.getType())); };
      numWide += llvm::any_of(op.getOperands(), isShortValue);
      castOperands(op, wideType, isShortValue);
      break;
    }
    case PrecisionClass::Promote:
      break;
    }
    return retype(op);
  }

  /// Results follow from operands, by the rules of type promotion.
  LogicalResult retype(Operation &op) {
    SmallVector<Type> types;
    if (succeeded(infer(op, types)))
      return setTypes(op, types);
    // No promotion: the longest type of all takes the operands.
    castOperands(op, wideType, [](Value value) { return isShort(elementOf(value.getType())); });
    types.clear();
    if (succeeded(infer(op, types)))
      return setTypes(op, types);
    return aten::inferAndSetTypes(&op); // says what is wrong
  }

  LogicalResult infer(Operation &op, SmallVectorImpl<Type> &types) {
    if (auto inferrable = dyn_cast<InferTypeOpInterface>(op))
      return inferrable.inferReturnTypes(op.getContext(), std::nullopt, op.getOperands(),
                                         op.getDiscardableAttrDictionary(),
                                         op.getPropertiesStorage(), op.getRegions(), types);
    // What moves a value.
    if (isa<dist::ConstrainOp, dist::RedistributeOp>(op)) {
      types.push_back(withElement(cast<RankedTensorType>(op.getResult(0).getType()),
                                  elementOf(op.getOperand(0).getType())));
      return success();
    }
    // Whatever else computes in the types that it was written in.
    if (llvm::any_of(op.getOperands(), [](Value v) { return isShort(elementOf(v.getType())); }))
      return failure();
    llvm::append_range(types, op.getResultTypes());
    return success();
  }

  static LogicalResult setTypes(Operation &op, ArrayRef<Type> types) {
    for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
      if (auto old = dyn_cast<RankedTensorType>(result.getType()))
        result.setType(withElement(old, elementOf(type)));
    return success();
  }

  func::FuncOp function;
  Type shortType, wideType;
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, Type>, Value> casts;
  llvm::SmallPtrSet<Operation *, 32> made;
};

struct LowerPrecisionPass : shardc::impl::LowerPrecisionBase<LowerPrecisionPass> {
  using LowerPrecisionBase::LowerPrecisionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::string name = type;
    if (name.empty())
      if (auto given = module->getAttrOfType<StringAttr>(dist::kTrainAttr)) {
        plan::Training training;
        std::vector<std::string> errors; // aten-train-step reports them
        plan::parseTraining(given.getValue(), "train", training, errors);
        if (training.precision)
          name = training.precision->compute;
      }
    if (name.empty())
      return;
    if (name != "bf16" && name != "f16") {
      emitError(module.getLoc()) << "the type to compute in is bf16 or f16, not '" << name << "'";
      return signalPassFailure();
    }
    Builder b(&getContext());
    auto source = SymbolTable(module).lookup<func::FuncOp>(function);
    if (!source || source.isDeclaration() || !source.getBody().hasOneBlock())
      return; // Likewise.
    Type shortType = name == "bf16" ? Type(b.getBF16Type()) : Type(b.getF16Type());
    llvm::SetVector<Type> types = parameterTypes(source);
    // A model whose parameters are all short computes as it was written.
    if (types.size() == 1 && types.front() == shortType)
      return;
    if (!types.contains(b.getF32Type())) {
      emitError(source.getLoc()) << "a step cannot compute in " << name << ": the model has no "
                                 << "parameter of f32 (its floats are " << text(types)
                                 << "); leave out 'compute' of the precision, or export a model "
                                    "of f32";
      return signalPassFailure();
    }
    Lowering lowering(source, shortType);
    if (failed(lowering.run()))
      return signalPassFailure();
    numShort += lowering.numShort;
    numWide += lowering.numWide;
    numCasts += lowering.numCasts();
  }

private:
  static llvm::SetVector<Type> parameterTypes(func::FuncOp source) {
    llvm::SetVector<Type> types;
    for (unsigned i = 0; i < source.getNumArguments(); ++i) {
      auto kind = source.getArgAttrOfType<StringAttr>(i, dist::kKindAttr);
      Type element = elementOf(source.getArgumentTypes()[i]);
      if (kind && kind.getValue() == "parameter" && isa_and_nonnull<FloatType>(element))
        types.insert(element);
    }
    return types;
  }

  static std::string text(const llvm::SetVector<Type> &types) {
    std::string list;
    llvm::raw_string_ostream stream(list);
    llvm::interleaveComma(types, stream);
    return list.empty() ? "none" : list;
  }
};

} // namespace
