/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Runs the first entry of an artifact on all its ranks, as threads of this process, with inputs
 * of ones, and prints the first elements of each output.
 *
 *   cc run.c -I include -lshardrt -lpthread -o run && ./run model.so model.safetensors
 */
#include "shardrt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TENSORS = 16, MOST_RANKS = 64 };

struct job {
  const shardrt_manifest *manifest;
  const char *weights;
  shardrt_communicator *communicator;
  int32_t rank, world;
  const shardrt_tensor *inputs, *outputs;
  size_t n_inputs, n_outputs;
  shardrt_model *model;
  int failed;
};

static int report(const struct job *job, const char *what, shardrt_error *error) {
  fprintf(stderr, "rank %d: %s: %s\n", (int)job->rank, what, shardrt_error_message(error));
  shardrt_error_free(error);
  return 1;
}

static int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text && atoi(text) > 0 ? atoi(text) : otherwise;
}

static int create(struct job *job) {
  shardrt_error *error = NULL;
  shardrt_config config;
  shardrt_config_init(&config);
  config.world_size = job->world;
  config.rank = job->rank;
  config.communicator = job->communicator;
  if (shardrt_create(job->manifest, &config, &job->model, &error))
    return report(job, "create", error);
  if (job->weights && shardrt_load_parameters_file(job->model, job->weights, &error))
    return report(job, "load", error);
  return 0;
}

/* One thread for each rank. Every rank gets the whole inputs and takes its part of them; outputs
 * are one buffer, to which each rank writes what it owns. */
static void *run(void *arg) {
  struct job *job = arg;
  shardrt_error *error = NULL;
  if (shardrt_run(job->model, NULL, job->inputs, job->n_inputs, job->outputs, job->n_outputs,
                  &error))
    job->failed = report(job, "run", error);
  return NULL;
}

static void print(size_t i, const shardrt_tensor *tensor) {
  size_t count = 1;
  for (int32_t d = 0; d < tensor->rank; ++d)
    count *= (size_t)tensor->extents[d];
  printf("output %zu: %zu elements of %s:", i, count, shardrt_type_name(tensor->type));
  for (size_t e = 0; e < count && e < 8 && tensor->type == SHARDRT_F32; ++e)
    printf(" %g", ((float *)tensor->data)[e]);
  printf("\n");
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr,
            "usage: %s MODEL.so [WEIGHTS]\n"
            "  environment: WORLD=4 ROWS=8 COLUMNS=6 OUTPUTS=1 (one f32 input)\n",
            argv[0]);
    return 2;
  }
  int32_t world = number("WORLD", 4);
  size_t n_outputs = (size_t)number("OUTPUTS", 1);
  int64_t extents[2] = {number("ROWS", 8), number("COLUMNS", 6)};
  if (world < 1 || world > MOST_RANKS || n_outputs > MOST_TENSORS)
    return 2;
  shardrt_error *error = NULL;
  shardrt_artifact *artifact = NULL;
  shardrt_communicator *communicators[MOST_RANKS];
  struct job jobs[MOST_RANKS] = {{0}};
  if (shardrt_open(argv[1], &artifact, &error) ||
      shardrt_local_communicators(world, communicators, &error))
    return report(&jobs[0], "open", error);

  size_t count = (size_t)(extents[0] * extents[1]);
  float *ones = malloc((count + 1) * sizeof *ones);
  for (size_t i = 0; i < count; ++i)
    ones[i] = 1;
  shardrt_tensor input = {.data = ones, .type = SHARDRT_F32, .rank = 2, .extents = extents};
  input.scope = SHARDRT_GLOBAL;
  shardrt_tensor outputs[MOST_TENSORS] = {{0}};
  shardrt_shape shapes[MOST_TENSORS];

  int failed = 0;
  for (int32_t r = 0; r < world; ++r) {
    struct job job = {.manifest = shardrt_artifact_manifest(artifact),
                      .weights = argc > 2 ? argv[2] : NULL,
                      .communicator = communicators[r],
                      .rank = r,
                      .world = world,
                      .inputs = &input,
                      .outputs = outputs,
                      .n_inputs = 1,
                      .n_outputs = n_outputs};
    jobs[r] = job;
    failed |= create(&jobs[r]);
  }
  if (!failed &&
      shardrt_output_shapes(jobs[0].model, NULL, &input, 1, shapes, NULL, n_outputs, &error))
    failed = report(&jobs[0], "output shapes", error);
  for (size_t i = 0; !failed && i < n_outputs; ++i) {
    size_t bytes = (size_t)shardrt_type_bytes(shapes[i].type);
    for (int32_t d = 0; d < shapes[i].rank; ++d)
      bytes *= (size_t)shapes[i].extents[d];
    outputs[i].data = malloc(bytes + 1);
    outputs[i].type = shapes[i].type;
    outputs[i].rank = shapes[i].rank;
    outputs[i].extents = shapes[i].extents;
    outputs[i].scope = SHARDRT_SHARED;
  }

  pthread_t threads[MOST_RANKS];
  for (int32_t r = 0; !failed && r < world; ++r)
    pthread_create(&threads[r], NULL, run, &jobs[r]);
  for (int32_t r = 0, started = !failed; started && r < world; ++r) {
    pthread_join(threads[r], NULL);
    failed |= jobs[r].failed;
  }
  for (size_t i = 0; i < n_outputs; ++i) {
    if (!failed)
      print(i, &outputs[i]);
    free(outputs[i].data);
  }
  for (int32_t r = 0; r < world; ++r) {
    shardrt_destroy(jobs[r].model);
    shardrt_communicator_destroy(communicators[r]);
  }
  shardrt_close(artifact);
  free(ones);
  return failed;
}
