/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_program.h: the contract between generated code and the runtime (internal; users need only
 * shardrt.h).
 *
 * An artifact is one shared object for every rank. It exports one function,
 *
 *     const shardrt_manifest *shardrt_query(void);
 *
 * whose result, and all tables behind it, are constants of the artifact. It has no undefined symbol
 * into libshardrt: generated code gets a table of services (shardrt_services) through its frame.
 * (libm and libc may be imported.)
 *
 * Terms
 *   rank         number of a process or thread of the run, 0 .. world-1; ranks and mesh coordinates
 * are related by the manifest's mesh (row-major over its axes unless it lists devices). group a
 * partition of (some of) the ranks into ordered sets; a collective runs once in each set. A rank's
 * position is its index within its set's list. A mesh axis, or several, is such a partition; an
 * imported rank list too. entry        one function a user can run ("forward"). variant      the
 * code of an entry for one distinct tuple of static local extents; each rank runs exactly one.
 *   symbol       a named integer that a dynamic dimension of an input defines for one run (the same
 * value on all ranks).
 *
 * Units: sizes named `bytes` and `offset` are bytes; extents and strides are elements. All pointers
 * to tensor data are dense row-major. bool is one byte.
 *
 * Alignment: arena, persistent memory: SHARDRT_ARENA_ALIGNMENT bytes, 256 on a device. inputs[],
 * parameters[], outputs[]: the element's own size only (mapped files are used in place), so emit
 * vector accesses with element alignment for them.
 *
 * Versions: SHARDRT_PROGRAM_ABI changes whenever a struct or the meaning of a field here changes;
 * the runtime refuses others.
 */
#ifndef SHARDC_RUNTIME_ABI_SHARDRT_PROGRAM_H
#define SHARDC_RUNTIME_ABI_SHARDRT_PROGRAM_H

#include "../include/shardrt.h"
#include "../include/shardrt_op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDRT_PROGRAM_ABI 10u
#define SHARDRT_ARENA_ALIGNMENT 4096
#define SHARDRT_NO_VARIANT 0xffffffffu

/* ---- Collectives ---- */

/* Kinds (SHARDRT_ALL_GATHER ...) and reductions (SHARDRT_SUM ...) are those of shardrt.h.
 *
 * Reductions run over positions 0, 1, 2, ... in this order on every rank, so results do not depend
 * on timing and are the same bits on all ranks. bf16 and f16 accumulate in f32 and round once.
 * (Where the caller's own communicator reduces, order and rounding are its own.) */

typedef struct shardrt_group {
  const char *name;          /* for messages, e.g. "tp" or "dp,tp" */
  const uint32_t *set_begin; /* n_sets + 1 offsets into `ranks` */
  const uint32_t *ranks; /* members of set i: ranks[set_begin[i] .. set_begin[i+1]), by position;
                            each rank at most once */
  uint32_t n_sets;
  uint32_t reserved;
} shardrt_group;

/* What is static about one tensor of a collective. */
typedef struct shardrt_collective_operand {
  shardrt_type type;
  int32_t rank;        /* dimensions of the tensor, 0 .. SHARDRT_MAX_RANK */
  int32_t gather_dim;  /* all_gather, all_to_all: the dim that is concatenated. permute: the dim
                        * whose extent differs between  members, or -1. Otherwise -1. */
  int32_t scatter_dim; /* reduce_scatter, all_to_all: the dim that is split. Otherwise -1. For an
                        * all_to_all it may be gather_dim: then pairs of members have counts of
                        * their own */
} shardrt_collective_operand;

/* One collective of the program: a constant of the artifact. */
typedef struct shardrt_collective {
  const char *name;     /* unique in the artifact, e.g. "all_reduce.17" */
  const char *location; /* module path and source line, for messages */
  const shardrt_collective_operand *operands;
  const uint32_t
      *permutation; /* permute: n_pairs pairs (source position, target position); a target occurs at
                     * most once. A member that is no target gets zeros. Otherwise NULL. */
  uint32_t kind;
  uint32_t reduction;  /* all_reduce, reduce_scatter; otherwise SHARDRT_REDUCE_NONE */
  uint32_t group;      /* index into shardrt_program.groups */
  uint32_t n_operands; /* may be 0 */
  uint32_t root;       /* broadcast: position of the source */
  uint32_t n_pairs;
  uint64_t reserved;
} shardrt_collective;

/* clang-format off */
/*
 * What varies from call to call, one for each operand, in its order. `extents` are the *full* extents:
 * those of the tensor with both the gather and the scatter dim whole. With p this rank's position and n
 * the size of its set, the shapes are the full extents, except:
 *
 *   kind            `in`                      `out`
 *   all_gather      gather_dim: gather[p]     (full)
 *   all_reduce      (full)                    (full)
 *   reduce_scatter  (full)                    scatter_dim: scatter[p]
 *   all_to_all      gather_dim: gather[p]     scatter_dim: scatter[p]
 *   broadcast       (full)                    (full)
 *   permute         gather_dim: gather[p]     gather_dim: gather[source of p], or gather[p] and zeros if
 *                                             p has no source
 *
 * An all_to_all whose gather_dim is its scatter_dim d: extents[d] is what this rank has of `in` along d, of
 * which the first scatter[0] elements go to member 0, the next scatter[1] to member 1, and so on; what is behind
 * them all stays where it is. `out` has, one after the other, gather[q] elements of each member q: scatter[p] of
 * member q, and zeros behind them where there is `room`. Each rank passes its own two tables, or NULL for both, where every
 * piece is extents[d] / n.
 *
 * Of the others, `gather` and `scatter` have n entries, which sum to the full extent of their dim (not for permute); NULL
 * stands for the rule "chunk" of the full extent N: with c = ceil(N/n), member r has
 * max(0, min(N, (r+1)c) - rc) (permute: NULL means that all members have the full extent). A dim of k blocks
 * (S(d, blocks = k)) is passed as two dims [k, N/k], of which the second is gathered or scattered.
 *
 * `in` and `out` must not overlap, but may be the same pointer for all_reduce and broadcast, and `in` may be
 * exactly its own place inside `out` for an all_gather whose shard is contiguous there. Either may be NULL
 * where its shape has no element. Every member of a set must pass the same full extents and tables, but for
 * those of a dim that is both cut and concatenated. The runtime reads these structs, `extents`, `gather` and
 * `scatter` only during the call of start or collective (they may lie on the stack); it reads `in` and writes
 * `out` until the wait.
 */
/* clang-format on */
typedef struct shardrt_collective_tensor {
  const void *in;
  void *out;
  const int64_t *extents;
  const int64_t *gather;
  const int64_t *scatter;
  int64_t room; /* an all_to_all whose gather_dim is its scatter_dim, and is 0: how much room `out`
                 * has along it, where that may be more than arrives; what is behind becomes zero.
                 * Otherwise 0 */
} shardrt_collective_tensor;

/* ---- Matrix products ---- */

/* For every batch b: C = alpha * op(A) * op(B) + beta * C + bias.
 *
 * op(A) is m x k, op(B) is k x n, C is m x n, all row-major: element (i, j) is at [i * ld + j]; a
 * transposed A is stored k x m, a transposed B n x k.
 *
 * f32, f64: as BLAS. bf16, f16: products accumulate in f32, bias is of the same type, C is rounded
 * once.
 *
 * m, n, k and batch may be 0 (k = 0: C = beta * C + bias). beta = 0: C is not read. */
typedef struct shardrt_gemm {
  const void *a;
  const void *b;
  void *c;
  /* NULL, n elements added to every row (bias_along_m = 0), or m elements added to every column. */
  const void *bias;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;                /* elements */
  int64_t batch;                        /* number of products, 1 for a plain one */
  int64_t stride_a, stride_b, stride_c; /* elements between batches; 0 is allowed for a and b */
  double alpha, beta;
  shardrt_type type; /* of A, B, C and bias */
  uint8_t transpose_a;
  uint8_t transpose_b;
  uint8_t bias_along_m;
  uint8_t reserved;
} shardrt_gemm;

/* ---- Kernels of a device ---- */

/* Programs for a device carry the code of their kernels as data, in one or several forms; a device
 * takes the image that fits it best. */
enum {
  SHARDRT_IMAGE_CUBIN = 1,  /* for the chip and later ones of its generation */
  SHARDRT_IMAGE_PTX = 2,    /* for the chip and later ones */
  SHARDRT_IMAGE_BITCODE = 3 /* LLVM bitcode for nvptx64 after optimisation: the emulated device */
};

typedef struct shardrt_device_image {
  const void *data; /* PTX ends with a zero, which `bytes` counts */
  uint64_t bytes;
  uint32_t format;
  uint32_t chip; /* 90 for sm_90; 0 for bitcode */
} shardrt_device_image;

/* A function that every image has. Its parameters are: the address of the run's error word (a
 * uint64_t in the device's memory), the number of the launch (uint32_t), and then n_params of its
 * own.
 *
 * What the program meets with (an index out of range, say) a kernel writes into the error word, by
 * a compare-and-swap with 0 so that one failure is kept: (number of the launch + 1) << 32 | number
 * of the message. It does nothing with what it could not do, and goes on. */
typedef struct shardrt_kernel {
  const char *name;
  const char *const *messages;
  uint32_t n_messages;
  uint32_t n_params;
  uint32_t block[3];     /* threads of a block */
  uint32_t shared_bytes; /* dynamic shared memory of a block */
} shardrt_kernel;

typedef struct shardrt_launch {
  const char *location; /* where in the model, for the message of a failure */
  /* Addresses of the values of the kernel's own parameters, read during the call: a pointer, or a
   * number of the size that the parameter has. */
  const void *const *params;
  uint32_t kernel;  /* index into shardrt_program.kernels */
  uint32_t grid[3]; /* blocks; nothing runs if one is 0 */
} shardrt_launch;

/* ---- Services: what generated code may call ---- */

/* `runtime` is shardrt_frame.runtime. Unless said otherwise a service is called from the thread
 * that runs the entry. A non-zero int32_t result means failure: it is recorded (see `fail`), and
 * the program should return it soon. */
typedef struct shardrt_services {
  uint64_t struct_bytes;

  /* Starts a collective and returns at once; its progress is made by another thread. Every rank of
   * the group must start the same collectives in the same order. Never fails: an error is the
   * result of the wait. A rank that is in no set of the group gets a token that is complete. */
  uint64_t (*start)(void *runtime, const shardrt_collective *collective,
                    const shardrt_collective_tensor *tensors);
  /* Blocks until the collective is complete. Each token is waited for at most once; what was not
   * waited for when `run` returns is waited for by the runtime. */
  int32_t (*wait)(void *runtime, uint64_t token);
  /* Start and wait in one, without a change of thread: for a collective with nothing to overlap. */
  int32_t (*collective)(void *runtime, const shardrt_collective *collective,
                        const shardrt_collective_tensor *tensors);

  /* Calls body(arg, begin, end) for disjoint ranges that cover [0, n), on several threads, and
   * returns when all are done. No range but the last is shorter than `grain` (>= 1). Called inside
   * a body, it runs as one range on the calling thread. */
  void (*parallel_for)(void *runtime, void (*body)(void *arg, int64_t begin, int64_t end),
                       void *arg, int64_t n, int64_t grain);
  /* Uses all threads of the rank; called inside a parallel_for body, only the calling one. It reads
   * *gemm only during the call. */
  int32_t (*gemm)(void *runtime, const shardrt_gemm *gemm);

  /* Records that the program met bad data (an index out of range, say) and returns the status that
   * is kept: that of the first failure of this call. May be called from a parallel_for body, any
   * number of times; after the first it costs a load.
   *
   * The record is read once, when `run`, `plan` or `prepare` has returned, and makes that call fail
   * whatever it returned. So a kernel that records something skips what it cannot do and the
   * program goes on: there is no need to look after each kernel, nor to carry statuses. Nothing
   * that is computed after a failure leaves the rank: start and collective send nothing any more,
   * and wait and collective return the status, at which the program should return. */
  int32_t (*fail)(void *runtime, const char *location, const char *message);

  /* Op number `op` of shardrt_entry.ops begins now (and the one before it ends). Costs a store when
   * nothing is recorded; says in traces, profiles and messages about stuck ranks where a rank is.
   * Optional, but call it for every kernel worth a name. */
  void (*mark)(void *runtime, uint32_t op);

  /* Buffer number `slot` of the calling thread: at least `bytes`, aligned to 64, contents
   * undefined. It is kept from call to call and grows when asked for more, so that a program that
   * runs again allocates nothing; asking for a slot again ends the use of what it gave before. For
   * what a kernel needs per thread and a stack cannot hold. NULL: there is no memory, which is
   * recorded (see `fail`); leave the kernel. May be called from a parallel_for body. */
  void *(*scratch)(void *runtime, uint32_t slot, uint64_t bytes);

  /* Puts a kernel into the order of the device's work; returns before it has run. Called by the
   * thread that runs the entry, in programs for a device only, in which arena, parameters, inputs,
   * outputs and scratch are memory of the device: scratch is then one buffer for each slot, whose
   * use ends, in the order of launches, where the slot is asked for again. */
  int32_t (*launch)(void *runtime, const shardrt_launch *launch);

  /* From here on `run` writes outputs that are new values of parameters. Returns the status of what
   * has failed so far, with which the program should return: parameters are as they were then. A
   * call that fails later leaves them in between, and the runtime refuses to go on with them. On a
   * device, what kernels have met is known when the run is complete, and not yet here. */
  int32_t (*commit)(void *runtime);

  /* Waits until what was launched before is done, and copies `count` numbers from where it left
   * them into `sizes`, memory of the host: sizes for a collective that depend on values. A number
   * below 0 or above `at_most` is a failure of the program. */
  int32_t (*read_sizes)(void *runtime, int64_t *sizes, const void *from, int64_t count,
                        int64_t at_most);

  /* Calls a function that a user has registered. The program has filled in what says of which op;
   * the runtime fills in the rest. A number that is not 0 is a failure of the program. */
  int32_t (*call_op)(void *runtime, shardrt_op_call *call, shardrt_op_function function);
} shardrt_services;

/* ---- Frames ---- */

/* Everything one call of `run`, `plan` or `prepare` sees. Owned by the runtime, which leaves it as
 * it is during the call; generated code writes only what is said. */
typedef struct shardrt_frame {
  const shardrt_services *services;
  void *runtime;       /* first argument of every service */
  uint8_t *arena;      /* run: at least arena_bytes, contents undefined */
  uint8_t *persistent; /* variant.persistent_bytes, written by prepare, read by run */
  /* This rank's shards, in the order of the entry's inputs in the manifest; read only. An empty
   * shard may be NULL. */
  const void *const *inputs;
  /* This rank's slices, dense, in the order of the manifest's parameters (embedded constants that
   * need slicing are among them); read only, but for those that an output updates. */
  void *const *parameters;
  /* This rank's shards, dense; written by run. An output that the manifest says to update a
   * parameter is that parameter's memory, and written behind `commit` only. Others overlap nothing
   * else. */
  void *const *outputs;
  const int64_t *symbols; /* values, in the order of the manifest's symbols */
  /* variant.n_offsets entries, written by plan, read by run: arena offsets of buffers whose place
   * depends on symbols, or anything else worth computing once per tuple of symbols. */
  int64_t *offsets;
  uint64_t arena_bytes;       /* written by plan; else variant.arena_bytes */
  const int64_t *coordinates; /* this rank's, one for each axis of the manifest's mesh */
  int64_t rank;
  int64_t world;
  int64_t threads; /* threads that parallel_for uses, >= 1 */
  uint64_t seed;   /* random numbers: seed and offset of this run, equal on all ranks */
  uint64_t seed_offset;
  uint64_t reserved[4];
} shardrt_frame;

/* ---- Programs ---- */

/* A name for a piece of a program, for traces and messages. */
typedef struct shardrt_op {
  const char *name;     /* e.g. "linear+gelu" */
  const char *location; /* module path and source line */
} shardrt_op;

/* A piece of a call as the compiler's cost model expects it, for traces. */
typedef struct shardrt_span {
  const char *name;
  const char *location; /* module path and source line, may be "" */
  double start_us;      /* from the beginning of the call */
  double duration_us;
  int32_t stream; /* SHARDRT_STREAM_COMPUTE, _COMM or _WAIT of shardrt.h */
  int32_t reserved;
} shardrt_span;

typedef struct shardrt_variant {
  /* Computes outputs from inputs and parameters. 0, or the failing service's result. */
  int32_t (*run)(shardrt_frame *frame);
  /* NULL if nothing depends on symbols. Otherwise fills frame->arena_bytes and frame->offsets from
   * frame->symbols; inputs, outputs and arena are not set. Its result is cached per tuple of
   * symbols. 0, or the result of services->fail. */
  int32_t (*plan)(shardrt_frame *frame);
  /* NULL if persistent_bytes is 0. Called once after parameters are loaded, before the first run,
   * with parameters and persistent set (prepacked weights), and again into the same memory after
   * each run that updated parameters. May use parallel_for. */
  int32_t (*prepare)(shardrt_frame *frame);
  uint64_t arena_bytes; /* when plan is NULL */
  uint64_t persistent_bytes;
  uint64_t n_offsets;
} shardrt_variant;

typedef struct shardrt_entry {
  const char *name; /* as in the manifest */
  const shardrt_variant *variants;
  /* One for each rank of the world; SHARDRT_NO_VARIANT: the rank has nothing to do here (it is
   * outside the mesh). */
  const uint32_t *variant_of_rank;
  const shardrt_op *ops; /* names for services->mark */
  uint32_t n_variants;
  uint32_t n_ops;
  const shardrt_span *predicted; /* NULL if nothing was predicted */
  uint64_t n_predicted;
} shardrt_entry;

/* Data that is part of the artifact: named by parameters of the manifest whose source is
 * "constant"; the runtime slices it like any weight. (Constants that every rank uses whole can be
 * plain data of the generated code and need no entry here.) */
typedef struct shardrt_constant {
  const char *name;
  const void *data; /* dense row-major, global */
  const int64_t *extents;
  uint64_t bytes;
  shardrt_type type;
  int32_t rank;
} shardrt_constant;

/* All tables of an artifact. The manifest's JSON and these must agree (same entries in the same
 * order); the runtime checks. */
typedef struct shardrt_program {
  uint64_t struct_bytes;
  const shardrt_entry *entries;
  const shardrt_group *groups;
  const shardrt_constant *constants;
  const shardrt_collective *collectives; /* every collective of every entry: checked at create */
  uint32_t n_entries;
  uint32_t n_groups;
  uint32_t n_constants;
  uint32_t n_collectives;
  const shardrt_device_image *images; /* of a program for a device */
  const shardrt_kernel *kernels;
  uint32_t n_images;
  uint32_t n_kernels;
} shardrt_program;

#ifdef __cplusplus
}
#endif
#endif /* SHARDC_RUNTIME_ABI_SHARDRT_PROGRAM_H */
