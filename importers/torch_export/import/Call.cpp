// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Call.h"

#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Inference.h"

#include "dialects/interfaces/ElementTypes.h"
#include "dialects/interfaces/ModelLocation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace shardc::torch_export {

bool isSupported(ElementType type) {
  switch (type) {
  case ElementType::C32:
  case ElementType::F8E4M3FNUZ:
  case ElementType::F8E5M2FNUZ:
  case ElementType::F8E8M0FNU:
    return false;
  default:
    return true;
  }
}

RankedTensorType convertType(MLIRContext *context, const TensorMeta &meta) {
  SmallVector<int64_t> shape;
  for (const SymInt &size : meta.pairSizes())
    shape.push_back(size.constant() ? size.value : ShapedType::kDynamic);
  return RankedTensorType::get(shape, toIrType(context, componentOf(meta.type)));
}

Argument defaultArgument(const SchemaArgument &argument) {
  const Default &value = argument.otherwise;
  switch (value.kind) {
  case Default::Bool:
    return value.integer != 0;
  case Default::Int:
    return value.integer;
  case Default::Real:
    return value.real;
  case Default::String:
    return value.text;
  case Default::Ints: {
    std::vector<int64_t> numbers;
    SmallVector<StringRef> parts;
    StringRef(value.text).split(parts, ',', -1, false);
    for (StringRef part : parts)
      part.getAsInteger(10, numbers.emplace_back());
    return numbers;
  }
  case Default::Required:
  case Default::None:
  case Default::Other:
    break;
  }
  return NoneArg{};
}

std::optional<double> asReal(const Argument &argument) {
  if (auto *real = std::get_if<double>(&argument))
    return *real;
  if (auto *integer = std::get_if<int64_t>(&argument))
    return double(*integer);
  if (auto *flag = std::get_if<bool>(&argument))
    return double(*flag);
  if (auto *size = std::get_if<SymIntArg>(&argument); size && size->constant())
    return double(size->value);
  return std::nullopt;
}

InFlightDiagnostic Call::error() {
  return emitError(loc) << "'aten." << StringRef(schema.overload) << "' in " << describePlace(loc)
                        << ": ";
}

template <typename T> FailureOr<T> Call::wrongForm(StringRef name) {
  return error() << "the argument '" << name << "' has a form that is not supported here";
}

const Argument *Call::find(StringRef name) {
  for (const NamedArgument &input : node.inputs)
    if (StringRef(input.name) == name)
      return &input.value;
  const SchemaArgument *argument = schema.find(name);
  if (!argument)
    return nullptr;
  for (auto &[known, value] : defaults)
    if (known == name)
      return value.get();
  defaults.emplace_back(argument->name, std::make_unique<Argument>(defaultArgument(*argument)));
  return defaults.back().second.get();
}

bool Call::isNone(StringRef name) {
  const Argument *argument = find(name);
  return !argument || std::holds_alternative<NoneArg>(*argument);
}

// The ops have no floats of 8 bits in the forms of some accelerators, for one.
bool Call::isComputable(Value tensor) {
  Type type = cast<ShapedType>(tensor.getType()).getElementType();
  if (!isa<Float8E4M3FNUZType, Float8E5M2FNUZType, Float8E8M0FNUType>(type))
    return true;
  error() << "tensors of element type " << type << " are not supported";
  return false;
}

FailureOr<Value> Call::tensor(StringRef name) {
  if (isNone(name))
    return Value();
  auto *tensor = std::get_if<TensorArg>(find(name));
  if (!tensor)
    return wrongForm<Value>(name);
  if (tensor->name.empty())
    return Value();
  Value value = values.tensor(tensor->name, loc);
  if (!value || !isComputable(value))
    return failure();
  return value;
}

FailureOr<SmallVector<Value>> Call::tensors(StringRef name) {
  SmallVector<Value> list;
  if (isNone(name))
    return list;
  auto *tensors = std::get_if<TensorListArg>(find(name));
  if (!tensors)
    return wrongForm<SmallVector<Value>>(name);
  for (const TensorArg &tensor : tensors->tensors) {
    Value value = tensor.name.empty() ? Value() : values.tensor(tensor.name, loc);
    if (!tensor.name.empty() && (!value || !isComputable(value)))
      return failure();
    list.push_back(value);
  }
  return list;
}

FailureOr<std::optional<int64_t>> Call::integer(StringRef name) {
  if (isNone(name))
    return std::optional<int64_t>();
  const Argument *argument = find(name);
  if (auto *value = std::get_if<int64_t>(argument))
    return std::optional<int64_t>(*value);
  if (auto *size = std::get_if<SymIntArg>(argument); size && size->constant())
    return std::optional<int64_t>(size->value);
  return wrongForm<std::optional<int64_t>>(name);
}

FailureOr<std::optional<double>> Call::real(StringRef name) {
  if (isNone(name))
    return std::optional<double>();
  if (std::optional<double> value = asReal(*find(name)))
    return value;
  return wrongForm<std::optional<double>>(name);
}

FailureOr<bool> Call::boolean(StringRef name) {
  if (isNone(name))
    return false;
  if (auto *value = std::get_if<bool>(find(name)))
    return *value;
  return wrongForm<bool>(name);
}

FailureOr<SmallVector<bool>> Call::booleans(StringRef name) {
  using List = SmallVector<bool>;
  if (isNone(name))
    return List();
  if (auto *list = std::get_if<std::vector<bool>>(find(name)))
    return List(list->begin(), list->end());
  return wrongForm<List>(name);
}

const TensorMeta *Call::recorded(StringRef name) {
  auto *tensor = std::get_if<TensorArg>(find(name));
  return tensor ? values.recorded(tensor->name) : nullptr;
}

SmallVector<const TensorMeta *> Call::recordedList(StringRef name) {
  SmallVector<const TensorMeta *> metas;
  if (auto *list = std::get_if<TensorListArg>(find(name)))
    for (const TensorArg &tensor : list->tensors)
      metas.push_back(tensor.name.empty() ? nullptr : values.recorded(tensor.name));
  return metas;
}

bool Call::hasComplexOperands() {
  auto isComplex = [](const TensorMeta *meta) { return meta && meta->isComplex(); };
  return llvm::any_of(node.inputs, [&](const NamedArgument &input) {
    if (auto *tensor = std::get_if<TensorArg>(&input.value))
      return isComplex(values.recorded(tensor->name));
    auto *list = std::get_if<TensorListArg>(&input.value);
    return list && llvm::any_of(list->tensors, [&](const TensorArg &tensor) {
             return isComplex(values.recorded(tensor.name));
           });
  });
}

FailureOr<std::optional<SmallVector<int64_t>>> Call::integers(StringRef name) {
  using List = std::optional<SmallVector<int64_t>>;
  if (isNone(name))
    return List();
  const Argument *argument = find(name);
  if (auto *list = std::get_if<std::vector<int64_t>>(argument))
    return List(SmallVector<int64_t>(list->begin(), list->end()));
  if (auto *one = std::get_if<int64_t>(argument))
    return List(SmallVector<int64_t>{*one});
  if (auto *list = std::get_if<SymIntListArg>(argument)) {
    SmallVector<int64_t> numbers;
    for (const SymIntArg &value : list->values) {
      if (!value.constant())
        return wrongForm<List>(name);
      numbers.push_back(value.value);
    }
    return List(std::move(numbers));
  }
  return wrongForm<List>(name);
}

FailureOr<SmallVector<double>> Call::reals(StringRef name) {
  const Argument *argument = find(name);
  if (auto *list = std::get_if<std::vector<double>>(argument))
    return SmallVector<double>(list->begin(), list->end());
  FailureOr<std::optional<SmallVector<int64_t>>> whole = integers(name);
  if (failed(whole))
    return failure();
  return SmallVector<double>(llvm::map_range(whole->value_or(SmallVector<int64_t>()),
                                             [](int64_t x) { return static_cast<double>(x); }));
}

FailureOr<Type> Call::elementType(StringRef name) {
  if (isNone(name))
    return Type();
  auto *code = std::get_if<ScalarTypeArg>(find(name));
  if (!code)
    return wrongForm<Type>(name);
  if (isSupported(code->type))
    return toIrType(builder.getContext(), componentOf(code->type));
  return error() << "the element type " << StringRef(elementTypeName(code->type))
                 << " is not supported";
}

FailureOr<OpFoldResult> Call::size(StringRef name) {
  if (isNone(name))
    return OpFoldResult();
  const Argument *argument = find(name);
  if (auto *value = std::get_if<int64_t>(argument))
    return OpFoldResult(builder.getIndexAttr(*value));
  if (auto *value = std::get_if<SymIntArg>(argument))
    return values.size(*value, loc);
  return wrongForm<OpFoldResult>(name);
}

Value Call::item(StringRef name) {
  auto *value = std::get_if<SymIntArg>(find(name));
  return value && !value->constant() ? values.item(*value) : Value();
}

FailureOr<SmallVector<OpFoldResult>> Call::sizes(StringRef name) {
  using List = SmallVector<OpFoldResult>;
  if (isNone(name))
    return List();
  const Argument *argument = find(name);
  List list;
  if (auto *numbers = std::get_if<std::vector<int64_t>>(argument)) {
    for (int64_t number : *numbers)
      list.push_back(builder.getIndexAttr(number));
    return list;
  }
  auto *symbolic = std::get_if<SymIntListArg>(argument);
  if (!symbolic)
    return wrongForm<List>(name);
  for (const SymIntArg &value : symbolic->values) {
    FailureOr<OpFoldResult> size = values.size(value, loc);
    if (failed(size))
      return failure();
    list.push_back(*size);
  }
  return list;
}

FailureOr<SmallVector<OpFoldResult>> Call::resultSizes(unsigned result) {
  if (result >= results.size() || !results[result])
    return error() << "it has no result " << result;
  SmallVector<OpFoldResult> list;
  for (const SymInt &size : results[result]->pairSizes()) {
    FailureOr<OpFoldResult> value = symbols.get(size, loc);
    if (failed(value))
      return failure();
    list.push_back(*value);
  }
  return list;
}

Type Call::resultElementType(unsigned result) {
  return result < results.size() && results[result]
             ? toIrType(builder.getContext(), componentOf(results[result]->type))
             : Type();
}

FailureOr<int64_t> Call::dim(int64_t value, int64_t rank) {
  // The program does not know the last dim of pairs.
  rank -= countsPairs ? 1 : 0;
  // A 0-dim tensor counts as one of one dim, as in PyTorch.
  int64_t limit = std::max<int64_t>(rank, 1);
  if (value < -limit || value >= limit)
    return error() << "dim " << value << " is outside of a tensor of rank " << rank;
  return value < 0 ? value + limit : value;
}

FailureOr<int64_t> Call::dimArgument(StringRef name, int64_t rank) {
  FailureOr<std::optional<int64_t>> value = integer(name);
  if (failed(value))
    return failure();
  if (!*value)
    return error() << "the argument '" << name << "' is missing";
  return dim(**value, rank);
}

FailureOr<Value> Call::scalar(const Argument &value, Type elementType) {
  if (auto *real = std::get_if<double>(&value))
    return aten::buildScalar(builder, loc, elementType, *real);
  if (auto *integer = std::get_if<int64_t>(&value))
    return aten::buildScalar(builder, loc, elementType, *integer);
  if (auto *flag = std::get_if<bool>(&value))
    return aten::buildScalar(builder, loc, elementType, int64_t(*flag));
  if (auto *size = std::get_if<SymIntArg>(&value); size && size->constant())
    return aten::buildScalar(builder, loc, elementType, size->value);
  if (auto *size = std::get_if<SymIntArg>(&value))
    return sizeAsTensor(*size, elementType);
  return error() << "a scalar argument is no number known at compile time";
}

// A size that is known when the program runs, as a 0-dim tensor: the sum of a vector that holds
// nothing else.
FailureOr<Value> Call::sizeAsTensor(const SymIntArg &size, Type elementType) {
  if (Value read = values.item(size)) {
    if (aten::typeOf(read).getRank() != 0)
      return error() << "a scalar argument is read from a tensor that has dims";
    return buildCast(builder, loc, read, elementType);
  }
  FailureOr<OpFoldResult> begin = values.size(size, loc);
  if (failed(begin))
    return failure();
  if (std::optional<int64_t> known = getConstantIntValue(*begin))
    return aten::buildScalar(builder, loc, elementType, *known);
  Value number = cast<Value>(*begin);
  Value end =
      arith::AddIOp::create(builder, loc, number, arith::ConstantIndexOp::create(builder, loc, 1));
  FailureOr<Value> vector =
      buildOne("aten.arange", {{"start", {number}}, {"end", {end}}},
               {integerAttr("static_start", ShapedType::kDynamic),
                integerAttr("static_end", ShapedType::kDynamic),
                builder.getNamedAttr("dtype", TypeAttr::get(builder.getI64Type()))});
  if (failed(vector))
    return failure();
  FailureOr<Value> sum = buildOne("aten.sum", {{"self", {*vector}}}, {integersAttr("dim", {0})});
  return succeeded(sum) ? buildCast(builder, loc, *sum, elementType) : sum;
}

FailureOr<Operation *> Call::build(StringRef op, ArrayRef<aten::NamedOperand> operands,
                                   ArrayRef<NamedAttribute> attributes) {
  return aten::buildOp(builder, loc, op, operands, attributes);
}

FailureOr<Value> Call::buildOne(StringRef op, ArrayRef<aten::NamedOperand> operands,
                                ArrayRef<NamedAttribute> attributes) {
  FailureOr<Operation *> built = build(op, operands, attributes);
  if (failed(built))
    return failure();
  return (*built)->getResult(0);
}

LogicalResult refineTypes(Call &call, ArrayRef<Value> results) {
  for (auto [result, meta] : llvm::zip(results, call.results)) {
    Value value = result;
    auto inferred = value ? dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
    if (!inferred)
      continue;
    RankedTensorType recorded = convertType(call.builder.getContext(), *meta);
    if (!aten::areCompatibleTypes(TypeRange(inferred), TypeRange(recorded)))
      return call.error() << "its result is " << inferred << ", but PyTorch recorded " << recorded;
    SmallVector<int64_t> shape(inferred.getShape());
    for (auto [size, known] : llvm::zip(shape, recorded.getShape()))
      if (ShapedType::isDynamic(size))
        size = known;
    if (value.getDefiningOp() && shape != inferred.getShape())
      value.setType(RankedTensorType::get(shape, inferred.getElementType()));
  }
  return success();
}

} // namespace shardc::torch_export
