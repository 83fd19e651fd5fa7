// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// shardc: from an exported model, a mesh and a plan to a program for every rank.
#include "tools/shardc/Commands.h"

#include "dialects/interfaces/PassStatistic.h"
#include "lowering/Passes.h"
#include "passes/Passes.h"
#include "tools/shardc/MlirOptions.h"

#include "mlir/Transforms/Passes.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;

static constexpr llvm::StringLiteral allExamples = R"(  shardc export mymodel.py:build -o model.pt2
  shardc compile model.pt2 --mesh dp=2,tp=2 --plan plan.yaml -o model.so
  shardc explain model.pt2 --mesh tp=4 --plan plan.yaml --format text
  shardc simulate graph.pt2 --groups groups.json --topology h100-64 --optimize --memory-limit 70GiB
  shard-run -n 4 model.so --weights model.pt2 --inputs in.safetensors --outputs out.safetensors

`shardc COMMAND --help` lists the options of a command.
)";

/// The end of the help: examples of the command that was named, or of each.
static std::string examplesFor(llvm::StringRef name) {
  for (const shardc::Command &command : shardc::allCommands())
    if (command.subcommand->getName() == name)
      return ("\nEXAMPLES:\n" + command.examples).str();
  return ("\nEXAMPLES:\n" + allExamples).str();
}

llvm::ArrayRef<shardc::Command> shardc::allCommands() {
  static const Command commands[] = {compileCommand(), explainCommand(), exportCommand(),
                                     simulateCommand()};
  return commands;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  std::string examples = examplesFor(argc > 1 ? argv[1] : "");
  cl::extrahelp help(examples);
  cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << "shardc " SHARDC_VERSION " (LLVM " LLVM_VERSION_STRING ")\n";
  });
  // Their names are what MLIR's options select by.
  mlir::registerTransformsPasses();
  shardc::registerAllPasses();
  shardc::registerLoweringPasses();
  llvm::SmallVector<cl::SubCommand *> withPasses;
  for (const shardc::Command &command : shardc::allCommands())
    if (command.runsPasses)
      withPasses.push_back(command.subcommand);
  shardc::registerMlirOptions(withPasses);
  cl::OptionCategory none("Options of shardc");
  cl::HideUnrelatedOptions(none, cl::SubCommand::getTopLevel());
  for (const shardc::Command &command : shardc::allCommands())
    cl::HideUnrelatedOptions({command.category, &shardc::mlirOptionCategory()},
                             *command.subcommand);
  cl::ParseCommandLineOptions(argc, argv, "shardc: a compiler for sharded PyTorch models\n");
  // lld, as a library, resets the options of the process.
  bool statistics = shardc::wantsPassStatistics();
  for (const shardc::Command &command : shardc::allCommands())
    if (*command.subcommand) {
      int status = command.run(argv[0]);
      if (statistics)
        shardc::PassStatistics::get().print(llvm::errs());
      return status;
    }
  llvm::WithColor::error()
      << "name a command: compile, explain, export or simulate (see shardc --help)\n";
  return 2;
}
