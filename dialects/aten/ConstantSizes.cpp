// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/ConstantSizes.h"

#include "dialects/aten/Schema.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace shardc::aten {

/// The number of values of each operand argument, in order.
static SmallVector<int32_t> operandCounts(Operation *op, ArrayRef<SchemaArgument> arguments) {
  if (auto segments = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes"))
    return SmallVector<int32_t>(segments.asArrayRef());
  // Then at most one argument has not exactly one value.
  auto isOperand = [](const SchemaArgument &argument) { return argument.isOperand(); };
  int32_t others = llvm::count_if(arguments, isOperand) - 1;
  SmallVector<int32_t> counts;
  for (const SchemaArgument &argument : llvm::make_filter_range(arguments, isOperand))
    counts.push_back(argument.kind == SchemaArgument::Required
                         ? 1
                         : static_cast<int32_t>(op->getNumOperands()) - others);
  return counts;
}

/// `attribute` with its dynamic entries replaced by those operands that are constants; the others
/// are left in `operands`.
static Attribute fold(Attribute attribute, SmallVectorImpl<Value> &operands) {
  SmallVector<int64_t> values;
  auto list = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (list)
    values.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  else if (auto single = dyn_cast<IntegerAttr>(attribute))
    values.push_back(single.getInt());
  SmallVector<Value> left;
  const Value *next = operands.begin();
  for (int64_t &value : values) {
    if (!ShapedType::isDynamic(value) || next == operands.end())
      continue;
    APInt constant;
    if (matchPattern(*next, m_ConstantInt(&constant)))
      value = constant.getSExtValue();
    else
      left.push_back(*next);
    ++next;
  }
  operands = left;
  Builder builder(attribute.getContext());
  if (list)
    return builder.getDenseI64ArrayAttr(values);
  return values.empty() ? attribute : builder.getI64IntegerAttr(values.front());
}

bool foldConstantSizes(Operation *op) {
  auto schema = dyn_cast<SchemaOpInterface>(op);
  if (!schema)
    return false;
  ArrayRef<SchemaArgument> arguments = schema.getSchemaArguments();
  SmallVector<int32_t> counts = operandCounts(op, arguments);
  SmallVector<Value> operands;
  OperandRange rest = op->getOperands();
  unsigned index = 0;
  for (const SchemaArgument &argument : arguments) {
    if (!argument.isOperand())
      continue;
    SmallVector<Value> values(rest.take_front(counts[index]));
    rest = rest.drop_front(counts[index]);
    std::string name = ("static_" + argument.name).str();
    Attribute attribute = op->getAttr(name);
    if (attribute && !values.empty() && isa<IndexType>(values.front().getType())) {
      op->setAttr(name, fold(attribute, values));
      counts[index] = values.size();
    }
    operands.append(values);
    ++index;
  }
  if (operands.size() == op->getNumOperands())
    return false;
  op->setOperands(operands);
  if (op->hasAttr("operandSegmentSizes"))
    op->setAttr("operandSegmentSizes", DenseI32ArrayAttr::get(op->getContext(), counts));
  return true;
}

} // namespace shardc::aten
