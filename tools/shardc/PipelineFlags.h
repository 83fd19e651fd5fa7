// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of pipelines as flags of a command: the same objects, hence the same names, defaults
// and help.
#ifndef SHARDC_TOOLS_SHARDC_PIPELINEFLAGS_H
#define SHARDC_TOOLS_SHARDC_PIPELINEFLAGS_H

#include "pipeline/Options.h"

#include "llvm/Support/CommandLine.h"

#include <memory>
#include <vector>

namespace shardc {

/// Makes flags of all of a group's options, which gets their values. A list is a flag that may be
/// repeated, each time with one element, which may have commas.
class PipelineFlags {
public:
  PipelineFlags(OptionGroup &options, llvm::cl::SubCommand &command,
                llvm::cl::OptionCategory &category);

private:
  std::vector<std::unique_ptr<llvm::cl::list<std::string>>> lists;
};

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_PIPELINEFLAGS_H
