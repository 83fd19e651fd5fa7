// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/Passes.h"
#include "pipeline/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace shardc;

namespace {

class SaveStages : public PassInstrumentation {
public:
  SaveStages(StringRef folder, std::string &error) : folder(folder), error(error) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    auto module = dyn_cast<ModuleOp>(op);
    std::optional<Stage> stage = stageCheckedBy(*pass);
    if (!module || !stage || !error.empty())
      return;
    // Half-placed programs are on the way to placed ones, and share their number.
    unsigned number = unsigned(*stage) + (*stage <= Stage::HalfPlaced ? 1 : 0);
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, Twine(number) + "-" + stringifyStage(*stage) + ".mlir");
    std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(path, &error);
    if (!output)
      return;
    module->print(output->os(), OpPrintingFlags().enableDebugInfo());
    output->keep();
  }

private:
  std::string folder;
  std::string &error;
};

} // namespace

std::unique_ptr<PassInstrumentation> shardc::createSaveStages(StringRef folder,
                                                              std::string &error) {
  return std::make_unique<SaveStages>(folder, error);
}
