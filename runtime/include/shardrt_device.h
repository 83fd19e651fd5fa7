/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_device.h: what a library offers that runs kernels on devices for libshardrt, as a table
 * of C functions. The runtime loads it (libshardrt_KIND.so, by the kind of target that a program
 * names) when a model needs it, and does the rest itself: memory plans, the order of work,
 * collectives through the host, deadlines and messages.
 *
 * The one symbol that a plugin exports is shardrt_device_query.
 */
#ifndef SHARDRT_DEVICE_H
#define SHARDRT_DEVICE_H

#include "runtime/include/shardrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDRT_DEVICE_VERSION 2

/* Of runtime/abi/shardrt_program.h. */
typedef struct shardrt_device_image shardrt_device_image;
typedef struct shardrt_kernel shardrt_kernel;
typedef struct shardrt_gemm shardrt_gemm;
typedef struct shardrt_collective shardrt_collective;
typedef struct shardrt_collective_tensor shardrt_collective_tensor;

typedef struct shardrt_device_options {
  uint64_t struct_bytes;
  /* Number of the device, or -1: number `local_rank` modulo how many there are. */
  int32_t ordinal;
  int32_t local_rank;
  /* NULL: the machine's own driver and libraries. Otherwise the one library that stands for all of
   * them (the emulated device). */
  const char *library;
  /* Of the world. Where there are several, a product must be computed in one way by all of them. */
  int32_t ranks;
  int32_t reserved;
  /* First argument of the functions below, which may be NULL. */
  void *host;
  /* Whether a function that waits must return now, with SHARDRT_ABORTED. Asked at least every 50 ms
   * where a function other than a synchronisation waits for a stream (to measure a product, say),
   * by the thread that called the plugin. */
  int32_t (*must_stop)(void *host);
  /* For the log: something is not as it should be, and the plugin goes on. */
  void (*warn)(void *host, const char *message);
} shardrt_device_options;

typedef struct shardrt_device_facts {
  uint64_t struct_bytes;
  char name[128]; /* "NVIDIA H100 80GB HBM3" */
  int32_t ordinal;
  int32_t chip; /* 90 for sm_90 */
  int32_t driver_version;
  int32_t emulated; /* takes bitcode */
  uint64_t memory_bytes;
} shardrt_device_facts;

/* Collectives on streams (shardrt_device_comm.h). */
typedef struct shardrt_device_communication shardrt_device_communication;
/* Kernels on memory of several devices of a process (shardrt_device_peer.h). */
typedef struct shardrt_device_peers shardrt_device_peers;

/* Where a kernel or a copy of a device finds memory. */
enum {
  SHARDRT_PLACE_HOST = 0,   /* the host reads and writes it; kernels do not */
  SHARDRT_PLACE_DEVICE = 1, /* kernels of the device use it where it is */
  SHARDRT_PLACE_OTHER = 2   /* only copies reach it: memory of another device */
};

/* `device`, `event`, `module`, `kernel` and `graph` are the plugin's own; `stream` is the handle of
 * the device's own interface (a CUstream), so that a caller's stream can be passed. Functions
 * return a status and write a message (SHARDRT_MESSAGE_BYTES, UTF-8, zero terminated) if it is not
 * SHARDRT_OK. Nothing may be thrown. Two threads may use a device at the same time (one that
 * computes and one that communicates), but for open, close, modules, gemm and captures; the plugin
 * makes its context current itself. A query or a wait of the host makes what was put on streams go
 * on. */
typedef struct shardrt_device_plugin {
  uint64_t struct_bytes; /* sizeof(shardrt_device_plugin) */
  uint32_t version;      /* SHARDRT_DEVICE_VERSION */
  uint32_t reserved;
  const char *name; /* "cuda" */

  shardrt_status (*open)(const shardrt_device_options *options, void **device,
                         shardrt_device_facts *facts, char *message);
  void (*close)(void *device);

  /* Memory of the device (aligned to 256 at least), and pinned memory of the host, which its copies
   * take without a detour. SHARDRT_OUT_OF_MEMORY says how much there is. */
  shardrt_status (*allocate)(void *device, uint64_t bytes, void **memory, char *message);
  void (*release)(void *device, void *memory);
  shardrt_status (*allocate_pinned)(void *device, uint64_t bytes, void **memory, char *message);
  void (*release_pinned)(void *device, void *memory);
  /* SHARDRT_PLACE_HOST, _DEVICE or _OTHER, of any address. */
  int32_t (*place)(void *device, const void *memory);

  /* A stream that does not wait for the default one. */
  shardrt_status (*stream_create)(void *device, void **stream, char *message);
  void (*stream_destroy)(void *device, void *stream);
  /* Waits on the host until everything on the stream is done. */
  shardrt_status (*stream_synchronize)(void *device, void *stream, char *message);
  shardrt_status (*event_create)(void *device, int32_t timed, void **event, char *message);
  void (*event_destroy)(void *device, void *event);
  shardrt_status (*event_record)(void *device, void *event, void *stream, char *message);
  /* SHARDRT_OK with *done: whether what was recorded has happened. */
  shardrt_status (*event_query)(void *device, void *event, int32_t *done, char *message);
  shardrt_status (*event_synchronize)(void *device, void *event, char *message);
  shardrt_status (*stream_wait_event)(void *device, void *stream, void *event, char *message);
  shardrt_status (*event_elapsed_us)(void *device, void *begin, void *end, double *us,
                                     char *message);

  /* Copies between any two of host, pinned and device memory, in the order of the stream. Host
   * memory that is not pinned may be read before the function returns, or be waited for. */
  shardrt_status (*copy)(void *device, void *to, const void *from, uint64_t bytes, void *stream,
                         char *message);
  /* `rows` times `bytes`, at distances of to_pitch and from_pitch, which are at least `bytes`. */
  shardrt_status (*copy_rows)(void *device, void *to, uint64_t to_pitch, const void *from,
                              uint64_t from_pitch, uint64_t bytes, uint64_t rows, void *stream,
                              char *message);
  shardrt_status (*fill)(void *device, void *to, uint8_t value, uint64_t bytes, void *stream,
                         char *message);

  /* Takes the image that fits the device best. An error lists the chips that there is code for. The
   * images stay as long as the module. */
  shardrt_status (*module_load)(void *device, const shardrt_device_image *images, uint32_t n_images,
                                void **module, char *message);
  void (*module_unload)(void *device, void *module);
  shardrt_status (*kernel_find)(void *device, void *module, const shardrt_kernel *kernel,
                                void **found, char *message);
  /* `params`: addresses of all parameters, the two of the convention first. */
  shardrt_status (*launch)(void *device, void *kernel, const uint32_t grid[3],
                           const uint32_t block[3], uint32_t shared_bytes,
                           const void *const *params, void *stream, char *message);
  shardrt_status (*gemm)(void *device, const shardrt_gemm *gemm, void *stream, char *message);

  /* What the calling thread puts on `stream`, and on streams that wait for its events, between the
   * two calls becomes a graph and does not run. Allocations, synchronisation and event queries are
   * errors meanwhile. */
  shardrt_status (*capture_begin)(void *device, void *stream, char *message);
  /* Also after a failure, which ends the capture; *graph is NULL then. */
  shardrt_status (*capture_end)(void *device, void *stream, void **graph, char *message);
  shardrt_status (*graph_launch)(void *device, void *graph, void *stream, char *message);
  void (*graph_destroy)(void *device, void *graph);

  const shardrt_device_communication *communication; /* NULL: none */
  const shardrt_device_peers *peers;                 /* NULL: none */
} shardrt_device_plugin;

/* The type of shardrt_device_query. */
typedef const shardrt_device_plugin *(*shardrt_device_query_fn)(void);

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_DEVICE_H */
