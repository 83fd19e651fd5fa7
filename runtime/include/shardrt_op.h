/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_op.h: functions in C that compute operators which users register (docs/custom-ops.md).
 *
 *   int32_t geometry_knn(const shardrt_op_call *call) {
 *     int64_t k = 1;
 *     if (!shardrt_op_integer(call, "k", &k))
 *       return call->fail(call, "k is missing");
 *     const float *x = (const float *)call->inputs[0].data;   // 10 x 3, of this rank
 *     int64_t *out = (int64_t *)call->outputs[0].data;
 *     ...
 *     return 0;
 *   }
 *
 * A function is called once for each use of the operator in a run, on every rank, with what that
 * rank has of the tensors. It computes all elements of all outputs from its inputs and arguments,
 * and nothing else: calls may be repeated, left out where nothing reads them, and put in another
 * order. It is called from the thread that runs the rank; ranks of one process call it at the same
 * time.
 *
 * For a program on a device, tensors are memory of the device. The function puts its work on
 * `stream` and returns; it does not wait for it.
 */
#ifndef SHARDRT_OP_H
#define SHARDRT_OP_H

#include "shardrt.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Dense and row-major, of at least the alignment of an element. `data` may be NULL where there are
 * no elements. */
typedef struct shardrt_op_tensor {
  void *data;
  const int64_t *sizes; /* of this rank, `rank` of them */
  int32_t rank;
  shardrt_type type;
} shardrt_op_tensor;

enum {
  SHARDRT_OP_INTEGERS = 1, /* int64_t; a bool is 0 or 1 */
  SHARDRT_OP_REALS = 2,    /* double */
  SHARDRT_OP_TEXT = 3      /* char, with a zero behind the last */
};

/* An argument of the operator that is no tensor, by its name in the operator's schema. Arguments
 * that are None are left out, and so are those that have the default of the schema, where the
 * registration does not give it. */
typedef struct shardrt_op_argument {
  const char *name;
  const void *values;
  int64_t count; /* of a list; 1 of a number; bytes of a text */
  int32_t kind;
  int32_t reserved;
} shardrt_op_argument;

typedef struct shardrt_op_call shardrt_op_call;
struct shardrt_op_call {
  uint64_t struct_bytes; /* sizeof(shardrt_op_call) of the runtime */
  const char *name;      /* "geometry.knn.default" */
  const char *location;  /* module path and source line of the use, for messages */
  const shardrt_op_tensor *inputs;
  const shardrt_op_tensor *outputs;
  const shardrt_op_argument *arguments;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_arguments;
  uint32_t on_device; /* 1 where tensors are memory of a device, 0 on the host */
  void *stream; /* of the device (a CUstream), in whose order the work belongs; NULL on the host */
  /* Calls body(arg, begin, end) for disjoint ranges that cover [0, n) on the threads of the rank,
   * and returns when all are done. No range but the last is shorter than `grain`. */
  void (*parallel_for)(const shardrt_op_call *call,
                       void (*body)(void *arg, int64_t begin, int64_t end), void *arg, int64_t n,
                       int64_t grain);
  /* Says why the function cannot do its work, and returns what it is to return: the run fails with
   * this message on all ranks. */
  int32_t (*fail)(const shardrt_op_call *call, const char *message);
  void *runtime; /* of the runtime */
};

/* Returns 0, or what `fail` has returned; any other number fails the run as well. */
typedef int32_t (*shardrt_op_function)(const shardrt_op_call *call);

/* ---- Helpers, which need no library ---- */

/* The argument of this name; NULL if there is none. */
static inline const shardrt_op_argument *shardrt_op_find(const shardrt_op_call *call,
                                                         const char *name) {
  for (uint32_t i = 0; i < call->n_arguments; ++i)
    if (strcmp(call->arguments[i].name, name) == 0)
      return &call->arguments[i];
  return NULL;
}

/* The one integer of this name; returns 0, and leaves `value` as it is, if there is none. */
static inline int shardrt_op_integer(const shardrt_op_call *call, const char *name,
                                     int64_t *value) {
  const shardrt_op_argument *found = shardrt_op_find(call, name);
  if (!found || found->kind != SHARDRT_OP_INTEGERS || found->count != 1)
    return 0;
  *value = *(const int64_t *)found->values;
  return 1;
}

/* Likewise a real number. */
static inline int shardrt_op_real(const shardrt_op_call *call, const char *name, double *value) {
  const shardrt_op_argument *found = shardrt_op_find(call, name);
  if (!found || found->count != 1 ||
      (found->kind != SHARDRT_OP_REALS && found->kind != SHARDRT_OP_INTEGERS))
    return 0;
  *value = found->kind == SHARDRT_OP_REALS ? *(const double *)found->values
                                           : (double)*(const int64_t *)found->values;
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif /* SHARDRT_OP_H */
