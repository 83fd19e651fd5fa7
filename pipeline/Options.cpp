// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Options.h"

#include "passes/collectives/core/Buckets.h"
#include "support/ByteSize.h"

using namespace mlir;
using namespace shardc;

std::vector<llvm::cl::Option *> OptionGroup::all() {
  std::vector<llvm::cl::Option *> options;
  for (const auto &entry : OptionsMap)
    options.push_back(entry.second);
  llvm::sort(options, [](const llvm::cl::Option *a, const llvm::cl::Option *b) {
    return a->ArgStr < b->ArgStr;
  });
  return options;
}

std::vector<std::string> shardc::checkOptions(const PipelineOptions &options) {
  std::vector<std::string> problems;
  std::string message;
  if (!cost::loadModel(options.topology, message))
    problems.push_back("--topology: " + StringRef(message).rtrim().str());
  message.clear();
  if (!collectives::BucketCaps::parse(options.bucketCaps.getValue(), message))
    problems.push_back("--bucket-caps: " + message);
  if (!collectives::isRobustness(options.robust))
    problems.push_back("--robust: " + collectives::describeRobustness(options.robust));
  if (!options.memoryLimit.empty() &&
      parseByteSize(options.memoryLimit.getValue()).value_or(0) == 0)
    problems.push_back("--memory-limit is a number of bytes, e.g. 2GiB, not '" +
                       options.memoryLimit + "'");
  return problems;
}
