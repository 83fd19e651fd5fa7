// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/PipelineFlags.h"

namespace cl = llvm::cl;

shardc::PipelineFlags::PipelineFlags(OptionGroup &options, cl::SubCommand &command,
                                     cl::OptionCategory &category) {
  for (cl::Option *option : options.all()) {
    if (option->getNumOccurrencesFlag() != cl::ZeroOrMore) {
      option->addCategory(category);
      command.OptionsMap.try_emplace(option->ArgStr, option);
      continue;
    }
    // All lists of pipelines are of text (TextOption), whose elements may stand in braces.
    lists.push_back(std::make_unique<cl::list<std::string>>(
        option->ArgStr, cl::desc(option->HelpStr), cl::value_desc(option->ValueStr),
        cl::sub(command), cl::cat(category), cl::callback([option](const std::string &text) {
          option->addOccurrence(0, option->ArgStr, "{" + text + "}");
        })));
  }
}
