// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Models.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace shardc;

namespace {

/// An op of the dialect that nobody has thought about would be found out by users only.
TEST(LocalizeModels, EveryOpHasALocalForm) {
  DialectRegistry registry;
  registry.insert<aten::AtenDialect>();
  registerLocalizeModels(registry);
  MLIRContext context(registry);
  context.loadDialect<aten::AtenDialect>();
  unsigned ops = 0;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("aten")) {
    // What nobody knows cannot be sharded: placing it is an error.
    if (name.getStringRef() == "aten.opaque")
      continue;
    EXPECT_TRUE(name.hasInterface<LocalizableOpInterface>()) << name.getStringRef().str();
    ++ops;
  }
  EXPECT_GT(ops, 40u);
}

} // namespace
