// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

namespace shardc::run {

namespace {

using Clock = std::chrono::steady_clock;
double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Started as one of many processes, this program would run all ranks in each of them.
void refuseLaunchers() {
  struct Launcher {
    const char *size, *rank, *name;
  };
  for (const Launcher &l :
       {Launcher{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},
        Launcher{"PMI_SIZE", "PMI_RANK", "mpiexec"}, Launcher{"WORLD_SIZE", "RANK", "torchrun"}}) {
    const char *size = std::getenv(l.size);
    if (size && std::getenv(l.rank) && std::atoi(size) > 1)
      throw UsageError(std::string("started by ") + l.name + " (" + l.size + "=" + size +
                       "), but this shard-run has only the local communicator, whose ranks are "
                       "threads of one process: start it once, by itself");
  }
}

/// Parameters that are not part of the artifact.
size_t parametersToLoad(const rt::Manifest &manifest) {
  return size_t(std::count_if(manifest.parameters.begin(), manifest.parameters.end(),
                              [](const rt::ParameterSpec &p) { return !p.isConstant; }));
}

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

} // namespace

Session::Session(const Options &options)
    : options(options), artifact(options.artifact), manifest(rt::Manifest::parse(artifact.json())),
      world(int(manifest.worldSize)) {
  refuseLaunchers();
  std::vector<std::string> problems;
  auto note = [&](auto &&step) {
    try {
      step();
    } catch (const std::exception &error) {
      problems.push_back(error.what());
    }
  };
  // The mistakes in what follows do not depend on the number of ranks.
  if (options.ranks && *options.ranks != world)
    problems.push_back(options.artifact + ": it was compiled for a world of " +
                       std::to_string(world) + " ranks (mesh " + manifest.mesh.str() + "), not " +
                       std::to_string(*options.ranks));
  note([&] { chooseEntry(); });
  note([&] { load(); });
  if (spec)
    note([&] { readInputs(); });
  if (!problems.empty())
    throw UsageError(lines(problems));
}

void Session::chooseEntry() {
  for (const rt::EntrySpec &entry : manifest.entries)
    if (!spec && (options.entry.empty() || entry.name == options.entry))
      spec = &entry;
  if (!spec) {
    std::vector<std::string> names;
    for (const rt::EntrySpec &entry : manifest.entries)
      names.push_back(entry.name);
    throw UsageError("the program has no entry " + options.entry + "; its entries are " +
                     joined(names));
  }
}

void Session::load() {
  ends = shardrt::localCommunicators(world);
  ranksModels.resize(size_t(world));
  Clock::time_point begin = Clock::now();
  progress("loading " + manifest.name + " on " + std::to_string(world) + " ranks");
  eachRank([&](int rank) {
    shardrt_config config = shardrt::defaultConfig();
    config.world_size = world;
    config.rank = rank;
    config.communicator = ends[size_t(rank)].get();
    config.timeout_s = options.timeout;
    config.threads = options.threads;
    if (options.recordsEvents())
      config.flags |= SHARDRT_RECORD_EVENTS;
    if (options.check)
      config.flags |= SHARDRT_CHECK_MEMORY;
    if (!options.overlap)
      config.flags |= SHARDRT_NO_COMM_THREAD;
    auto model = std::make_unique<shardrt::Model>(artifact.manifest(), config);
    if (!options.weights.empty())
      model->loadParameters(options.weights);
    ranksModels[size_t(rank)] = std::move(model);
  });
  times.loadMs = millisecondsSince(begin);
}

void Session::progress(const std::string &text) const {
  if (options.progress)
    std::fprintf(stderr, "shard-run: %s\n", text.c_str());
}

void Session::abort(const std::string &reason) {
  for (shardrt::Communicator &end : ends)
    shardrt_communicator_abort(end.get(), reason.c_str());
}

std::vector<const shardrt_model *> Session::models() const {
  std::vector<const shardrt_model *> out;
  for (auto &model : ranksModels)
    out.push_back(model->get());
  return out;
}

void Session::eachRank(const std::function<void(int rank)> &body) {
  std::mutex mutex;
  std::exception_ptr first;
  bool firstIsOwn = false; // not merely the echo of another rank's failure
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception &error) {
        auto *shardrtError = dynamic_cast<const shardrt::Error *>(&error);
        bool own = !shardrtError || shardrtError->status != SHARDRT_ABORTED;
        std::lock_guard lock(mutex);
        if (!first || (own && !firstIsOwn)) {
          first = std::current_exception();
          firstIsOwn = own;
        }
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

void Session::readRankInputs(int rank, std::vector<FileTensor> &inputs) {
  inputs.assign(spec->inputs.size(), {});
  std::vector<bool> given(inputs.size(), false);
  std::vector<FileTensor> unnamed;
  std::vector<std::string> names, problems;
  for (const rt::TensorSpec &input : spec->inputs)
    names.push_back(input.name);
  for (const std::string &argument : options.inputs)
    for (FileTensor &tensor : readTensors(pathOfRank(argument, rank))) {
      if (tensor.name.empty()) {
        unnamed.push_back(std::move(tensor));
        continue;
      }
      size_t index = size_t(std::find(names.begin(), names.end(), tensor.name) - names.begin());
      if (index == names.size()) {
        problems.push_back(argument + ": " + spec->name + " has no input " + tensor.name +
                           "; its inputs are " + joined(names));
        continue;
      }
      if (given[index])
        problems.push_back("input " + tensor.name + " is given twice");
      given[index] = true;
      inputs[index] = std::move(tensor);
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
  if (size_t count = parametersToLoad(manifest); count && options.weights.empty())
    problems.push_back("no --weights for " + std::to_string(count) +
                       " parameters: give the .pt2 archive or a safetensors file");
  if (!problems.empty())
    throw UsageError(lines(problems));
}

void Session::inferGlobalExtents() {
  // The extent of a dim is the sum of its shards' along the axes that split it.
  for (size_t i = 0; i < spec->inputs.size(); ++i) {
    const rt::TensorSpec &input = spec->inputs[i];
    std::vector<int64_t> global(input.rank(), 0);
    for (int rank = 0; rank < world; ++rank) {
      std::optional<Coordinate> coordinate = input.layout.mesh.coordinateOf(rank);
      if (!coordinate || files[size_t(rank)][i].extents.size() != input.rank())
        continue; // the runtime says what is wrong with the rank's tensor
      for (size_t d = 0; d < input.rank(); ++d) {
        Coordinate along = *coordinate;
        for (unsigned axis : input.layout.axesOfDim(int64_t(d)))
          along[axis] = 0;
        bool onLine = std::all_of(along.begin(), along.end(), [](int64_t c) { return c == 0; });
        if (onLine)
          global[d] += files[size_t(rank)][i].extents[d];
      }
    }
    for (Call &call : calls)
      call.globalExtents.push_back(global);
  }
}

void Session::readInputs() {
  files.resize(options.local ? size_t(world) : 1);
  for (size_t rank = 0; rank < files.size(); ++rank)
    readRankInputs(int(rank), files[rank]);
  calls.resize(size_t(world));
  if (options.local)
    inferGlobalExtents();
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    const std::vector<FileTensor> &mine = files[options.local ? rank : 0];
    for (size_t i = 0; i < mine.size(); ++i) {
      shardrt_tensor tensor{};
      tensor.data = const_cast<void *>(mine[i].data);
      tensor.type = mine[i].type;
      tensor.rank = int32_t(mine[i].extents.size());
      tensor.extents = mine[i].extents.data();
      tensor.strides = mine[i].strides.data();
      tensor.scope = options.local ? SHARDRT_LOCAL : SHARDRT_GLOBAL;
      if (options.local && mine[i].extents.size() == spec->inputs[i].rank())
        tensor.global_extents = calls[rank].globalExtents[i].data();
      calls[rank].inputs.push_back(tensor);
    }
  }
}

void Session::allocateOutputs() {
  size_t count = spec->userOutputs.size();
  results.resize(options.local ? size_t(world) : 1);
  std::vector<shardrt_shape> global(count), local(count);
  for (size_t rank = 0; rank < results.size(); ++rank) {
    shardrt::check(shardrt_output_shapes, ranksModels[rank]->get(), spec->name.c_str(),
                   static_cast<const shardrt_tensor *>(calls[rank].inputs.data()),
                   calls[rank].inputs.size(), global.data(), local.data(), count);
    for (size_t o = 0; o < count; ++o) {
      const shardrt_shape &shape = options.local ? local[o] : global[o];
      OutputTensor &tensor = results[rank].emplace_back();
      tensor.name = spec->outputs[spec->userOutputs[o]].name;
      tensor.type = shape.type;
      tensor.extents.assign(shape.extents, shape.extents + shape.rank);
      size_t bytes = size_t(shardrt_type_bytes(shape.type));
      for (int64_t extent : tensor.extents)
        bytes *= size_t(extent);
      tensor.bytes.resize(bytes);
    }
  }
  for (size_t rank = 0; rank < calls.size(); ++rank)
    for (OutputTensor &output : results[options.local ? rank : 0]) {
      shardrt_tensor tensor{};
      tensor.data = output.bytes.data();
      tensor.type = output.type;
      tensor.rank = int32_t(output.extents.size());
      tensor.extents = output.extents.data();
      tensor.scope = options.local ? SHARDRT_LOCAL : SHARDRT_SHARED;
      calls[rank].outputs.push_back(tensor);
    }
}

void Session::run() {
  allocateOutputs();
  std::mutex mutex;
  times.stepMs.assign(size_t(options.steps), 0);
  eachRank([&](int rank) {
    shardrt::Model &model = *ranksModels[size_t(rank)];
    const Call &call = calls[size_t(rank)];
    for (int step = 0; step < options.steps; ++step) {
      // Ranks start together, so that a step's time is that of the program alone. Not for one step:
      // then a rank with bad input would be reported as missing from the barrier.
      if (step > 0)
        model.barrier();
      if (step == 1)
        shardrt_clear_events(model.get());
      Clock::time_point begin = Clock::now();
      model.run(spec->name.c_str(), call.inputs, call.outputs);
      double ms = millisecondsSince(begin);
      std::lock_guard lock(mutex);
      times.stepMs[size_t(step)] = std::max(times.stepMs[size_t(step)], ms);
      if (rank == 0 && options.progress)
        std::fprintf(stderr, "shard-run: step %d of %d: %.3f ms\n", step + 1, options.steps, ms);
    }
  });
}

void Session::writeOutputs() const {
  if (options.outputs.empty())
    return;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    std::string path = options.local ? pathOfRank(options.outputs, int(rank)) : options.outputs;
    writeSafetensors(path, results[rank]);
    progress("wrote " + path);
  }
}

void Session::writeTrace() const {
  if (options.trace.empty())
    return;
  std::vector<const shardrt_model *> all = models();
  shardrt::check(shardrt_write_trace, all.data(), all.size(), options.trace.c_str());
  progress("wrote " + options.trace);
}

} // namespace shardc::run
