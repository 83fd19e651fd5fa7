// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops built by the names of ATen's arguments, as importers do: what is not there, or is too much,
// is named.
#include "dialects/aten/Schema.h"
#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shardc;

namespace {

class BuildOp : public testing::Test {
protected:
  BuildOp() : builder(&context) {
    context.loadDialect<aten::AtenDialect, func::FuncDialect>();
    auto type = RankedTensorType::get({4, 6}, builder.getF32Type());
    function = func::FuncOp::create(builder, builder.getUnknownLoc(), "f",
                                    builder.getFunctionType({type}, {}));
    x = function->addEntryBlock()->getArgument(0);
    builder.setInsertionPointToEnd(&function->getBody().front());
  }

  /// The diagnostic that refuses a slice of `operands` with these attributes, or "" if it is built.
  std::string slice(ArrayRef<aten::NamedOperand> operands,
                    ArrayRef<std::pair<StringRef, int64_t>> given) {
    std::string text;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      text += diagnostic.str();
      return success();
    });
    SmallVector<NamedAttribute> attributes;
    for (auto [name, value] : given)
      attributes.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(value)));
    FailureOr<Operation *> op =
        aten::buildOp(builder, builder.getUnknownLoc(), "aten.slice", operands, attributes);
    EXPECT_EQ(succeeded(op), text.empty()) << text;
    return text;
  }

  MLIRContext context;
  OpBuilder builder;
  OwningOpRef<func::FuncOp> function;
  Value x;
};

TEST_F(BuildOp, TakesWhatTheOpHas) {
  EXPECT_EQ(
      slice({{"self", {x}}}, {{"dim", 1}, {"static_start", 1}, {"static_end", 3}, {"step", 1}}),
      "");
}

TEST_F(BuildOp, NamesWhatTheOpHasNot) {
  EXPECT_EQ(slice({{"self", {x}}}, {{"dim", 1}, {"static_start", 1}, {"colour", 3}}),
            "'aten.slice' has no attribute 'colour'");
  // An operand is no attribute.
  EXPECT_EQ(slice({{"self", {x}}}, {{"dim", 1}, {"self", 3}}),
            "'aten.slice' has no attribute 'self'");
  EXPECT_NE(slice({{"self", {x}}, {"other", {x}}}, {{"dim", 1}}), "");
}

TEST_F(BuildOp, NamesWhatIsMissing) {
  EXPECT_EQ(slice({}, {{"dim", 1}}), "'aten.slice' got 0 values for operand 'self'");
  EXPECT_EQ(slice({{"self", {x, x}}}, {{"dim", 1}}),
            "'aten.slice' got 2 values for operand 'self'");
  EXPECT_EQ(slice({{"self", {Value()}}}, {{"dim", 1}}),
            "'aten.slice': operand 'self' is no ranked tensor or index");
}

} // namespace
