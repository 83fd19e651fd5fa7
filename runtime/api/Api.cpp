// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI (shardrt.h): arguments are checked for null, exceptions become errors.
#include "runtime/comm/Endpoint.h"
#include "runtime/manifest/ArtifactFile.h"
#include "runtime/model/Model.h"
#include "runtime/model/Trace.h"
#include "runtime/support/Types.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>

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
    std::vector<std::unique_ptr<shardrt_communicator>> made;
    for (auto &end : makeLocalWorld(uint32_t(world_size)))
      made.push_back(std::make_unique<shardrt_communicator>(
          shardrt_communicator{std::make_shared<Endpoint>(std::move(end))}));
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

void shardrt_config_init(shardrt_config *config) {
  if (!config)
    return;
  *config = {};
  config->struct_bytes = sizeof(shardrt_config);
  config->world_size = 1;
  config->timeout_s = 600;
  config->log_level = defaultLogLevel();
}

shardrt_status shardrt_create(const shardrt_manifest *manifest, const shardrt_config *config,
                              shardrt_model **model, shardrt_error **error) {
  return guarded(error, [&] {
    needed(model, "model") = nullptr;
    *model = new shardrt_model(needed(manifest, "manifest"), needed(config, "config"));
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

void shardrt_memory_used(const shardrt_model *model, shardrt_memory *memory) {
  if (model && memory)
    *memory = model->model.memoryUsed();
}
