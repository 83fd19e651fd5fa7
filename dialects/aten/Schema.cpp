// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Schema.h"

#include "mlir/IR/BuiltinTypes.h"
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
  if (failed(name.setOpPropertiesFromAttribute(name, properties.get(), dictionary,
                                               [&] { return emitError(loc); })))
    return failure();
  name.populateDefaultProperties(properties.get());
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

} // namespace shardc::aten
