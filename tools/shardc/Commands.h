// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commands of shardc. Each registers its subcommand and options when its file is linked; main
// runs the one chosen.
#ifndef SHARDC_TOOLS_SHARDC_COMMANDS_H
#define SHARDC_TOOLS_SHARDC_COMMANDS_H

#include "llvm/Support/CommandLine.h"

namespace shardc {

struct Command {
  llvm::cl::SubCommand *subcommand;
  llvm::cl::OptionCategory *category;
  /// Command lines for the end of its help, each indented by two.
  llvm::StringLiteral examples;
  /// Returns the exit status of the process.
  int (*run)(const char *argv0);
  /// It has MLIR's own options then.
  bool runsPasses = true;
};

/// In the order in which help lists them.
llvm::ArrayRef<Command> allCommands();

Command compileCommand();
Command explainCommand();
Command exportCommand();
Command simulateCommand();

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_COMMANDS_H
