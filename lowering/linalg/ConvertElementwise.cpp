// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/Aten.h"
#include "lowering/linalg/Elementwise.h"
#include "lowering/linalg/Patterns.h"
#include "lowering/linalg/TensorBuilder.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Any op that the table knows. Operands that are one constant become part of the body.
struct ConvertElementwise : ConversionPattern {
  ConvertElementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<Value> operands,
                                ConversionPatternRewriter &rewriter) const override {
    const ElementwiseRule *rule = ElementwiseTable::find(op);
    if (!rule)
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    Type common = type.getElementType();
    if (rule->operands == Operands::Promoted) {
      SmallVector<RankedTensorType> types;
      for (Value operand : op->getOperands())
        types.push_back(aten::typeOf(operand));
      common = aten::resultElementType(types);
      if (!common)
        return rewriter.notifyMatchFailure(op, "operands have no common element type");
    }
    SmallVector<TypedAttr> constants;
    SmallVector<Value> tensors;
    for (auto [original, converted] : llvm::zip_equal(op->getOperands(), operands)) {
      constants.push_back(splatOf(original));
      if (!constants.back())
        tensors.push_back(converted);
    }
    Location loc = op->getLoc();
    TensorBuilder tensor(rewriter, loc);
    auto domain = tensor.broadcastSizes(type.getShape(), tensors);
    Value result = tensor.map(
        domain, storageType(type.getElementType()), tensors, [&](OpBuilder &b, ValueRange args) {
          SmallVector<Value> values;
          for (auto [operand, constant] : llvm::zip_equal(op->getOperands(), constants)) {
            Type own = aten::elementTypeOf(operand);
            ScalarBuilder s(b, loc, own);
            Value value;
            if (constant) {
              value = arith::ConstantOp::create(b, loc, constant);
            } else {
              value = s.load(args.front());
              args = args.drop_front();
            }
            if (rule->operands != Operands::Own)
              value = s.as(common).convert(value, own);
            values.push_back(value);
          }
          ScalarBuilder s(b, loc, common);
          return ScalarBuilder(b, loc, type.getElementType()).store(rule->emit(op, s, values));
        });
    rewriter.replaceOp(op, result);
    return success();
  }

  /// The one element of a constant, in the compute type of its own ATen type; null for others.
  static TypedAttr splatOf(Value value) {
    DenseElementsAttr elements;
    if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
      return {};
    Type element = elements.getElementType();
    Type compute = computeType(element);
    if (isa<FloatType>(element)) {
      double number = elements.getSplatValue<APFloat>().convertToDouble();
      return FloatAttr::get(compute, number);
    }
    return IntegerAttr::get(compute, elements.getSplatValue<APInt>());
  }
};

} // namespace

void shardc::populateElementwiseToLinalg(TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<ConvertElementwise>(converter, patterns.getContext());
}
