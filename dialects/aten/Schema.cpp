// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

using namespace mlir;

namespace shardc::aten {
namespace {

/// An op's operands and attributes in the order and form that its definition wants.
struct Arguments {
  SmallVector<Value> operands;
  SmallVector<int32_t> segments; ///< number of values of each operand argument
  NamedAttrList attributes;
};

LogicalResult collectOperands(OperationName name, Location loc, ArrayRef<SchemaArgument> schema,
                              ArrayRef<NamedOperand> given, Arguments &arguments) {
  for (const NamedOperand &operand : given)
    if (llvm::none_of(schema, [&](const SchemaArgument &argument) {
          return argument.isOperand() && argument.name == operand.name;
        }))
      return emitError(loc) << "'" << name << "' has no operand '" << operand.name << "'";
  for (const SchemaArgument &argument : schema) {
    if (!argument.isOperand())
      continue;
    const auto *operand =
        llvm::find_if(given, [&](const NamedOperand &o) { return o.name == argument.name; });
    size_t count = operand == given.end() ? 0 : operand->values.size();
    if ((argument.kind == SchemaArgument::Required && count != 1) ||
        (argument.kind == SchemaArgument::Optional && count > 1))
      return emitError(loc) << "'" << name << "' got " << count << " values for operand '"
                            << argument.name << "'";
    arguments.segments.push_back(static_cast<int32_t>(count));
    for (size_t i = 0; i < count; ++i) {
      Value value = operand->values[i];
      if (!value || !isa<RankedTensorType, IndexType>(value.getType()))
        return emitError(loc) << "'" << name << "': operand '" << argument.name
                              << "' is no ranked tensor or index";
      arguments.operands.push_back(value);
    }
  }
  return success();
}

LogicalResult collectAttributes(OperationName name, Location loc, ArrayRef<SchemaArgument> schema,
                                ArrayRef<NamedAttribute> given, Arguments &arguments) {
  for (NamedAttribute attribute : given) {
    if (llvm::none_of(schema, [&](const SchemaArgument &argument) {
          return !argument.isOperand() && argument.name == attribute.getName().strref();
        }))
      return emitError(loc) << "'" << name << "' has no attribute '" << attribute.getName().strref()
                            << "'";
    arguments.attributes.set(attribute.getName(), attribute.getValue());
  }
  for (const SchemaArgument &argument : schema)
    if (argument.kind == SchemaArgument::Attribute && !arguments.attributes.get(argument.name))
      return emitError(loc) << "'" << name << "' needs the attribute '" << argument.name << "'";
  if (name.hasTrait<OpTrait::AttrSizedOperandSegments>())
    arguments.attributes.set("operandSegmentSizes",
                             DenseI32ArrayAttr::get(name.getContext(), arguments.segments));
  return success();
}

/// Properties of an op that does not exist yet.
class PropertyStorage {
public:
  explicit PropertyStorage(OperationName name) : name(name) {
    words.resize((name.getOpPropertyByteSize() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    if (!words.empty())
      name.initOpProperties(get(), nullptr);
  }
  ~PropertyStorage() {
    if (!words.empty())
      name.destroyOpProperties(get());
  }
  PropertyStorage(const PropertyStorage &) = delete;
  PropertyStorage &operator=(const PropertyStorage &) = delete;
  OpaqueProperties get() { return OpaqueProperties(words.empty() ? nullptr : words.data()); }

private:
  OperationName name;
  SmallVector<uint64_t, 16> words; // as aligned as any property: attributes, integers, pointers
};

} // namespace

FailureOr<Operation *> buildOp(OpBuilder &builder, Location loc, StringRef opName,
                               ArrayRef<NamedOperand> operands,
                               ArrayRef<NamedAttribute> attributes) {
  MLIRContext *context = builder.getContext();
  OperationName name(opName, context);
  auto *schema = name.getInterface<SchemaOpInterface>();
  auto *inference = name.getInterface<InferTypeOpInterface>();
  if (!schema || !inference)
    return emitError(loc) << "'" << opName << "' is no op of the aten dialect";

  Arguments arguments;
  if (failed(collectOperands(name, loc, schema->getSchemaArguments(), operands, arguments)) ||
      failed(collectAttributes(name, loc, schema->getSchemaArguments(), attributes, arguments)))
    return failure();
  DictionaryAttr dictionary = arguments.attributes.getDictionary(context);
  PropertyStorage properties(name);
  // An op without attributes has no properties to set.
  if (name.getOpPropertyByteSize() != 0) {
    if (failed(name.setOpPropertiesFromAttribute(name, properties.get(), dictionary,
                                                 [&] { return emitError(loc); })))
      return failure();
    name.populateDefaultProperties(properties.get());
  }
  SmallVector<Type> types;
  if (failed(inference->inferReturnTypes(context, loc, arguments.operands,
                                         DictionaryAttr::get(context), properties.get(), {},
                                         types)))
    return failure();
  Operation *op = Operation::create(loc, name, types, arguments.operands,
                                    DictionaryAttr::get(context), properties.get(), {}, 0);
  if (failed(name.verifyInvariants(op))) {
    op->destroy();
    return failure();
  }
  return builder.insert(op);
}

static Value buildScalarOf(OpBuilder &builder, Location loc, Type elementType, Attribute value) {
  auto type = RankedTensorType::get({}, elementType);
  return ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, value));
}

Value buildScalar(OpBuilder &builder, Location loc, Type elementType, double value) {
  if (auto type = dyn_cast<FloatType>(elementType))
    return buildScalarOf(builder, loc, type, FloatAttr::get(type, value));
  return buildScalar(builder, loc, elementType, static_cast<int64_t>(value));
}

Value buildScalar(OpBuilder &builder, Location loc, Type elementType, int64_t value) {
  if (auto type = dyn_cast<FloatType>(elementType)) {
    // Straight to the type: by way of double it would be rounded twice.
    llvm::APFloat number(type.getFloatSemantics());
    number.convertFromAPInt(llvm::APInt(64, value, true), true, llvm::APFloat::rmNearestTiesToEven);
    return buildScalarOf(builder, loc, type, FloatAttr::get(type, number));
  }
  unsigned width = elementType.getIntOrFloatBitWidth();
  llvm::APInt number(64, value, true);
  // PyTorch's casts: bool is "not 0", other integers wrap.
  number = width == 1 ? llvm::APInt(1, value != 0) : number.trunc(width);
  return buildScalarOf(builder, loc, elementType, IntegerAttr::get(elementType, number));
}

Value buildFull(OpBuilder &builder, Value scalar, ArrayRef<OpFoldResult> size) {
  SmallVector<Value> dynamic;
  SmallVector<int64_t> fixed;
  dispatchIndexOpFoldResults(size, dynamic, fixed);
  Location loc = scalar.getLoc();
  DenseElementsAttr element;
  if (dynamic.empty() && matchPattern(scalar, m_Constant(&element)) && element.isSplat()) {
    auto type = RankedTensorType::get(fixed, elementTypeOf(scalar));
    return ConstantOp::create(builder, loc, type, element.resizeSplat(type));
  }
  return ExpandOp::create(builder, loc, RankedTensorType::get(fixed, elementTypeOf(scalar)), scalar,
                          fixed, dynamic);
}

} // namespace shardc::aten
