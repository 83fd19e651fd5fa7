/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Checkpoints, and the values of parameters, buffers and states by their names (docs/training.md).
 * A state is what a program keeps from run to run and no file with weights has: an optimizer's
 * moments, the number of steps, the position of a random generator. Loading weights gives every
 * state its initial value; states can be read and set before that. Since 2.3. */
#ifndef SHARDRT_STATES_H
#define SHARDRT_STATES_H

#include "shardrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes parameters, buffers and saved states to one safetensors file, with the names and shapes
 * that they have on a single device. Rank 0 writes it; `path` is not looked at elsewhere. The file
 * is made beside `path`, brought to the disk and renamed: one that is there stays complete until
 * then, also when the disk is full (SHARDRT_BAD_FILE on all ranks, which can go on). Collective. */
SHARDRT_API shardrt_status shardrt_save(shardrt_model *model, const char *path,
                                        shardrt_error **error);

/* Reads such a file, which every rank opens: parameters, buffers and states, for any mesh and
 * number of ranks. Missing names, unknown ones, wrong shapes and wrong types are all reported in
 * one error, and then the model keeps what it had. The call is not collective. A program without
 * states loads a checkpoint as weights, by shardrt_load_parameters_file. */
SHARDRT_API shardrt_status shardrt_resume(shardrt_model *model, const char *path,
                                          shardrt_error **error);

/* Copies a value to `to`, whose type and extents must be those of the value. Of the scopes
 * SHARDRT_GLOBAL and SHARDRT_ROOT the call is collective. */
SHARDRT_API shardrt_status shardrt_get_state(shardrt_model *model, const char *name,
                                             const shardrt_tensor *to, shardrt_error **error);

/* Copies a value from `from`: of SHARDRT_GLOBAL this rank's part of it, of SHARDRT_LOCAL all. Every
 * rank sets the same. The call is not collective, unless all ranks pass SHARDRT_ROOT: then they get
 * the one number that rank 0 has, such as a seed; elsewhere `from` is not looked at. Ranks that
 * differ in `random.seed` or `random.offset` fail together, with their values, before they draw
 * the first number. */
SHARDRT_API shardrt_status shardrt_set_state(shardrt_model *model, const char *name,
                                             const shardrt_tensor *from, shardrt_error **error);

enum { SHARDRT_PARAMETER = 0, /* or a buffer */ SHARDRT_STATE = 1 };
enum { SHARDRT_STATE_MUTABLE = 1u, /* runs change it */ SHARDRT_STATE_SAVED = 2u };
typedef struct shardrt_state {
  const char *name; /* valid while the model lives */
  int32_t kind;     /* SHARDRT_PARAMETER or SHARDRT_STATE */
  uint32_t flags;   /* SHARDRT_STATE_MUTABLE, SHARDRT_STATE_SAVED */
  shardrt_shape global, local;
} shardrt_state;
typedef void (*shardrt_state_fn)(void *context, const shardrt_state *state);
/* Visits parameters, buffers and states in the manifest's order; constants are none of them. */
SHARDRT_API void shardrt_visit_states(const shardrt_model *model, shardrt_state_fn visit,
                                      void *context);

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_STATES_H */
