// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops whose operands and attributes are named as the arguments of the ATen schema.
#include "importers/torch_export/import/Builders.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

// Arguments that say how, not what, PyTorch computes.
bool isHint(StringRef name) {
  static const llvm::StringSet<> hints = {
      "cudnn_enable",  "cudnn_enabled", "pin_memory",        "non_blocking",
      "copy",          "implicit",      "generator",         "device",
      "memory_format", "sparse",        "scale_grad_by_freq"};
  return hints.contains(name);
}

bool isDim(StringRef name) {
  return name == "dim" || name == "dims" || name == "dim0" || name == "dim1";
}

bool sameNumber(const Argument &lhs, const Argument &rhs) {
  if (lhs.index() == rhs.index() && std::holds_alternative<NoneArg>(lhs))
    return true;
  std::optional<double> left = asReal(lhs), right = asReal(rhs);
  return left && right && *left == *right;
}

// Arguments without a place in the op must be what the op means anyhow.
LogicalResult checkLeftOver(Call &call, ArrayRef<aten::SchemaArgument> places,
                            ArrayRef<llvm::StringLiteral> unread) {
  for (const NamedArgument &input : call.node.inputs) {
    StringRef name = input.name;
    if (isHint(name) || llvm::is_contained(unread, name) ||
        llvm::any_of(places, [&](const aten::SchemaArgument &place) {
          StringRef known = place.name;
          return known == name || (known.consume_front("static_") && known == name);
        }))
      continue;
    if (auto *layout = std::get_if<LayoutArg>(&input.value); layout && layout->code == 7)
      continue;
    const SchemaArgument *argument = call.schema.find(name);
    if (argument && sameNumber(input.value, defaultArgument(*argument)))
      continue;
    return call.error() << "the argument '" << name << "' is supported only with its default value";
  }
  return success();
}

// The kind in which a Python number takes part in promotion.
aten::ScalarKind scalarKind(const Argument &argument) {
  if (std::holds_alternative<bool>(argument))
    return aten::ScalarKind::Bool;
  return std::holds_alternative<double>(argument) ? aten::ScalarKind::Float : aten::ScalarKind::Int;
}

bool isOperand(ArrayRef<aten::SchemaArgument> places, StringRef name) {
  return llvm::any_of(places, [&](const aten::SchemaArgument &place) {
    return place.isOperand() && place.name == name;
  });
}

// The element type of scalars beside tensors.
FailureOr<Type> promotedType(Call &call, StringRef name, ArrayRef<aten::SchemaArgument> places) {
  SmallVector<RankedTensorType> tensors;
  SmallVector<aten::ScalarKind> scalars;
  for (const SchemaArgument &argument : call.schema.arguments) {
    StringRef argumentName = argument.name;
    if (call.isNone(argumentName))
      continue;
    // Numbers take part wherever a tensor could stand; those that are attributes do not.
    const Argument &value = *call.find(argumentName);
    bool isNumber = asReal(value) || std::holds_alternative<SymIntArg>(value);
    if (argument.type != ArgumentType::Tensor &&
        (argument.type != ArgumentType::Scalar || !isOperand(places, argumentName)))
      continue;
    if (argumentName == "condition" || argumentName == "mask")
      continue;
    if (isNumber) {
      scalars.push_back(scalarKind(value));
      continue;
    }
    FailureOr<Value> tensor = call.tensor(argumentName);
    if (failed(tensor))
      return failure();
    tensors.push_back(cast<RankedTensorType>(tensor->getType()));
  }
  // masked_fill writes into self.
  if (name == "aten.masked_fill" && !tensors.empty())
    return tensors.front().getElementType();
  if (Type type = aten::resultElementType(tensors, scalars))
    return type;
  return call.error()
         << "the element types of its operands have no common type in PyTorch's promotion rules";
}

class ByName {
public:
  ByName(Call &call, StringRef name, ArrayRef<aten::SchemaArgument> places,
         const OtherOperands &others)
      : call(call), name(name), places(places), others(others) {}

  FailureOr<Results> run() {
    if (failed(checkLeftOver(call, places, others.unread)))
      return failure();
    for (const aten::SchemaArgument &place : places)
      if (place.isOperand() && failed(addOperand(place)))
        return failure();
    for (const aten::SchemaArgument &place : places)
      if (!place.isOperand() && failed(addAttribute(place)))
        return failure();
    FailureOr<Operation *> op = call.build(name, operands, attributes);
    if (failed(op))
      return failure();
    return Results((*op)->getResults());
  }

private:
  bool hasPlace(const Twine &placeName) const {
    std::string text = placeName.str();
    return llvm::any_of(places,
                        [&](const aten::SchemaArgument &place) { return place.name == text; });
  }

  LogicalResult addOperand(const aten::SchemaArgument &place) {
    for (const aten::NamedOperand &operand : others.given)
      if (operand.name == place.name) {
        if (rank < 0)
          rank = aten::typeOf(operand.values.front()).getRank();
        operands.push_back(operand);
        return success();
      }
    if (hasPlace("static_" + place.name))
      return addSizes(place);
    if (place.kind == aten::SchemaArgument::Variadic)
      return addList(place);
    if (call.isNone(place.name))
      return success();
    const Argument &argument = *call.find(place.name);
    FailureOr<Value> value = Value();
    if (std::holds_alternative<TensorArg>(argument)) {
      value = call.tensor(place.name);
    } else {
      FailureOr<Type> type = promotedType(call, name, places);
      if (failed(type))
        return failure();
      value = call.scalar(argument, *type);
    }
    if (failed(value))
      return failure();
    if (rank < 0)
      rank = aten::typeOf(*value).getRank();
    operands.push_back({place.name, {*value}});
    return success();
  }

  LogicalResult addList(const aten::SchemaArgument &place) {
    FailureOr<SmallVector<Value>> list = call.tensors(place.name);
    if (failed(list))
      return failure();
    SmallVector<Value> present;
    SmallVector<int64_t> positions;
    for (auto [i, value] : llvm::enumerate(*list)) {
      if (!value)
        continue;
      present.push_back(value);
      positions.push_back(int64_t(i));
    }
    std::string at = (place.name + "_at").str();
    if (hasPlace(at))
      attributes.push_back(call.integersAttr(at, positions));
    else if (present.size() != list->size())
      return call.error() << "the list '" << place.name << "' has elements that are None";
    if (rank < 0 && !present.empty())
      rank =
          name == "aten.cat" ? aten::rankOfCat(present) : aten::typeOf(present.front()).getRank();
    operands.push_back({place.name, std::move(present)});
    return success();
  }

  // An index operand with its `static_` attribute.
  LogicalResult addSizes(const aten::SchemaArgument &place) {
    std::string fixed = ("static_" + place.name).str();
    if (call.isNone(place.name))
      return success();
    aten::NamedOperand operand{place.name, {}};
    SmallVector<int64_t> numbers;
    auto add = [&](OpFoldResult size) {
      std::optional<int64_t> constant = getConstantIntValue(size);
      numbers.push_back(constant.value_or(ShapedType::kDynamic));
      if (!constant)
        operand.values.push_back(cast<Value>(size));
    };
    if (place.kind == aten::SchemaArgument::Variadic) {
      FailureOr<SmallVector<OpFoldResult>> sizes = call.sizes(place.name);
      if (failed(sizes))
        return failure();
      llvm::for_each(*sizes, add);
      attributes.push_back(call.integersAttr(fixed, numbers));
    } else {
      FailureOr<OpFoldResult> size = call.size(place.name);
      if (failed(size))
        return failure();
      add(*size);
      attributes.push_back(call.integerAttr(fixed, numbers.front()));
    }
    operands.push_back(std::move(operand));
    return success();
  }

  LogicalResult addAttribute(const aten::SchemaArgument &place) {
    if (StringRef(place.name).starts_with("static_") || StringRef(place.name).ends_with("_at"))
      return success(); // came with its operand
    // The dims of an op that adds one count in its result.
    int64_t counted = rank + (name == "aten.unsqueeze" || name == "aten.stack");
    FailureOr<Attribute> attribute = buildAttribute(call, place.name, place.storage, counted);
    if (failed(attribute))
      return failure();
    if (*attribute)
      attributes.push_back(call.builder.getNamedAttr(place.name, *attribute));
    return success();
  }

  Call &call;
  StringRef name;
  ArrayRef<aten::SchemaArgument> places;
  const OtherOperands &others;
  SmallVector<aten::NamedOperand> operands;
  SmallVector<NamedAttribute> attributes;
  int64_t rank = -1;
};

} // namespace

FailureOr<Attribute> buildAttribute(Call &call, StringRef argument, StringRef storage,
                                    int64_t rank) {
  if (call.isNone(argument))
    return Attribute();
  storage = storage.trim();
  storage.consume_front("::mlir::");
  auto one = [&](auto value, auto make) -> FailureOr<Attribute> {
    if (failed(value))
      return failure();
    return make(*value);
  };
  OpBuilder &builder = call.builder;
  if (storage == "UnitAttr")
    return one(call.boolean(argument),
               [&](bool set) { return set ? Attribute(builder.getUnitAttr()) : Attribute(); });
  if (storage == "FloatAttr")
    return one(call.real(argument), [&](auto v) { return Attribute(builder.getF64FloatAttr(*v)); });
  if (storage == "TypeAttr")
    return one(call.elementType(argument), [&](Type v) { return Attribute(TypeAttr::get(v)); });
  if (storage == "StringAttr") {
    auto *text = std::get_if<std::string_view>(call.find(argument));
    if (text)
      return Attribute(builder.getStringAttr(*text));
  } else if (storage == "IntegerAttr") {
    FailureOr<std::optional<int64_t>> value = call.integer(argument);
    FailureOr<int64_t> number = failed(value) ? FailureOr<int64_t>() : **value;
    if (succeeded(number) && isDim(argument))
      number = call.dim(*number, rank);
    return one(number, [&](int64_t v) { return Attribute(builder.getI64IntegerAttr(v)); });
  } else if (storage == "DenseI64ArrayAttr") {
    FailureOr<std::optional<SmallVector<int64_t>>> list = call.integers(argument);
    if (failed(list))
      return failure();
    if (isDim(argument)) {
      // An empty list of dims to reduce means all, as None does.
      if (argument == "dim" && (*list)->empty())
        return Attribute();
      for (int64_t &value : **list) {
        FailureOr<int64_t> dim = call.dim(value, rank);
        if (failed(dim))
          return failure();
        value = *dim;
      }
    }
    return Attribute(builder.getDenseI64ArrayAttr(**list));
  }
  return call.error() << "the argument '" << argument << "' cannot become an attribute of class "
                      << storage;
}

FailureOr<Results> buildByName(Call &call, StringRef name, const OtherOperands &others) {
  OperationName op(name, call.builder.getContext());
  auto *schema = op.getInterface<aten::SchemaOpInterface>();
  if (!schema)
    return call.error() << "there is no op '" << name << "'";
  return ByName(call, name, schema->getSchemaArguments(), others).run();
}

} // namespace shardc::torch_export
