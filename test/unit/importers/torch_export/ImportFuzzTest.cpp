// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs that parse but make no sense: the importer makes a module or emits an error.
#include "importers/torch_export/import/ProgramImporter.h"
#include "test/unit/importers/torch_export/Models.h"
#include "test/unit/support/archive/Mutations.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::torch_export;

namespace {

TEST(ImportFuzz, Programs) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context
      .loadDialect<aten::AtenDialect, dist::DistDialect, arith::ArithDialect, func::FuncDialect>();
  size_t errors = 0, modules = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &) { return ++errors, success(); });
  std::mt19937_64 random(4);
  for (const char *name :
       {"mlp_dynamic.pt2", "mixed.pt2", "mixed_training.pt2", "gpt2_dynamic.pt2"}) {
    std::string bytes = shardc::test::modelFile(name), json = shardc::test::modelJson(name), error;
    auto archive = Pt2Archive::read(std::as_bytes(std::span(bytes)), error);
    ASSERT_TRUE(archive) << error;
    auto store = archive->takeTensors(error);
    ASSERT_TRUE(store) << error;
    for (int i = 0; i < 1500; ++i) {
      auto program = parseProgram(shardc::test::mutateProgram(json, random), error);
      if (!program)
        continue;
      size_t before = errors;
      OwningOpRef<ModuleOp> module =
          importProgram(*program, *store, {"fuzz.pt2", "consecutive"}, &context);
      ASSERT_TRUE(module || errors > before) << name << " " << i;
      modules += bool(module);
      ASSERT_TRUE(!module || succeeded(verify(*module))) << name << " " << i;
    }
  }
  EXPECT_GT(errors, 500u);
  EXPECT_GT(modules, 100u);
}

} // namespace
