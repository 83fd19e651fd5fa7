// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI (shardrt.h): arguments are checked for null, exceptions become errors.
#include "runtime/comm/Endpoint.h"
#include "runtime/include/shardrt_launch.h"
#include "runtime/include/shardrt_states.h"
#include "runtime/manifest/ArtifactFile.h"
#include "runtime/model/Model.h"
#include "runtime/model/Trace.h"
#include "runtime/support/Types.h"
#include "runtime/world/Environment.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

using namespace shardc::rt;

struct shardrt_model {
  shardrt_model(const shardrt_manifest &manifest, const shardrt_config &config)
      : model(manifest, config) {}
  Model model;
};

struct shardrt_error {
  shardrt_status status;
  std::string message;
};

struct shardrt_artifact {
  explicit shardrt_artifact(void *library) : library(library) {}
  ~shardrt_artifact() { dlclose(library); }
  void *library;
  const shardrt_manifest *manifest = nullptr;
};

namespace {

constexpr int32_t mostLocalRanks = 4096;

shardrt_status report(shardrt_status status, const std::string &message, shardrt_error **error) {
  if (error)
    *error = new (std::nothrow) shardrt_error{status, message};
  return status;
}

template <typename Action> shardrt_status guarded(shardrt_error **error, Action action) {
  try {
    action();
    return SHARDRT_OK;
  } catch (const Failure &failure) {
    return report(failure.status, failure.message, error);
  } catch (const std::bad_alloc &) {
    return report(SHARDRT_OUT_OF_MEMORY, "out of memory", error);
  } catch (const std::exception &failure) {
    return report(SHARDRT_INTERNAL, failure.what(), error);
  }
}

template <typename T> T &needed(T *pointer, const char *name) {
  if (!pointer)
    throw Failure(SHARDRT_INVALID_ARGUMENT, std::string(name) + " is null");
  return *pointer;
}

/// What the struct was before it had a device and a stream.
constexpr uint64_t configBytes21 = offsetof(shardrt_config, device);

/// A caller's configuration with the defaults of what it does not know.
shardrt_config completed(const shardrt_config &config) {
  if (config.struct_bytes != sizeof config && config.struct_bytes != configBytes21)
    throw Failure(SHARDRT_INVALID_ARGUMENT, "configuration: struct_bytes is " +
                                                std::to_string(config.struct_bytes) +
                                                ": call shardrt_config_init first");
  shardrt_config all{};
  std::memcpy(&all, &config, size_t(config.struct_bytes));
  all.struct_bytes = sizeof all;
  return all;
}

std::span<const shardrt_tensor> tensors(const shardrt_tensor *first, size_t count,
                                        const char *name) {
  if (count > 0)
    needed(first, name);
  return {first, count};
}

} // namespace

shardrt_status shardrt_error_status(const shardrt_error *error) {
  return error ? error->status : SHARDRT_OK;
}
const char *shardrt_error_message(const shardrt_error *error) {
  return error ? error->message.c_str() : "";
}
void shardrt_error_free(shardrt_error *error) { delete error; }

const char *shardrt_status_name(shardrt_status status) { return statusName(status); }

const char *shardrt_version(void) { return SHARDRT_LIBRARY_VERSION; }

int64_t shardrt_type_bytes(shardrt_type type) { return typeBytes(type); }
const char *shardrt_type_name(shardrt_type type) { return typeName(type); }
shardrt_type shardrt_type_from_name(const char *name) { return name ? typeFromName(name) : 0; }

shardrt_status shardrt_open(const char *path, shardrt_artifact **artifact, shardrt_error **error) {
  return guarded(error, [&] {
    needed(path, "path");
    needed(artifact, "artifact") = nullptr;
    // A name without a slash would be searched for in the system's library folders.
    std::string file = std::strchr(path, '/') ? path : std::string("./") + path;
    checkArtifactFile(file);
    void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      std::string reason = dlerror();
      throw Failure(SHARDRT_BAD_FILE, "cannot load the artifact: " + reason);
    }
    auto opened = std::make_unique<shardrt_artifact>(library);
    auto query = reinterpret_cast<shardrt_query_fn>(dlsym(library, "shardrt_query"));
    if (!query)
      throw Failure(SHARDRT_BAD_FILE, file + " is no artifact: it does not export shardrt_query");
    opened->manifest = query();
    if (!opened->manifest)
      throw Failure(SHARDRT_BAD_FILE, file + ": its manifest is null");
    Model::parseArtifact(*opened->manifest);
    *artifact = opened.release();
  });
}

const shardrt_manifest *shardrt_artifact_manifest(const shardrt_artifact *artifact) {
  return artifact ? artifact->manifest : nullptr;
}
void shardrt_close(shardrt_artifact *artifact) { delete artifact; }

shardrt_status shardrt_local_communicators(int32_t world_size, shardrt_communicator **communicators,
                                           shardrt_error **error) {
  return guarded(error, [&] {
    needed(communicators, "communicators");
    if (world_size < 1 || world_size > mostLocalRanks)
      throw Failure(SHARDRT_INVALID_ARGUMENT, "world size " + std::to_string(world_size) +
                                                  " is not in 1 to " +
                                                  std::to_string(mostLocalRanks));
    static std::atomic<uint64_t> worlds{0};
    std::string world = std::to_string(getpid()) + "." + std::to_string(++worlds);
    std::vector<std::unique_ptr<shardrt_communicator>> made;
    for (auto &end : makeLocalWorld(uint32_t(world_size))) {
      made.push_back(std::make_unique<shardrt_communicator>(
          shardrt_communicator{std::make_shared<Endpoint>(std::move(end))}));
      made.back()->endpoint->world = world;
      made.back()->endpoint->description =
          "local, " + std::to_string(world_size) + (world_size == 1 ? " thread" : " threads");
    }
    for (size_t i = 0; i < made.size(); ++i)
      communicators[i] = made[i].release();
  });
}

shardrt_status shardrt_communicator_create(const shardrt_communicator_functions *functions,
                                           void *context, int32_t rank, int32_t world_size,
                                           shardrt_communicator **communicator,
                                           shardrt_error **error) {
  return guarded(error, [&] {
    needed(communicator, "communicator") = nullptr;
    auto end = makeTableCommunicator(needed(functions, "functions"), context, rank, world_size);
    *communicator = new shardrt_communicator{std::make_shared<Endpoint>(std::move(end))};
  });
}

shardrt_status shardrt_communicator_from_environment(const shardrt_config *config,
                                                     shardrt_communicator **communicator,
                                                     shardrt_error **error) {
  return guarded(error, [&] {
    needed(communicator, "communicator") = nullptr;
    shardrt_config used;
    shardrt_config_init(&used);
    if (config)
      used = completed(*config);
    if (!(used.timeout_s > 0))
      throw Failure(SHARDRT_INVALID_ARGUMENT, "timeout_s must be positive");
    World world =
        joinEnvironment(processEnvironment(), used.timeout_s,
                        [used](int32_t rank, int32_t level, const std::string &text) {
                          Log(used.log_level, rank, used.log, used.log_context).write(level, text);
                        });
    auto endpoint = std::make_shared<Endpoint>(std::move(world.communicator));
    endpoint->world = world.id;
    endpoint->description = world.description;
    endpoint->threads = int32_t(world.threads);
    *communicator = new shardrt_communicator{std::move(endpoint)};
  });
}

int32_t shardrt_environment_rank(void) {
  try {
    std::optional<LaunchEnvironment> launch = LaunchEnvironment::read(processEnvironment());
    return launch ? int32_t(launch->rank) : 0;
  } catch (const std::exception &) {
    return -1;
  }
}
int32_t shardrt_communicator_rank(const shardrt_communicator *communicator) {
  return communicator ? int32_t(communicator->endpoint->communicator->rank()) : -1;
}
int32_t shardrt_communicator_world_size(const shardrt_communicator *communicator) {
  return communicator ? int32_t(communicator->endpoint->communicator->worldSize()) : 0;
}
const char *shardrt_communicator_description(const shardrt_communicator *communicator) {
  return communicator ? communicator->endpoint->description.c_str() : "";
}

shardrt_status shardrt_communicator_exchange(shardrt_communicator *communicator,
                                             const shardrt_exchange *exchange,
                                             shardrt_error **error) {
  return guarded(error, [&] {
    Communicator &end = *needed(communicator, "communicator").endpoint->communicator;
    const shardrt_exchange &e = needed(exchange, "exchange");
    std::string_view mine;
    if (e.bytes > 0)
      mine = {static_cast<const char *>(&needed(static_cast<const char *>(e.mine), "mine")),
              size_t(e.bytes)};
    std::vector<std::string> all =
        end.exchange({&needed(e.topic, "topic"), e.run}, mine, deadlineAfter(e.timeout_s));
    for (size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank].size() != mine.size())
        throw Failure(SHARDRT_MISMATCH, std::string(e.topic) + ": rank " + std::to_string(rank) +
                                            " passed " + std::to_string(all[rank].size()) +
                                            " bytes, this rank " + std::to_string(mine.size()));
    char *to = static_cast<char *>(e.all);
    if (!mine.empty())
      needed(to, "all");
    for (size_t rank = 0; rank < all.size() && !mine.empty(); ++rank)
      std::memcpy(to + rank * mine.size(), all[rank].data(), mine.size());
  });
}

void shardrt_communicator_abort(shardrt_communicator *communicator, const char *reason) {
  if (communicator)
    communicator->endpoint->communicator->abort(SHARDRT_ABORTED,
                                                reason ? reason : "aborted by the caller");
}

void shardrt_communicator_destroy(shardrt_communicator *communicator) {
  if (communicator)
    communicator->endpoint->communicator->leave();
  delete communicator;
}

void shardrt_config_init_bytes(shardrt_config *config, uint64_t struct_bytes) {
  shardrt_config defaults{};
  defaults.struct_bytes = std::min<uint64_t>(struct_bytes, sizeof defaults);
  defaults.world_size = 1;
  defaults.timeout_s = 600;
  defaults.log_level = defaultLogLevel();
  if (config)
    std::memcpy(config, &defaults, size_t(defaults.struct_bytes));
}

void(shardrt_config_init)(shardrt_config *config) {
  shardrt_config_init_bytes(config, configBytes21);
}

shardrt_status shardrt_create(const shardrt_manifest *manifest, const shardrt_config *config,
                              shardrt_model **model, shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model") = nullptr;
    *model = new shardrt_model(needed(manifest, "manifest"), completed(needed(config, "config")));
  });
}

void shardrt_destroy(shardrt_model *model) { delete model; }

shardrt_status shardrt_load_parameters_file(shardrt_model *model, const char *path,
                                            shardrt_error **error) {
  return guarded(error, [&] { needed(model, "model").model.loadFile(&needed(path, "path")); });
}

shardrt_status shardrt_load_parameters(shardrt_model *model, shardrt_find_parameter_fn find,
                                       void *context, shardrt_error **error) {
  return guarded(error, [&] {
    if (!find)
      throw Failure(SHARDRT_INVALID_ARGUMENT, "find is null");
    needed(model, "model").model.loadCallback(find, context);
  });
}

shardrt_status shardrt_save(shardrt_model *model, const char *path, shardrt_error **error) {
  return guarded(error, [&] { needed(model, "model").model.save(path ? path : ""); });
}

shardrt_status shardrt_save_sharded(shardrt_model *model, const char *folder,
                                    shardrt_error **error) {
  return guarded(error,
                 [&] { needed(model, "model").model.saveSharded(&needed(folder, "folder")); });
}

shardrt_status shardrt_resume(shardrt_model *model, const char *path, shardrt_error **error) {
  return guarded(error, [&] { needed(model, "model").model.resumeFile(&needed(path, "path")); });
}

shardrt_status shardrt_get_state(shardrt_model *model, const char *name, const shardrt_tensor *to,
                                 shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model").model.getState(&needed(name, "name"), needed(to, "to"));
  });
}

shardrt_status shardrt_set_state(shardrt_model *model, const char *name, const shardrt_tensor *from,
                                 shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model").model.setState(&needed(name, "name"), needed(from, "from"));
  });
}

void shardrt_visit_states(const shardrt_model *model, shardrt_state_fn visit, void *context) {
  if (model && visit)
    model->model.visitStates(visit, context);
}

shardrt_status shardrt_run(shardrt_model *model, const char *entry, const shardrt_tensor *inputs,
                           size_t n_inputs, const shardrt_tensor *outputs, size_t n_outputs,
                           shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model")
        .model.run(entry, tensors(inputs, n_inputs, "inputs"),
                   tensors(outputs, n_outputs, "outputs"));
  });
}

shardrt_status shardrt_output_shapes(shardrt_model *model, const char *entry,
                                     const shardrt_tensor *inputs, size_t n_inputs,
                                     shardrt_shape *global, shardrt_shape *local, size_t n_outputs,
                                     shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model")
        .model.outputShapes(entry, tensors(inputs, n_inputs, "inputs"), global, local, n_outputs);
  });
}

shardrt_status shardrt_input_shard(shardrt_model *model, const char *entry, size_t input,
                                   const int64_t *extents, int32_t rank, shardrt_shape *local,
                                   shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model").model.inputShard(entry, input, extents, rank, needed(local, "local"));
  });
}

shardrt_status shardrt_barrier(shardrt_model *model, shardrt_error **error) {
  return guarded(error, [&] { needed(model, "model").model.barrier(); });
}

void shardrt_visit_events(const shardrt_model *model, shardrt_event_fn visit, void *context) {
  if (model && visit)
    for (const shardrt_event &event : model->model.eventLog().sorted())
      visit(context, &event);
}

void shardrt_clear_events(shardrt_model *model) {
  if (model)
    model->model.clearEvents();
}

shardrt_status shardrt_write_trace(const shardrt_model *const *models, size_t n_models,
                                   const char *path, shardrt_error **error) {
  return guarded(error, [&] {
    std::vector<const EventLog *> logs;
    if (n_models > 0)
      needed(models, "models");
    for (size_t i = 0; i < n_models; ++i)
      logs.push_back(&needed(models[i], "a model").model.eventLog());
    writeTrace(logs, &needed(path, "path"));
  });
}

shardrt_status shardrt_write_world_trace(shardrt_model *model, const char *path,
                                         shardrt_error **error) {
  return guarded(error, [&] { needed(model, "model").model.writeWorldTrace(path); });
}

void shardrt_memory_used(const shardrt_model *model, shardrt_memory *memory) {
  if (model && memory)
    *memory = model->model.memoryUsed();
}
