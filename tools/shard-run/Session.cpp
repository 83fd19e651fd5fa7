// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <thread>

namespace shardc::run {

namespace {

using Clock = std::chrono::steady_clock;
double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Does a step, and keeps what is wrong here; if the world was given up, all is over.
template <typename Step> void note(std::vector<std::string> &problems, Step step) {
  try {
    step();
  } catch (const std::exception &error) {
    auto *ofRuntime = dynamic_cast<const shardrt::Error *>(&error);
    if (ofRuntime && (ofRuntime->status == SHARDRT_ABORTED || ofRuntime->status == SHARDRT_TIMEOUT))
      throw;
    problems.push_back(error.what());
  }
}

} // namespace

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

Session::Session(const Options &options) : options(options) {
  shardrt_config config = shardrt::defaultConfig();
  config.timeout_s = options.timeout;
  shardrt::Communicator communicator = shardrt::communicatorFromEnvironment(config);
  if (shardrt_communicator_world_size(communicator.get()) == 1)
    return;
  firstRank = shardrt_communicator_rank(communicator.get());
  launched = std::move(communicator);
  progress(std::string("communicator: ") + shardrt_communicator_description(launched.get()));
}

void Session::prepare() {
  std::vector<std::string> problems;
  note(problems, [&] { openArtifact(); });
  if (!artifact) {
    agree(problems);
    return;
  }
  // The mistakes in what follows do not depend on the number of ranks.
  note(problems, [&] { chooseEntry(); });
  if (!isDistributed() || shardrt_communicator_world_size(launched.get()) == world)
    note(problems, [&] { load(); });
  if (spec)
    note(problems, [&] { readInputs(); });
  note(problems, [&] { checkSavePath(options.saveEvery > 0 ? options.saveEvery : options.steps); });
  agree(problems);
  passInputs();
  note(problems, [&] { allocateOutputs(); });
  agree(problems);
}

void Session::openArtifact() {
  artifact.emplace(options.artifact);
  manifest = rt::Manifest::parse(artifact->json());
  world = int(manifest.worldSize);
  auto refuse = [&](int ranks, const char *why) {
    throw UsageError(options.artifact + ": it was compiled for a world of " +
                     std::to_string(world) + " ranks (mesh " + manifest.mesh.str() + "), not " +
                     std::to_string(ranks) + why);
  };
  int processes = launched ? int(shardrt_communicator_world_size(launched.get())) : world;
  if (processes != world)
    refuse(processes, ", as many processes as were started");
  if (options.ranks && *options.ranks != world)
    refuse(*options.ranks, "");
}

void Session::agree(const std::vector<std::string> &problems, const char *topic) {
  if (!isDistributed()) {
    if (!problems.empty())
      throw UsageError(lines(problems));
    return;
  }
  std::string mine;
  for (const std::string &problem : problems)
    mine += problem + '\0';
  // Each problem once, in the order of ranks.
  std::vector<std::pair<std::string, std::vector<int>>> all;
  std::vector<std::string> said = exchange(topic, mine);
  for (size_t rank = 0; rank < said.size(); ++rank)
    for (size_t at = 0; at < said[rank].size();) {
      std::string problem = said[rank].c_str() + at;
      at += problem.size() + 1;
      auto known =
          std::find_if(all.begin(), all.end(), [&](auto &entry) { return entry.first == problem; });
      if (known == all.end())
        known = all.insert(all.end(), {problem, {}});
      known->second.push_back(int(rank));
    }
  if (all.empty())
    return;
  if (!reports())
    throw ToldByRankZero("rank 0 says what is wrong");
  std::vector<std::string> texts;
  for (auto &[problem, ranks] : all) {
    std::string who;
    for (int rank : ranks)
      who += (who.empty() ? "" : ", ") + std::to_string(rank);
    bool common = ranks.size() == said.size() || (ranks.size() == 1 && ranks.front() == 0);
    texts.push_back(common ? problem
                           : (ranks.size() == 1 ? "rank " : "ranks ") + who + ": " + problem);
  }
  throw UsageError(lines(texts));
}

std::vector<std::string> Session::exchange(const char *topic, const std::string &mine) const {
  return shardrt::exchange(launched, topic, mine, options.timeout);
}

void Session::chooseEntry() {
  std::string wanted = options.entry;
  if (trains()) {
    if (!manifest.training)
      throw UsageError("--batches: the program does not train: compile it with a plan that has a "
                       "section train");
    if (wanted.empty())
      wanted = manifest.training->step;
    if (wanted != manifest.training->step)
      throw UsageError("--batches: the entry that trains is " + manifest.training->step + ", not " +
                       wanted);
  }
  for (const rt::EntrySpec &entry : manifest.entries)
    if (!spec && (wanted.empty() || entry.name == wanted))
      spec = &entry;
  if (options.init && (!manifest.training || manifest.training->init.empty()))
    throw UsageError("--init: the program has no initial values: compile it with a plan that has "
                     "`init` in its section train, or give --weights");
  if (!spec) {
    std::vector<std::string> names;
    for (const rt::EntrySpec &entry : manifest.entries)
      names.push_back(entry.name);
    throw UsageError("the program has no entry " + options.entry + "; its entries are " +
                     joined(names));
  }
}

void Session::load() {
  if (!isDistributed()) {
    std::lock_guard lock(endsMutex);
    ends = shardrt::localCommunicators(world);
    if (!abortReason.empty())
      for (shardrt::Communicator &end : ends)
        shardrt_communicator_abort(end.get(), abortReason.c_str());
  }
  ranksModels.resize(ranksHere());
  Clock::time_point begin = Clock::now();
  progress("loading " + manifest.name + " on " + std::to_string(world) + " ranks");
  eachRank([&](size_t index) {
    shardrt_config config = shardrt::defaultConfig();
    config.world_size = world;
    config.rank = rankOf(index);
    config.communicator = isDistributed() ? launched.get() : ends[index].get();
    config.timeout_s = options.timeout;
    config.threads = options.threads;
    if (!options.device.empty())
      config.device = options.device.c_str();
    if (options.recordsEvents())
      config.flags |= SHARDRT_RECORD_EVENTS;
    if (options.check)
      config.flags |= SHARDRT_CHECK_MEMORY;
    if (!options.overlap)
      config.flags |= SHARDRT_NO_COMM_THREAD;
    auto model = std::make_unique<shardrt::Model>(artifact->manifest(), config);
    if (!options.weights.empty())
      model->loadParameters(options.weights);
    if (!options.resume.empty())
      model->resume(options.resume);
    if (options.seed)
      setSeed(*model);
    ranksModels[index] = std::move(model);
  });
  times.loadMs = millisecondsSince(begin);
}

void Session::setSeed(shardrt::Model &model) const {
  int64_t seed = *options.seed;
  shardrt_tensor tensor{};
  tensor.data = &seed;
  tensor.type = SHARDRT_I64;
  tensor.scope = SHARDRT_GLOBAL;
  if (!hasState("random.seed"))
    throw UsageError("--seed: the program draws no random numbers");
  model.setState("random.seed", tensor);
}

void Session::progress(const std::string &text) const {
  if (options.progress && reports())
    std::fprintf(stderr, "shard-run: %s\n", text.c_str());
}

void Session::abort(const std::string &reason) {
  std::lock_guard lock(endsMutex);
  abortReason = reason;
  shardrt_communicator_abort(launched.get(), reason.c_str());
  for (shardrt::Communicator &end : ends)
    shardrt_communicator_abort(end.get(), reason.c_str());
}

void Session::eachRank(const std::function<void(size_t index)> &body) {
  std::mutex mutex;
  std::exception_ptr first;
  bool firstIsOwn = false; // not merely the echo of another rank's failure
  std::vector<std::thread> threads;
  for (size_t index = 0; index < ranksHere(); ++index)
    threads.emplace_back([&, index] {
      try {
        body(index);
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

void Session::initialise() {
  if (!options.init || spec->name == manifest.training->init)
    return; // or it is what is run
  eachRank([&](size_t index) {
    shardrt::Model &model = *ranksModels[index];
    try {
      model.run(manifest.training->init.c_str(), {}, {});
    } catch (const shardrt::Error &) {
      throw; // all ranks know
    } catch (const std::exception &error) {
      abort(error.what());
      throw;
    }
  });
}

bool Session::hasState(const std::string &name) const {
  return std::ranges::any_of(manifest.parameters,
                             [&](const rt::ParameterSpec &state) { return state.name == name; });
}

void Session::allocateOutputs() {
  size_t count = spec->userOutputs.size();
  if (!options.local && !reports()) {
    shardrt_tensor nothing{};
    nothing.scope = SHARDRT_ROOT;
    calls[0].outputs.assign(count, nothing);
    return;
  }
  results.resize(options.local ? ranksHere() : 1);
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
      tensor.scope = options.local     ? SHARDRT_LOCAL
                     : isDistributed() ? SHARDRT_ROOT
                                       : SHARDRT_SHARED;
      calls[rank].outputs.push_back(tensor);
    }
}

void Session::run() {
  std::mutex mutex;
  times.stepMs.assign(size_t(options.steps), 0);
  eachRank([&](size_t index) {
    shardrt::Model &model = *ranksModels[index];
    const Call &call = calls[index];
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
      if (step + 1 == options.steps && !options.save.empty())
        save(model, options.save);
      std::lock_guard lock(mutex);
      times.stepMs[size_t(step)] = std::max(times.stepMs[size_t(step)], ms);
      if (rankOf(index) == 0 && options.progress)
        std::fprintf(stderr, "shard-run: step %d of %d: %.3f ms\n", step + 1, options.steps, ms);
    }
  });
  collect();
}

void Session::save(shardrt::Model &model, const std::string &path) const {
  if (options.savesSharded)
    model.saveSharded(path);
  else
    model.save(path);
}

void Session::collect() {
  for (auto &model : ranksModels)
    total.add(model->get());
  if (!isDistributed())
    return;
  // A rank that waits in vain leaves a flight record, here as in a run.
  ranksModels[0]->barrier();
  std::string steps(reinterpret_cast<const char *>(times.stepMs.data()),
                    times.stepMs.size() * sizeof(double));
  std::string mine(reinterpret_cast<const char *>(&times.loadMs), sizeof(double));
  std::vector<std::string> all = exchange("the times of all ranks", mine + steps);
  for (const std::string &text : all) {
    std::vector<double> ms(text.size() / sizeof(double));
    std::memcpy(ms.data(), text.data(), ms.size() * sizeof(double));
    if (ms.size() != times.stepMs.size() + 1)
      throw std::runtime_error("a rank has run another number of steps: all ranks need the same "
                               "--steps");
    times.loadMs = std::max(times.loadMs, ms[0]);
    for (size_t step = 0; step < times.stepMs.size(); ++step)
      times.stepMs[step] = std::max(times.stepMs[step], ms[step + 1]);
  }
  std::vector<std::string> profiles = exchange("the profile of all ranks", total.encode());
  total = {};
  for (const std::string &text : profiles)
    total.add(Profile::decode(text));
}

void Session::write() {
  std::vector<std::string> problems;
  note(problems, [&] { writeTrace(); });
  note(problems, [&] { writeOutputs(); });
  agree(problems, "whether all ranks have written their files");
}

void Session::writeOutputs() const {
  if (options.outputs.empty())
    return;
  for (size_t rank = 0; rank < results.size(); ++rank) {
    std::string path = options.local ? pathOfRank(options.outputs, rankOf(rank)) : options.outputs;
    writeSafetensors(path, results[rank]);
    progress("wrote " + path);
  }
}

void Session::writeTrace() const {
  if (options.trace.empty())
    return;
  std::vector<const shardrt_model *> all;
  for (auto &model : ranksModels)
    all.push_back(model->get());
  if (isDistributed())
    shardrt::check(shardrt_write_world_trace, ranksModels[0]->get(), options.trace.c_str());
  else
    shardrt::check(shardrt_write_trace, all.data(), all.size(), options.trace.c_str());
  progress("wrote " + options.trace);
}

} // namespace shardc::run
