/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Runs the first entry of an artifact, one process for each rank, with an input of ones that only
 * rank 0 has, and prints the first elements of the first output on rank 0.
 *
 *   cc processes.c -I include -lshardrt -o processes
 *   mpirun -n 4 ./processes model.so model.safetensors          (or srun, or torchrun --no-python)
 */
#include "shardrt_launch.h"

#include <stdio.h>
#include <stdlib.h>

static int report(const char *what, shardrt_error *error) {
  fprintf(stderr, "%s: %s\n", what, shardrt_error_message(error));
  shardrt_error_free(error);
  return 1;
}

static size_t elements(const shardrt_shape *shape) {
  size_t count = 1;
  for (int32_t d = 0; d < shape->rank; ++d)
    count *= (size_t)shape->extents[d];
  return count;
}

/* Other ranks pass tensors of this scope, and nothing else. */
static int run(shardrt_model *model, int isRoot, int64_t rows, int64_t columns) {
  shardrt_error *error = NULL;
  shardrt_tensor input = {.scope = SHARDRT_ROOT}, output = {.scope = SHARDRT_ROOT};
  int64_t extents[2] = {rows, columns};
  shardrt_shape shape = {0};
  float *ones = NULL;
  if (isRoot) {
    ones = malloc((size_t)(rows * columns) * sizeof *ones);
    for (int64_t i = 0; i < rows * columns; ++i)
      ones[i] = 1;
    input.data = ones;
    input.type = SHARDRT_F32;
    input.rank = 2;
    input.extents = extents;
    if (shardrt_output_shapes(model, NULL, &input, 1, &shape, NULL, 1, &error))
      return report("output shapes", error);
    output.data = malloc(elements(&shape) * (size_t)shardrt_type_bytes(shape.type) + 1);
    output.type = shape.type;
    output.rank = shape.rank;
    output.extents = shape.extents;
  }
  int failed = 0;
  if (shardrt_run(model, NULL, &input, 1, &output, 1, &error))
    failed = report("run", error);
  if (isRoot && !failed) {
    printf("%zu elements of %s:", elements(&shape), shardrt_type_name(shape.type));
    for (size_t i = 0; i < elements(&shape) && i < 8 && shape.type == SHARDRT_F32; ++i)
      printf(" %g", ((float *)output.data)[i]);
    printf("\n");
  }
  free(output.data);
  free(ones);
  return failed;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s MODEL.so WEIGHTS ROWS COLUMNS (one f32 input, one output)\n",
            argv[0]);
    return 2;
  }
  shardrt_error *error = NULL;
  shardrt_artifact *artifact = NULL;
  shardrt_communicator *communicator = NULL;
  shardrt_model *model = NULL;
  shardrt_config config;
  shardrt_config_init(&config);
  if (shardrt_communicator_from_environment(&config, &communicator, &error))
    return report("joining the other ranks", error);
  config.communicator = communicator;
  config.rank = shardrt_communicator_rank(communicator);
  config.world_size = shardrt_communicator_world_size(communicator);
  int failed = 0;
  if (shardrt_open(argv[1], &artifact, &error) ||
      shardrt_create(shardrt_artifact_manifest(artifact), &config, &model, &error) ||
      shardrt_load_parameters_file(model, argv[2], &error))
    failed = report("loading", error);
  if (!failed)
    failed = run(model, config.rank == 0, atoll(argv[3]), atoll(argv[4]));
  shardrt_destroy(model);
  shardrt_communicator_destroy(communicator);
  shardrt_close(artifact);
  return failed;
}
