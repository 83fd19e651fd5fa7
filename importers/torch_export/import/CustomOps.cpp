// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/CustomOps.h"

#include "importers/torch_export/import/NodeTarget.h"
#include "importers/torch_export/import/OpaqueOps.h"

#include "dialects/aten/Custom.h"
#include "dialects/interfaces/ModelLocation.h"

using namespace mlir;

namespace shardc::torch_export {

const CustomOp *findCustomOp(ArrayRef<CustomOp> ops, const Node &node) {
  const auto *found = llvm::find_if(
      ops, [&](const CustomOp &op) { return StringRef(op.target) == shortTarget(node); });
  return found == ops.end() ? nullptr : found;
}

namespace {

/// `k`, or `kernel_1` for the second number of the list `kernel`.
std::optional<int64_t> numberOf(DictionaryAttr arguments, StringRef name) {
  if (auto integer = arguments.getAs<IntegerAttr>(name))
    return integer.getType().isInteger(1) ? static_cast<int64_t>(integer.getValue().getZExtValue())
                                          : integer.getInt();
  auto [list, position] = name.rsplit('_');
  unsigned index = 0;
  auto integers = arguments.getAs<DenseI64ArrayAttr>(list);
  if (!integers || position.getAsInteger(10, index) ||
      index >= static_cast<unsigned>(integers.size()))
    return std::nullopt;
  return integers[index];
}

class CustomOpImporter {
public:
  CustomOpImporter(OpBuilder &builder, Environment &environment, const CustomOp &op,
                   const Node &node, Location loc)
      : builder(builder), environment(environment), op(op), node(node), loc(loc) {}

  LogicalResult run() {
    FailureOr<NodeOperands> given = collectOperands(builder, environment, node, loc);
    if (failed(given))
      return failure();
    for (Value value : given->values)
      if (!isa<RankedTensorType>(value.getType()))
        return error() << "has a size among its arguments that only the run knows: functions in C "
                          "get sizes of "
                          "tensors, and numbers that the program has";
    for (const auto &[name, value] : op.defaults)
      if (!given->attributes.get(name))
        given->attributes.set(name, attributeOf(value));
    arguments = given->attributes.getDictionary(builder.getContext());
    SmallVector<StringRef> names;
    SmallVector<Type> types;
    if (failed(describeResults(names, types)))
      return failure();
    FailureOr<RuleText> rule = readRule(op.rule);
    if (failed(rule))
      return failure();
    SmallVector<Value> operands(given->values);
    if (failed(pad(*rule, operands)))
      return failure();
    for (unsigned i = 0; i < rule->operands.size(); ++i)
      if (rule->isUnused(i))
        return error() << "has a rule (" << op.origin << ") with '_' for operand " << i
                       << ", which only the rule of a backward may have";
    SmallVector<Attribute> backward;
    for (const CustomFunction &function : op.backward) {
      FailureOr<RuleText> ofBackward = readRule(function.rule);
      if (failed(ofBackward))
        return failure();
      backward.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr(aten::kCustomRuleAttr, builder.getStringAttr(ofBackward->str())),
           builder.getNamedAttr(aten::kCustomSymbolAttr, builder.getStringAttr(function.symbol))}));
    }
    RuleText unpadded = aten::withoutPadding(*rule);
    bool fits = true;
    for (const std::string &problem :
         unpadded.check(aten::shapesOf(ValueRange(operands).getTypes()), aten::shapesOf(types))) {
      error() << "cannot have the rule '" << op.rule << "' (" << op.origin << "): " << problem;
      fits = false;
    }
    if (!fits)
      return failure();
    auto created = aten::CustomOp::create(
        builder, loc, types, builder.getStringAttr(op.target), operands,
        builder.getStringAttr(unpadded.str()), builder.getStringAttr(op.symbol),
        op.library.empty() ? StringAttr() : builder.getStringAttr(op.library),
        arguments.empty() ? DictionaryAttr() : arguments,
        backward.empty() ? ArrayAttr() : builder.getArrayAttr(backward));
    if (failed(checkSizes(created, unpadded)))
      return failure();
    for (auto [name, result] : llvm::zip_equal(names, created.getResults()))
      environment.frame().tensors[name] = environment.storages.add(result);
    return success();
  }

private:
  Attribute attributeOf(const CustomArgument &argument) {
    if (auto *text = std::get_if<std::string>(&argument))
      return asAttribute(builder, std::string_view(*text));
    return std::visit(
        [&](const auto &value) -> Attribute {
          if constexpr (std::is_constructible_v<Argument, decltype(value)>)
            return asAttribute(builder, Argument(value));
          return {};
        },
        argument);
  }

  InFlightDiagnostic error() {
    return emitError(loc) << "'" << shortTarget(node) << "' in " << describePlace(loc) << " ";
  }

  LogicalResult describeResults(SmallVectorImpl<StringRef> &names, SmallVectorImpl<Type> &types) {
    bool isKnown = true;
    forEachTensor(node, *environment.frame().graph,
                  [&](unsigned, StringRef name, const TensorMeta &meta) {
                    RankedTensorType type = convertType(builder.getContext(), meta);
                    isKnown &= type && isSupported(meta.type);
                    names.push_back(name);
                    types.push_back(type);
                  });
    if (names.empty())
      return error() << "has no tensor as its result: an operator that updates its operands is to "
                        "return what it "
                        "makes";
    if (!isKnown)
      return error() << "has results of an element type that is not supported";
    return success();
  }

  FailureOr<RuleText> readRule(StringRef text) {
    std::string message;
    std::optional<RuleText> rule = RuleText::parse(
        text.str(), message, [&](std::string_view name) { return numberOf(arguments, name); });
    if (rule)
      return std::move(*rule);
    error() << "has a rule that cannot be read (" << op.origin << "): " << message;
    return failure();
  }

  LogicalResult pad(const RuleText &rule, SmallVectorImpl<Value> &operands) {
    for (auto [i, operand] : llvm::enumerate(operands)) {
      if (i >= rule.operands.size() || rule.operands[i].size() != aten::shapeOf(operand).size())
        continue; // reported with the shapes
      operand = aten::buildWindowPadding(builder, loc, operand, rule.operands[i]);
      if (!operand)
        return error() << "pads operand " << i
                       << ", a dim of which is shorter than its padding, or of a size that only "
                          "the run knows";
    }
    return success();
  }

  /// A size that no operand gives is a number.
  LogicalResult checkSizes(aten::CustomOp created, const RuleText &rule) {
    for (auto [number, result] : llvm::enumerate(created.getResults()))
      for (auto [d, size] : llvm::enumerate(aten::shapeOf(result)))
        if (ShapedType::isDynamic(size))
          for (const std::string &name : rule.results[number][d].names)
            if (!aten::givesSize(rule, name))
              return error() << "has a result whose dim " << d
                             << " only the run knows, and no operand has a dim '" << name << "'";
    return success();
  }

  OpBuilder &builder;
  Environment &environment;
  const CustomOp &op;
  const Node &node;
  Location loc;
  DictionaryAttr arguments;
};

} // namespace

LogicalResult importCustomOp(OpBuilder &builder, Environment &environment, const CustomOp &op,
                             const Node &node, Location loc) {
  return CustomOpImporter(builder, environment, op, node, loc).run();
}

} // namespace shardc::torch_export
