// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that users have registered with functions for the backward.

#include "dialects/aten/Custom.h"
#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

class CustomOpDerivation {
public:
  CustomOpDerivation(Derivation &d, aten::CustomOp op) : d(d), op(op) {}

  LogicalResult run() {
    std::optional<ArrayAttr> backward = op.getBackward();
    if (!backward || backward->empty()) {
      d.refuse() << "'" << op.getTarget()
                 << "' has no function for its backward: register one in the section 'ops' with "
                    "'backward'";
      return failure();
    }
    for (OpOperand &operand : op->getOpOperands())
      if (isFloat(operand.get()))
        differentiated.push_back(operand.getOperandNumber());
    if (backward->size() != 1 && backward->size() != differentiated.size()) {
      d.refuse() << "'" << op.getTarget() << "' has " << backward->size()
                 << " functions for its backward and " << differentiated.size()
                 << " operands that are floats: there is to be one for each, or one for all";
      return failure();
    }
    for (OpResult result : op.getResults())
      if (isFloat(result)) {
        Expr grad = d.grad(result.getResultNumber());
        given.push_back(grad ? grad.value : d.zerosLike(result).value);
      }
    llvm::append_range(given, op.getOperands());
    llvm::append_range(given, op.getResults());
    if (backward->size() == 1)
      return derive(cast<DictionaryAttr>((*backward)[0]), differentiated);
    for (auto [operand, function] : llvm::zip_equal(differentiated, *backward))
      if (d.needs(operand) && failed(derive(cast<DictionaryAttr>(function), operand)))
        return failure();
    return success();
  }

private:
  static bool isFloat(Value value) { return isa<FloatType>(aten::elementTypeOf(value)); }

  LogicalResult refuse(const Twine &what) {
    d.refuse() << "the backward of '" << op.getTarget() << "' " << what.str();
    return failure();
  }

  /// The cotangents of these operands, by one function.
  LogicalResult derive(DictionaryAttr function, ArrayRef<unsigned> wanted) {
    std::string error;
    std::optional<RuleText> read =
        RuleText::parse(function.getAs<StringAttr>(aten::kCustomRuleAttr).str(), error);
    if (!read)
      return refuse("has a rule that cannot be read: " + error);
    if (given.size() != read->operands.size())
      return refuse("has " + Twine(given.size()) +
                    " operands (the cotangents of the results that are floats, then the operands, "
                    "then the results), but its rule describes " +
                    Twine(read->operands.size()));
    RuleText rule = *read;
    rule.operands.clear();
    SmallVector<Value> operands;
    for (auto [number, operand] : llvm::enumerate(given)) {
      if (read->isUnused(number))
        continue;
      const std::vector<TextDim> &dims = read->operands[number];
      Value padded = operand;
      if (dims.size() == aten::shapeOf(operand).size()) // else reported below
        padded = aten::buildWindowPadding(d.builder, d.emit.getLoc(), operand, dims);
      if (!padded)
        return refuse("pads a dim whose size is not known, or by more elements than it has");
      rule.operands.push_back(dims);
      operands.push_back(padded);
    }
    rule = aten::withoutPadding(std::move(rule));
    SmallVector<Type> types;
    for (unsigned operand : wanted) {
      RankedTensorType type = aten::typeOf(op.getOperand(operand));
      types.push_back(RankedTensorType::get(type.getShape(), type.getElementType()));
    }
    for (const std::string &problem :
         rule.check(aten::shapesOf(ValueRange(operands).getTypes()), aten::shapesOf(types)))
      return refuse("cannot have the rule '" + Twine(read->str()) + "': " + problem);
    auto gradient = aten::CustomOp::create(d.builder, d.emit.getLoc(), types,
                                           d.builder.getStringAttr(op.getTarget() + ".backward"),
                                           operands, d.builder.getStringAttr(rule.str()),
                                           function.getAs<StringAttr>(aten::kCustomSymbolAttr),
                                           op.getLibraryAttr(), op.getArgumentsAttr(), ArrayAttr());
    for (auto [operand, cotangent] : llvm::zip_equal(wanted, gradient.getResults()))
      if (d.needs(operand))
        d.add(operand, d.of(cotangent));
    return success();
  }

  Derivation &d;
  aten::CustomOp op;
  /// What the functions are called with: cotangents, operands, results.
  SmallVector<Value> given;
  SmallVector<unsigned> differentiated;
};

struct CustomOpGradient : GradientModel<CustomOpGradient, aten::CustomOp> {
  static LogicalResult run(Derivation &d, aten::CustomOp op) {
    return CustomOpDerivation(d, op).run();
  }
};

} // namespace

void shardc::attachCustomOpGradients(MLIRContext *context) {
  aten::CustomOp::attachInterface<CustomOpGradient>(*context);
}
