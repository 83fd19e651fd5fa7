// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a session's inputs come from: the files of this process, and what it passes to the runtime.
#include "tools/shard-run/Session.h"

#include <algorithm>
#include <sstream>

namespace shardc::run {

namespace {

/// Parameters that are not part of the artifact.
size_t parametersToLoad(const rt::Manifest &manifest) {
  return size_t(std::count_if(manifest.parameters.begin(), manifest.parameters.end(),
                              [](const rt::ParameterSpec &p) { return p.isWeight(); }));
}

} // namespace

void Session::readRankInputs(int rank, std::vector<FileTensor> &inputs) {
  inputs.assign(spec->inputs.size(), {});
  std::vector<bool> given(inputs.size(), false);
  std::vector<FileTensor> unnamed;
  std::vector<std::string> names, problems;
  for (const rt::TensorSpec &input : spec->inputs)
    names.push_back(input.name);
  for (const std::string &argument : trains() ? options.batches : options.inputs)
    for (FileTensor &tensor : readTensors(pathOfRank(argument, rank))) {
      if (tensor.name.empty()) {
        unnamed.push_back(std::move(tensor));
        continue;
      }
      size_t index = size_t(std::find(names.begin(), names.end(), tensor.name) - names.begin());
      if (index == names.size()) {
        std::vector<std::string> wanted = names;
        if (trains())
          std::erase(wanted, manifest.training->learningRate);
        problems.push_back(argument + ": " + spec->name + " has no input " + tensor.name +
                           "; its inputs are " + joined(wanted));
        continue;
      }
      if (given[index])
        problems.push_back("input " + tensor.name + " is given twice");
      given[index] = true;
      inputs[index] = std::move(tensor);
    }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (isLearningRate(i)) { // the schedule says it
      if (given[i])
        problems.push_back("--batches has " + names[i] + ", which --lr says");
      inputs[i].type = SHARDRT_F64;
      inputs[i].data = &anyRate;
      given[i] = true;
    }
  size_t next = 0;
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!given[i] && next < unnamed.size())
      inputs[i] = std::move(unnamed[next++]);
    else if (!given[i])
      missing.push_back(names[i]);
  }
  if (!missing.empty())
    problems.push_back("no file for these inputs of " + spec->name + ": " + joined(missing));
  if (next < unnamed.size())
    problems.push_back("more files than inputs: " + spec->name + " has " + joined(names));
  bool hasSource = !options.weights.empty() || !options.resume.empty() || options.init;
  if (size_t count = parametersToLoad(manifest); count && !hasSource && spec->readsParameters)
    problems.push_back(
        "no --weights for " + std::to_string(count) +
        " parameters: give the .pt2 archive or a safetensors file" +
        (trains() ? ", or a checkpoint with --resume" : "") +
        (manifest.training && !manifest.training->init.empty() ? ", or let --init make them" : ""));
  if (!problems.empty())
    throw UsageError(lines(problems));
  if (trains())
    checkBatches(inputs);
}

void Session::inferGlobalExtents() {
  // Extents of each rank's inputs.
  std::vector<std::vector<std::vector<int64_t>>> extents(
      size_t(world), std::vector<std::vector<int64_t>>(spec->inputs.size()));
  for (size_t index = 0; index < files.size(); ++index)
    for (size_t i = 0; i < spec->inputs.size(); ++i)
      extents[size_t(rankOf(index))][i] = files[index][i].extents;
  if (isDistributed()) {
    std::string mine;
    for (const std::vector<int64_t> &one : extents[size_t(firstRank)]) {
      mine += std::to_string(one.size()) + " ";
      for (int64_t extent : one)
        mine += std::to_string(extent) + " ";
    }
    std::vector<std::string> all = exchange("the extents of all ranks' inputs", mine);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      std::istringstream words(all[rank]);
      for (std::vector<int64_t> &one : extents[rank]) {
        size_t count = 0;
        words >> count;
        one.resize(std::min<size_t>(count, SHARDRT_MAX_RANK));
        for (int64_t &extent : one)
          words >> extent;
      }
    }
  }
  // The extent of a dim is the sum of its shards' along the axes that split it.
  for (size_t i = 0; i < spec->inputs.size(); ++i) {
    const rt::TensorSpec &input = spec->inputs[i];
    std::vector<int64_t> global(input.rank(), 0);
    for (int rank = 0; rank < world; ++rank) {
      std::optional<Coordinate> coordinate = input.layout.mesh.coordinateOf(rank);
      if (!coordinate || extents[size_t(rank)][i].size() != input.rank())
        continue; // the runtime says what is wrong with the rank's tensor
      for (size_t d = 0; d < input.rank(); ++d) {
        Coordinate along = *coordinate;
        for (unsigned axis : input.layout.axesOfDim(int64_t(d)))
          along[axis] = 0;
        bool onLine = std::all_of(along.begin(), along.end(), [](int64_t c) { return c == 0; });
        if (onLine)
          global[d] += extents[size_t(rank)][i][d];
      }
    }
    for (Call &call : calls)
      call.globalExtents.push_back(global);
  }
}

void Session::readInputs() {
  calls.resize(ranksHere());
  if (!options.local && !reports())
    return; // rank 0 has them
  files.resize(options.local ? ranksHere() : 1);
  for (size_t index = 0; index < files.size(); ++index)
    readRankInputs(rankOf(index), files[index]);
}

void Session::passInputs() {
  if (options.local)
    inferGlobalExtents();
  for (size_t index = 0; index < calls.size(); ++index) {
    if (files.empty()) {
      shardrt_tensor nothing{};
      nothing.scope = SHARDRT_ROOT;
      calls[index].inputs.assign(spec->inputs.size(), nothing);
      continue;
    }
    const std::vector<FileTensor> &mine = files[options.local ? index : 0];
    for (size_t i = 0; i < mine.size(); ++i) {
      shardrt_tensor tensor{};
      tensor.data = const_cast<void *>(mine[i].data);
      tensor.type = mine[i].type;
      size_t batchDims = trains() && !isLearningRate(i) ? 1 : 0;
      tensor.rank = int32_t(mine[i].extents.size() - batchDims);
      tensor.extents = mine[i].extents.data() + batchDims;
      tensor.strides = mine[i].strides.data() + batchDims;
      tensor.scope = options.local     ? SHARDRT_LOCAL
                     : isDistributed() ? SHARDRT_ROOT
                                       : SHARDRT_GLOBAL;
      if (options.local && mine[i].extents.size() == spec->inputs[i].rank())
        tensor.global_extents = calls[index].globalExtents[i].data();
      calls[index].inputs.push_back(tensor);
    }
  }
}

} // namespace shardc::run
