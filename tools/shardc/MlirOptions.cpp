// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/MlirOptions.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"

namespace cl = llvm::cl;

cl::OptionCategory &shardc::mlirOptionCategory() {
  static cl::OptionCategory category(
      "Options of MLIR",
      "look into the pipeline: print the program, time passes, reproduce errors");
  return category;
}

static cl::opt<bool> &passStatistics() {
  static cl::opt<bool> option("pass-statistics", cl::desc("Print what passes counted"));
  return option;
}

/// MLIR's options by name, once they are known.
static llvm::StringMap<cl::Option *> &mlirOptions() {
  static llvm::StringMap<cl::Option *> options;
  return options;
}

/// An option of MLIR's that was given; null otherwise.
static cl::Option *givenOption(llvm::StringRef name) {
  cl::Option *option = mlirOptions().lookup(name);
  return option && option->getNumOccurrences() != 0 ? option : nullptr;
}

void shardc::registerMlirOptions(llvm::ArrayRef<cl::SubCommand *> commands) {
  llvm::DenseMap<llvm::StringRef, cl::Option *> before = cl::getRegisteredOptions();
  (void)passStatistics();
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  for (auto [name, option] : cl::getRegisteredOptions())
    if (!before.contains(name))
      mlirOptions()[name] = option;
  // MLIR knows of no commands. Its options become theirs, and are the program's own no longer, of
  // which nothing would come.
  for (const auto &entry : mlirOptions()) {
    cl::Option *option = entry.getValue();
    option->addCategory(mlirOptionCategory());
    cl::SubCommand::getTopLevel().OptionsMap.erase(option->ArgStr);
    for (cl::SubCommand *command : commands)
      command->OptionsMap.try_emplace(option->ArgStr, option);
  }
}

void shardc::applyMlirOptions(mlir::MLIRContext &context) {
  if (cl::Option *option = givenOption("mlir-print-op-on-diagnostic"))
    context.printOpOnDiagnostic(static_cast<cl::opt<bool> *>(option)->getValue());
}

bool shardc::wantsPassStatistics() {
  return passStatistics() || givenOption("mlir-pass-statistics");
}
