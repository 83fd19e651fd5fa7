// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Options.h"

#include "passes/collectives/attention/RingMode.h"
#include "passes/collectives/chunk/core/ChooseChunks.h"
#include "passes/collectives/core/Buckets.h"
#include "passes/collectives/nodes/core/ChooseSplits.h"
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
  std::unique_ptr<cost::CostModel> model = cost::loadModel(options.topology, message);
  if (!model)
    problems.push_back("--topology: " + StringRef(message).rtrim().str());
  message.clear();
  if (!collectives::BucketCaps::parse(options.bucketCaps.getValue(), message))
    problems.push_back("--bucket-caps: " + message);
  if (!collectives::isRobustness(options.robust))
    problems.push_back("--robust: " + collectives::describeRobustness(options.robust));
  message.clear();
  auto chunks = collectives::ChunkMode::parse(options.chunkCollectives.getValue(), message);
  if (!chunks)
    problems.push_back("--chunk-collectives: " + message);
  else if (chunks->enabled && options.keepCollectives)
    problems.push_back("--keep-collectives and --chunk-collectives exclude each other");
  message.clear();
  auto split = collectives::parseSplitMode(options.splitNodes.getValue(), message);
  if (!split)
    problems.push_back("--split-nodes: " + message);
  else if (*split != collectives::SplitMode::Off) {
    if (options.keepCollectives)
      problems.push_back("--keep-collectives and --split-nodes exclude each other");
    if (std::string missing = model ? collectives::describeMissingNodes(*model) : "";
        !missing.empty())
      problems.push_back("--split-nodes: " + missing);
  }
  message.clear();
  auto windows = collectives::parseSplitMode(options.splitWindows.getValue(), message);
  if (!windows)
    problems.push_back("--split-windows: " + message);
  else if (*windows == collectives::SplitMode::All && options.keepCollectives)
    problems.push_back("--keep-collectives and --split-windows=all exclude each other");
  message.clear();
  auto rings = parseRingMode(options.ringAttention.getValue(), message);
  if (!rings)
    problems.push_back("--ring-attention: " + message);
  else if (*rings != RingMode::Off && *rings != RingMode::Auto && options.keepCollectives)
    problems.push_back("--keep-collectives and --ring-attention=" + options.ringAttention +
                       " exclude each other");
  if (options.moveProducts && options.keepCollectives)
    problems.push_back("--keep-collectives and --move-products exclude each other");
  if (!options.memoryLimit.empty() &&
      parseByteSize(options.memoryLimit.getValue()).value_or(0) == 0)
    problems.push_back("--memory-limit is a number of bytes, e.g. 2GiB, not '" +
                       options.memoryLimit + "'");
  return problems;
}
