// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Builders.h"
#include "importers/torch_export/schema/Schema.h"

#include "dialects/aten/Aten.h"

#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;
using namespace shardc::torch_export;

namespace {

class Overloads : public testing::Test {
protected:
  Overloads() { context.loadDialect<aten::AtenDialect>(); }
  MLIRContext context;
};

TEST_F(Overloads, EveryOpExists) {
  for (const Overload &overload : allOverloads()) {
    EXPECT_TRUE(findSchema(overload.name)) << overload.name.str();
    if (!overload.op.empty())
      EXPECT_TRUE(RegisteredOperationName::lookup(overload.op, &context)) << overload.op.str();
  }
}

// What is right for pairs as it is for real numbers is known for those.
TEST_F(Overloads, EveryComplexFormExists) {
  for (const Overload &overload : complexOverloads()) {
    EXPECT_TRUE(findSchema(overload.name)) << overload.name.str();
    if (overload.kind == Overload::Parts)
      EXPECT_TRUE(findOverload(overload.name)) << overload.name.str();
  }
}

// The attributes that `op` takes when none is given.
DictionaryAttr defaultAttributes(OperationName op) {
  alignas(16) char storage[1024] = {};
  if (op.getOpPropertyByteSize() == 0 || size_t(op.getOpPropertyByteSize()) > sizeof storage)
    return {};
  OpaqueProperties properties(storage);
  op.initOpProperties(properties, nullptr);
  op.populateDefaultProperties(properties);
  OpBuilder builder(op.getContext());
  Operation *holder = Operation::create(builder.getUnknownLoc(), op, TypeRange(), ValueRange(),
                                        DictionaryAttr::get(op.getContext()), properties, {}, 0);
  auto attributes = dyn_cast_or_null<DictionaryAttr>(holder->getPropertiesAsAttribute());
  holder->destroy();
  op.destroyOpProperties(properties);
  return attributes;
}

std::string text(Attribute attribute) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  if (attribute)
    attribute.print(stream, /*elideType=*/true);
  return out;
}

// PyTorch's default of an argument in the form an attribute of the same meaning prints.
std::string text(const SchemaArgument &argument, Attribute like, Builder &builder) {
  Argument value = defaultArgument(argument);
  if (isa<FloatAttr>(like))
    return text(builder.getF64FloatAttr(*asReal(value)));
  if (isa<StringAttr>(like))
    return text(builder.getStringAttr(std::get<std::string_view>(value)));
  if (isa<IntegerAttr>(like) && asReal(value))
    return text(builder.getI64IntegerAttr(int64_t(*asReal(value))));
  return "?";
}

// A call leaves out arguments that have PyTorch's default, and MLIR text those that have ODS's.
TEST_F(Overloads, DefaultsOfSchemaAndOdsAgree) {
  Builder builder(&context);
  int compared = 0;
  for (const Overload &overload : allOverloads()) {
    const Schema *schema = findSchema(overload.name);
    if (overload.op.empty() || !schema)
      continue;
    OperationName op(overload.op, &context);
    DictionaryAttr defaults = defaultAttributes(op);
    for (NamedAttribute attribute : defaults ? defaults.getValue() : ArrayRef<NamedAttribute>()) {
      const SchemaArgument *argument = schema->find(attribute.getName().getValue());
      if (!argument || argument->otherwise.kind == Default::Required ||
          argument->otherwise.kind == Default::None)
        continue;
      EXPECT_EQ(text(attribute.getValue()), text(*argument, attribute.getValue(), builder))
          << overload.name.str() << " " << attribute.getName().str();
      ++compared;
    }
    // What ODS says nothing about must be given, None, or false.
    for (const SchemaArgument &argument : schema->arguments)
      if (argument.type == ArgumentType::Bool && argument.otherwise.kind == Default::Bool &&
          llvm::any_of(op.getInterface<aten::SchemaOpInterface>()->getSchemaArguments(),
                       [&](const aten::SchemaArgument &place) {
                         return place.name == StringRef(argument.name);
                       }))
        EXPECT_EQ(argument.otherwise.integer, 0) << overload.name.str();
  }
  EXPECT_GT(compared, 20);
}

} // namespace
