/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt.h: runs a program that shardc has compiled, on one rank of many.
 *
 * This header needs no other header of the project, is plain C11 (and C++), and is versioned: see
 * SHARDRT_VERSION.
 *
 *   const shardrt_manifest *m;          what the compiled program says about itself
 *   shardrt_artifact *artifact;         a loaded model.so
 *   shardrt_communicator *comm;         this rank's end of a group of ranks
 *   shardrt_model *model;               the program bound to one rank, with its parameters
 *
 * Typical use, once per rank (see runtime/examples):
 *
 *   shardrt_open("model.so", &artifact, &error);
 *   shardrt_local_communicators(4, comms, &error);  // once per process; comms[r] is for rank r
 *   shardrt_config_init(&config);
 *   config.world_size = 4;
 *   config.rank = r;
 *   config.communicator = comms[r];
 *   shardrt_create(shardrt_artifact_manifest(artifact), &config, &model, &error);
 *   shardrt_load_parameters_file(model, "model.pt2", &error);
 *   shardrt_run(model, "forward", inputs, n_inputs, outputs, n_outputs, &error);
 *   shardrt_destroy(model);
 *   shardrt_communicator_destroy(comms[r]);
 *   shardrt_close(artifact);
 *
 * Errors. Every function that can fail returns a status (SHARDRT_OK is 0) and, when `error` is not
 * NULL and the status is not SHARDRT_OK, stores a new error object there, which the caller frees
 * with shardrt_error_free. Nothing is thrown, nothing calls exit or abort, and there is no global
 * state: several models, of different artifacts, may live in one process.
 *
 * Threads. A model is used by one thread at a time. Ranks of one process are different models on
 * different threads; functions described as collective must be called by every rank of the
 * communicator, and return an error on all of them (within the timeout) if one rank fails, dies or
 * never calls.
 */
#ifndef SHARDRT_H
#define SHARDRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SHARDRT_BUILD)
#define SHARDRT_API __attribute__((visibility("default")))
#else
#define SHARDRT_API
#endif

/* Version of this interface. A library accepts callers with the same major version and a minor
 * version up to its own. */
#define SHARDRT_VERSION_MAJOR 2
#define SHARDRT_VERSION_MINOR 4

/* The most dimensions a tensor may have. */
#define SHARDRT_MAX_RANK 16

/* ---- Status and errors ---- */

typedef int32_t shardrt_status;
enum {
  SHARDRT_OK = 0,
  SHARDRT_INVALID_ARGUMENT =
      1, /* an argument is wrong: a shape, a type, a name, a range, a null pointer */
  SHARDRT_NOT_FOUND = 2,    /* there is no such file, entry point, parameter or library */
  SHARDRT_BAD_FILE = 3,     /* a file cannot be read, or is truncated or corrupt */
  SHARDRT_INCOMPATIBLE = 4, /* the artifact is for another ABI version or another CPU */
  SHARDRT_MISMATCH =
      5, /* ranks disagree: artifact, collective sequence, world size, mesh, order of collectives */
  SHARDRT_TIMEOUT =
      6, /* a collective's deadline passed; the message names it and the missing ranks */
  SHARDRT_ABORTED = 7, /* another rank failed, or shardrt_communicator_abort was called */
  SHARDRT_OUT_OF_MEMORY = 8,
  SHARDRT_PROGRAM_ERROR = 9, /* the program found bad data, e.g. an index outside a table */
  SHARDRT_INTERNAL = 10,
  SHARDRT_TORN = 11 /* an earlier run failed while parameters changed: load a checkpoint */
};

typedef struct shardrt_error shardrt_error;
SHARDRT_API shardrt_status shardrt_error_status(const shardrt_error *error);
/* The message is UTF-8, ends with a zero, may have several lines, and is valid until
 * shardrt_error_free. It is never NULL. */
SHARDRT_API const char *shardrt_error_message(const shardrt_error *error);
SHARDRT_API void shardrt_error_free(shardrt_error *error); /* NULL is allowed */
SHARDRT_API const char *shardrt_status_name(shardrt_status status);

/* The version of the library, as "major.minor.patch (details)". */
SHARDRT_API const char *shardrt_version(void);

/* ---- Element types ---- */

typedef int32_t shardrt_type;
/* The values are part of both ABIs (this one and that of generated code). Manifests use the names
 * in lower case, e.g. "bf16". */
enum {
  SHARDRT_F32 = 1,
  SHARDRT_F64 = 2,
  SHARDRT_F16 = 3,
  SHARDRT_BF16 = 4,
  SHARDRT_I64 = 5,
  SHARDRT_I32 = 6,
  SHARDRT_I16 = 7,
  SHARDRT_I8 = 8,
  SHARDRT_U8 = 9,
  SHARDRT_BOOL = 10 /* one byte, 0 or 1 */
};
SHARDRT_API int64_t shardrt_type_bytes(shardrt_type type); /* 0 for an unknown type */
SHARDRT_API const char *shardrt_type_name(shardrt_type type);
SHARDRT_API shardrt_type shardrt_type_from_name(const char *name); /* 0 for an unknown name */

/* ---- Artifacts ---- */

struct shardrt_program; /* the program's tables: internal, see runtime/abi/shardrt_program.h */

/* What an artifact says about itself. It is valid as long as the artifact is loaded. */
typedef struct shardrt_manifest {
  uint32_t program_abi;  /* version of runtime/abi/shardrt_program.h it was compiled against */
  uint32_t struct_bytes; /* sizeof(shardrt_manifest) */
  const char *json;      /* UTF-8, schema in docs/manifest.md; not necessarily zero terminated */
  uint64_t json_bytes;
  const struct shardrt_program *program;
} shardrt_manifest;

/* The type of "shardrt_query", the one symbol that an artifact exports. It is a type and not a
 * function, so that a program can link one artifact or load several. */
typedef const shardrt_manifest *(*shardrt_query_fn)(void);

typedef struct shardrt_artifact shardrt_artifact;
/* Loads an artifact (dlopen, local symbols) and checks ABI version and manifest. It stays loaded
 * until shardrt_close. */
SHARDRT_API shardrt_status shardrt_open(const char *path, shardrt_artifact **artifact,
                                        shardrt_error **error);
SHARDRT_API const shardrt_manifest *shardrt_artifact_manifest(const shardrt_artifact *artifact);
/* Unloads the artifact. Every model made from it must have been destroyed. NULL is allowed. */
SHARDRT_API void shardrt_close(shardrt_artifact *artifact);

/* ---- Communicators ---- */

typedef struct shardrt_communicator shardrt_communicator;
/* Makes the communicators of `world_size` ranks that are threads of this process and share its
 * memory. It fills `communicators[0..world_size)`, one for each rank; each is used by one model,
 * and destroyed on its own. The call is not collective: one thread makes them all. */
SHARDRT_API shardrt_status shardrt_local_communicators(int32_t world_size,
                                                       shardrt_communicator **communicators,
                                                       shardrt_error **error);
/* Makes every collective in flight on any rank of the group, and every later one, return
 * SHARDRT_ABORTED with this reason. May be called from any thread and more than once (the first
 * reason is kept); not from a signal handler. */
SHARDRT_API void shardrt_communicator_abort(shardrt_communicator *communicator, const char *reason);
/* Destroying a communicator while its model is running counts as this rank's death: the others get
 * an error. NULL is allowed. */
SHARDRT_API void shardrt_communicator_destroy(shardrt_communicator *communicator);

/* ---- A communicator of the caller's own ---- */

/* A caller can bring a communicator of its own, for ranks that are processes, are on several hosts,
 * or talk over a library that the runtime does not know. For each rank it gives a table of
 * functions and a context that is their first argument. Two functions communicate: `exchange`
 * compares and synchronises ranks, and `transfer` moves the data of collectives.
 *
 * Threads. exchange and transfer are called by one thread of a rank at a time, but not always by
 * the same one. abort, refuse, leave and note_position may be called by any thread at any time,
 * also while exchange or transfer is in progress on another one. destroy is the last call.
 *
 * Order. Every rank of the world calls exchange, and every member of a group calls transfer, in the
 * same order; a rank may be in transfer for one group while ranks outside of it are in another.
 *
 * Errors. exchange and transfer return SHARDRT_OK or one of the other statuses and then write a
 * message: SHARDRT_TIMEOUT when timeout_s has passed (say which ranks are missing),
 * SHARDRT_MISMATCH when members are not in the same operation, SHARDRT_ABORTED when the world was
 * aborted or a rank that is needed has left or refused, or any other that fits. They return within
 * timeout_s, whatever other ranks do, and when they return an error nothing reads or writes this
 * rank's memory any more. After an error they are not called again on this rank, but `abort` is
 * called with the error, if it was not called before. The first abort of the world counts. It must
 * make all calls of the other ranks fail, those in progress and later ones, with its reason. Their
 * status is that of the abort for SHARDRT_TIMEOUT and SHARDRT_MISMATCH, and SHARDRT_ABORTED for any
 * other. Nothing may be thrown. */

/* The size of the buffer for a message: UTF-8, with a final zero. It is empty before the call. */
#define SHARDRT_MESSAGE_BYTES 4096

/* Kinds of collectives. Their values, and those of reductions, are part of both ABIs. */
enum {
  SHARDRT_ALL_GATHER = 1,
  SHARDRT_ALL_REDUCE = 2,
  SHARDRT_REDUCE_SCATTER = 3,
  SHARDRT_ALL_TO_ALL = 4,
  SHARDRT_BROADCAST = 5,
  SHARDRT_PERMUTE = 6 /* never in a transfer */
};

enum {
  SHARDRT_REDUCE_NONE = 0,
  SHARDRT_SUM = 1, /* bool: or. Integers wrap around. */
  SHARDRT_AVG = 2, /* sum / size of the set; integers round toward zero; not defined for bool */
  SHARDRT_MIN = 3, /* bool: and. NaN wins. */
  SHARDRT_MAX = 4, /* bool: or. NaN wins. */
  SHARDRT_PROD = 5 /* bool: and */
};

/* Gives every rank of the world the bytes of each. */
typedef struct shardrt_exchange {
  const char *topic; /* the purpose, e.g. "the barrier"; must be the same on all ranks */
  uint64_t run;      /* number of the run that it belongs to, for `refuse`; 0: it is in no run */
  const void *mine;  /* this rank's `bytes` bytes */
  void *all;         /* is written: `bytes` bytes of each rank, in the order of ranks */
  uint64_t bytes;    /* the same on all ranks; 0: the call only waits for all ranks */
  double timeout_s;
} shardrt_exchange;

/* clang-format off */
/* Moves dense blocks in host memory between the members of a group. Counts and offsets are in
 * elements of `type`; with p this rank's position and n = n_members:
 *
 *   kind            does
 *   all_to_all      Sends send_counts[q] elements at send + send_offsets[q] to each member q, and receives
 *                   receive_counts[q] at receive + receive_offsets[q] from it. Both counts are 0 for q = p;
 *                   blocks that are sent may overlap.
 *   all_gather      Sends `count` elements at send to all and receives receive_counts[q] elements of each q,
 *                   p included, at receive + receive_offsets[q]. send may be this rank's place in receive.
 *   broadcast       Receives `count` elements at receive from the member `root`, which has them at send (NULL
 *                   elsewhere; may be receive).
 *   all_reduce      Reduces the `count` elements at send of all members into receive of each, which may be send.
 *   reduce_scatter  Reduces send_counts[q] elements at send + send_offsets[q] of all members for member q; what
 *                   is for p, `count` elements, goes to receive.
 *
 * Only all_to_all must be supported: the runtime makes the others from it, and reduces in the order of positions, with the
 * same bits on all ranks as between threads. Where the table supports more (see `supports`) the runtime uses it, and the
 * communicator decides the order and the rounding of sums. Pointers to no elements, and fields that a kind does not name,
 * may be NULL or 0. */
/* clang-format on */
typedef struct shardrt_transfer {
  const char *name;       /* the collective, e.g. "all_reduce.17", for messages */
  const char *location;   /* its module path and source line, may be "" */
  uint64_t run;           /* number of the run that it belongs to, for `refuse` */
  uint64_t signature;     /* hash of kind, types, common extents and place in the sequence. A
                             communicator can compare it: it differs between members that are in
                             different operations */
  const int32_t *members; /* ranks by position */
  int32_t n_members;
  int32_t position; /* of this rank */
  int32_t kind;
  shardrt_type type;
  int32_t reduction;
  int32_t root; /* a position */
  const void *send;
  void *receive;
  const int64_t *send_counts; /* n_members entries each */
  const int64_t *send_offsets;
  const int64_t *receive_counts;
  const int64_t *receive_offsets;
  int64_t count;
  double timeout_s;
} shardrt_transfer;

typedef struct shardrt_communicator_functions {
  uint64_t struct_bytes; /* sizeof(shardrt_communicator_functions) */

  /* Needed. The structures are valid during the call; `message` has SHARDRT_MESSAGE_BYTES. */
  shardrt_status (*exchange)(void *context, const shardrt_exchange *exchange, char *message);
  shardrt_status (*transfer)(void *context, const shardrt_transfer *transfer, char *message);
  /* Ends the world: see Errors. It is called at most once on a rank. */
  void (*abort)(void *context, shardrt_status status, const char *reason);

  /* The others may be NULL. */
  /* Returns whether transfer does this kind, for this type and reduction (SHARDRT_REDUCE_NONE where
   * there is none). It is not called for all_to_all. The answer must be the same on all ranks and
   * at all times. */
  int32_t (*supports)(void *context, int32_t kind, shardrt_type type, int32_t reduction);
  /* This rank will not take part in run number `run` (runs count from 1): others that wait for it
   * in this run fail with SHARDRT_ABORTED and the reason. When all ranks refuse a run nobody waits,
   * and the world goes on. Without this function they wait until their deadline. */
  void (*refuse)(void *context, uint64_t run, const char *reason);
  /* This rank will not call exchange or transfer again: ranks that wait for it fail with
   * SHARDRT_ABORTED. It is called at most once, before destroy. */
  void (*leave)(void *context);
  /* Says which op this rank runs now, for other ranks' messages about it. The strings are valid
   * until the artifact is closed; NULL stands for no op. It is called for every kernel. */
  void (*note_position)(void *context, const char *name, const char *location);
  /* Releases the context: no function is called after it. */
  void (*destroy)(void *context);
} shardrt_communicator_functions;

/* Makes this rank's communicator of a world that the caller brings. The table is copied, the
 * context is not: it must live until `destroy` is called, which happens when
 * shardrt_communicator_destroy has been called and no model uses the communicator any more. The
 * call is not collective. It fails with a list of everything that is wrong with the arguments;
 * destroy is not called then. */
SHARDRT_API shardrt_status shardrt_communicator_create(
    const shardrt_communicator_functions *functions, void *context, int32_t rank,
    int32_t world_size, shardrt_communicator **communicator, shardrt_error **error);

/* ---- Models ---- */

typedef struct shardrt_model shardrt_model;

enum {
  SHARDRT_LOG_ERROR = 0,
  SHARDRT_LOG_WARNING = 1,
  SHARDRT_LOG_INFO = 2,
  SHARDRT_LOG_DEBUG = 3
};
/* `message` is one or more lines without a final line end, valid during the call. May be called
 * from any thread. */
typedef void (*shardrt_log_fn)(void *context, int32_t level, int32_t rank, const char *message);

enum {
  /* The model keeps timed events for shardrt_visit_events and shardrt_write_trace. */
  SHARDRT_RECORD_EVENTS = 1,
  /* Run collectives when they are waited for, on the calling thread: no overlap, no extra thread.
   */
  SHARDRT_NO_COMM_THREAD = 2,
  /* Find mistakes of the compiler: every run is two, before which arena, temporaries of kernels and
   * outputs are filled with values that differ. What an op computes from memory that nothing has
   * written, and elements of outputs that nothing writes, are a SHARDRT_PROGRAM_ERROR that lists
   * all of them by op and module. Results are those of an ordinary run. Costs a multiple of its
   * time, and memory for everything that the ops write; implies SHARDRT_NO_COMM_THREAD. */
  SHARDRT_CHECK_MEMORY = 4
};

typedef struct shardrt_config {
  uint64_t struct_bytes; /* set by shardrt_config_init: what the caller knows of this struct */
  int32_t world_size;    /* must equal the manifest's world size */
  int32_t rank;          /* 0 <= rank < world_size */
  /* Needed when world_size > 1. The model does not own it, and it must outlive the model. */
  shardrt_communicator *communicator;
  double timeout_s;   /* deadline of each collective; default 600 */
  int32_t threads;    /* compute threads, the caller included; 0 (default): cores / ranks that share
                         them */
  int32_t log_level;  /* default SHARDRT_LOG_WARNING, or from the environment's SHARDRT_LOG */
  shardrt_log_fn log; /* default: lines on stderr */
  void *log_context;
  /* Give both functions or neither. They provide the memory for the arena, copies of parameters and
   * staging, of the device where the program is for one. bytes > 0; alignment is a power of two
   * (256 is enough of a device). alloc returns NULL when there is no memory. */
  void *(*alloc)(void *context, size_t bytes, size_t alignment);
  void (*free)(void *context, void *memory, size_t bytes);
  void *alloc_context;
  uint32_t flags;    /* SHARDRT_RECORD_EVENTS, _NO_COMM_THREAD, _CHECK_MEMORY */
  uint32_t reserved; /* 0 */
  /* Since 2.2, for programs of a device (target "cuda"): its number, "0", or "emulated". NULL: the
   * rank on its host (by the launcher, else the rank itself) modulo the number of devices. */
  const char *device;
  /* A stream of the caller's there (a CUstream; 1: the legacy default one). What is on it when
   * shardrt_run is called comes before the program, which is complete when that returns. NULL: none
   */
  void *stream;
} shardrt_config;
/* Fills in the defaults, of as many bytes as the caller's struct has (the function without a size
 * is for callers that were compiled against 2.1). */
SHARDRT_API void shardrt_config_init_bytes(shardrt_config *config, uint64_t struct_bytes);
SHARDRT_API void shardrt_config_init(shardrt_config *config);
#define shardrt_config_init(config) shardrt_config_init_bytes(config, sizeof(shardrt_config))

/* Binds a program to one rank. It fails with all reasons at once if anything is missing or differs
 * from the manifest: ABI, CPU features, world size, rank, communicator. The call is not collective;
 * ranks are compared before the first collective of the first run. The manifest's artifact must
 * stay loaded. */
SHARDRT_API shardrt_status shardrt_create(const shardrt_manifest *manifest,
                                          const shardrt_config *config, shardrt_model **model,
                                          shardrt_error **error);
/* Releases the arena, the parameters and the mapped files. NULL is allowed. */
SHARDRT_API void shardrt_destroy(shardrt_model *model);

/* ---- Tensors ---- */

enum {
  /* This rank's own shard. */
  SHARDRT_LOCAL = 0,
  /* The whole tensor. Of an input, the rank reads its part. An output is filled completely on every
   * rank whose data is not NULL (ranks that do not want it pass NULL), which costs an all-gather.
   */
  SHARDRT_GLOBAL = 1,
  /* For outputs only: the whole tensor, in one buffer that all ranks of this process give. Each
   * rank writes only what it owns, without communication. The tensor is complete when all ranks
   * have returned (see shardrt_barrier). */
  SHARDRT_SHARED = 2,
  /* The whole tensor on rank 0, and nothing elsewhere: the other ranks pass only this scope (data,
   * extents, type and rank are not looked at). Of an input, each rank gets its part from rank 0 and
   * no more; an output is put together on rank 0 only. All ranks must give a tensor this scope, or
   * none. The ranks first tell each other what rank 0 has and whether all can start, in an
   * exchange: if one refuses its arguments, all return its status with its reason, and can go on.
   */
  SHARDRT_ROOT = 3
};

/* A view of memory that the caller owns: of the host, or, for a program of a device, of a device.
 * What is dense on the program's own is used in place. shardrt_dlpack.h makes one of a DLPack
 * tensor. */
typedef struct shardrt_tensor {
  void *data; /* inputs are only read. NULL is allowed if the view has no element. */
  shardrt_type type;
  int32_t rank;           /* number of dimensions, 0 for a scalar */
  const int64_t *extents; /* `rank` entries, in elements */
  /* `rank` entries, in elements; 0 and negative ones are allowed for inputs. NULL: row-major. */
  const int64_t *strides;
  int32_t scope;    /* SHARDRT_LOCAL, _GLOBAL, _SHARED or _ROOT */
  int32_t reserved; /* 0 */
  /* Extents of the whole tensor. They are needed for a LOCAL input with a dynamic dim that is
   * sharded, because they do not follow from the extents of the shard. NULL otherwise. */
  const int64_t *global_extents;
} shardrt_tensor;

typedef struct shardrt_shape {
  shardrt_type type;
  int32_t rank;
  int64_t extents[SHARDRT_MAX_RANK];
} shardrt_shape;

/* ---- Parameters ---- */

/* Reads this rank's slices of all parameters from a .pt2 or TorchScript archive, a safetensors
 * file, a state dict of torch.save or a checkpoint (shardrt_states.h), told apart by content. It is
 * mapped; a slice that is contiguous in it is used in place, so it must not be changed while the
 * model lives. Missing parameters, unknown names, wrong shapes and wrong types are all reported in
 * one error, and then the model keeps the parameters that it had. The call is not collective. */
SHARDRT_API shardrt_status shardrt_load_parameters_file(shardrt_model *model, const char *path,
                                                        shardrt_error **error);

/* The same from the caller's memory. `find` is called once for each parameter's name (and each of
 * its tied names until one is found); it returns 0 and fills `tensor` (scope SHARDRT_GLOBAL or
 * SHARDRT_LOCAL), 1 if there is no such parameter, or another value to stop with an error. The
 * memory must stay valid until the function returns: it is copied. */
typedef int32_t (*shardrt_find_parameter_fn)(void *context, const char *name,
                                             shardrt_tensor *tensor);
SHARDRT_API shardrt_status shardrt_load_parameters(shardrt_model *model,
                                                   shardrt_find_parameter_fn find, void *context,
                                                   shardrt_error **error);

/* ---- Running ---- */

/* Runs one entry point (NULL: the first). It is collective if the program has collectives or
 * random numbers. Inputs and outputs are in the manifest's order; every output's extents must be
 * those of shardrt_output_shapes. Element types are never converted. On failure outputs are
 * undefined, and parameters and states as before, or SHARDRT_TORN until a complete set is loaded.
 * When all ranks refuse the arguments (SHARDRT_INVALID_ARGUMENT, SHARDRT_NOT_FOUND) they can go
 * on; when only some do, the others get SHARDRT_ABORTED (but see SHARDRT_ROOT). After that, and
 * after any other failure, the communicator cannot be used any more. */
SHARDRT_API shardrt_status shardrt_run(shardrt_model *model, const char *entry,
                                       const shardrt_tensor *inputs, size_t n_inputs,
                                       const shardrt_tensor *outputs, size_t n_outputs,
                                       shardrt_error **error);

/* Computes the shapes of every output for these inputs (data may be NULL here), before any run.
 * `global` and `local` have n_outputs entries each, or are NULL. The inputs are checked as in
 * shardrt_run; a SHARDRT_ROOT input on another rank than 0 must come with type and extents. The
 * call is not collective. */
SHARDRT_API shardrt_status shardrt_output_shapes(shardrt_model *model, const char *entry,
                                                 const shardrt_tensor *inputs, size_t n_inputs,
                                                 shardrt_shape *global, shardrt_shape *local,
                                                 size_t n_outputs, shardrt_error **error);

/* Computes the shape of this rank's shard of an input whose global extents are given. */
SHARDRT_API shardrt_status shardrt_input_shard(shardrt_model *model, const char *entry,
                                               size_t input, const int64_t *extents, int32_t rank,
                                               shardrt_shape *local, shardrt_error **error);

/* Returns when every rank has called it. Collective. */
SHARDRT_API shardrt_status shardrt_barrier(shardrt_model *model, shardrt_error **error);

/* ---- Events and memory ---- */

enum { SHARDRT_STREAM_COMPUTE = 0, SHARDRT_STREAM_COMM = 1, SHARDRT_STREAM_WAIT = 2 };
typedef struct shardrt_event {
  const char *name;     /* op or collective, valid while the artifact is loaded */
  const char *location; /* module path and source line, may be "" */
  int32_t rank;
  int32_t stream;  /* SHARDRT_STREAM_COMPUTE, _COMM or _WAIT (compute blocked on a collective) */
  double start_us; /* since a point in time common to all models of the process */
  double duration_us;
  int64_t bytes; /* bytes of a collective's operands on this rank, 0 for compute */
} shardrt_event;
typedef void (*shardrt_event_fn)(void *context, const shardrt_event *event);
/* Visits the events of all runs so far, in order of start (needs SHARDRT_RECORD_EVENTS). */
SHARDRT_API void shardrt_visit_events(const shardrt_model *model, shardrt_event_fn visit,
                                      void *context);
SHARDRT_API void shardrt_clear_events(shardrt_model *model);
/* Writes a Chrome trace (chrome://tracing, Perfetto) of several ranks. It has a process for each
 * rank, a thread lane for each stream, and below that one with what the compiler predicted for each
 * run. The trace is written to a temporary file beside `path`, which is then renamed. */
SHARDRT_API shardrt_status shardrt_write_trace(const shardrt_model *const *models, size_t n_models,
                                               const char *path, shardrt_error **error);

typedef struct shardrt_memory {
  uint64_t arena_bytes;      /* the largest arena used so far */
  uint64_t parameter_bytes;  /* slices this rank holds, mapped or copied */
  uint64_t copied_bytes;     /* of these, copied rather than used in place */
  uint64_t persistent_bytes; /* packed forms of parameters that the program keeps */
  uint64_t scratch_bytes;    /* temporaries of kernels, of all threads of the rank */
} shardrt_memory;
SHARDRT_API void shardrt_memory_used(const shardrt_model *model, shardrt_memory *memory);

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_H */
