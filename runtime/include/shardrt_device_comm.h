/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_device_comm.h: collectives on streams of a device, as a table of C functions that a
 * device plugin (shardrt_device.h) offers beside its own. The runtime decides whether it is used,
 * says who is there, and finds out why others do not come.
 */
#ifndef SHARDRT_DEVICE_COMM_H
#define SHARDRT_DEVICE_COMM_H

#include "runtime/include/shardrt_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDRT_DEVICE_COMM_VERSION 1
#define SHARDRT_DEVICE_COMM_ID_BYTES 128

typedef struct shardrt_device_comm_facts {
  uint64_t struct_bytes;
  /* "NCCL 2.28.3", and settings that matter: equal on all ranks, or they do not use it. */
  char library[64];
} shardrt_device_comm_facts;

typedef struct shardrt_device_comm_world {
  uint64_t struct_bytes;
  int32_t rank;
  int32_t world_size;
  uint8_t id[SHARDRT_DEVICE_COMM_ID_BYTES]; /* of rank 0's `make_id` */
  void *host;                               /* argument of must_stop */
  /* Whether a function that waits must return now, with SHARDRT_ABORTED. Asked at least every
   * 50 ms, by the thread that called the plugin. */
  int32_t (*must_stop)(void *host);
} shardrt_device_comm_world;

/* Members of one set of ranks, by position. */
typedef struct shardrt_device_comm_group {
  const uint32_t *members;
  uint32_t n_members;
  uint32_t reserved;
} shardrt_device_comm_group;

/* One call of a collective: shardrt_program.h says what its tensors are. `gather` and `scatter` are
 * never NULL where the operand has such a dim. */
typedef struct shardrt_device_collective {
  const shardrt_collective *collective;
  const shardrt_collective_tensor *tensors;
  const uint32_t *members; /* ranks by position */
  uint32_t n_members;
  uint32_t position;
} shardrt_device_collective;

/* `communication` is what `open` made. Conventions are those of shardrt_device.h; `poll`, `abort`
 * and `close` may be called while a stream is stuck. */
struct shardrt_device_communication {
  uint64_t struct_bytes;
  uint32_t version; /* SHARDRT_DEVICE_COMM_VERSION */
  uint32_t reserved;

  /* Whether this rank could communicate: loads the library. SHARDRT_NOT_FOUND and
   * SHARDRT_INCOMPATIBLE say why not. */
  shardrt_status (*probe)(void *device, shardrt_device_comm_facts *facts, char *message);
  /* SHARDRT_DEVICE_COMM_ID_BYTES bytes by which the ranks of a new world find each other. */
  shardrt_status (*make_id)(void *device, uint8_t *id, char *message);
  /* All ranks call it; returns when all are connected. */
  shardrt_status (*open)(void *device, const shardrt_device_comm_world *world, void **communication,
                         char *message);
  /* Called once, by all ranks with the same sets in the same order, also by those outside. Sets of
   * one member need not be connected. */
  shardrt_status (*connect)(void *communication, const shardrt_device_comm_group *groups,
                            uint64_t n_groups, char *message);
  /* Whether it does this with the meaning that shardrt.h gives it; the same on all ranks. */
  int32_t (*supports)(void *communication, const shardrt_collective *collective, uint32_t members);
  /* Memory in which many operands will lie, for faster ways; a hint. It is released after
   * `forget`, or `close`. */
  void (*remember)(void *communication, void *memory, uint64_t bytes);
  void (*forget)(void *communication, void *memory);

  /* Enqueues; returns before anything has moved. May be captured. What the call points to may
   * change afterwards, but for the operands. */
  shardrt_status (*enqueue)(void *communication, const shardrt_device_collective *call,
                            void *stream, char *message);
  /* SHARDRT_OK while nothing that was enqueued has failed. From any thread. */
  shardrt_status (*poll)(void *communication, char *message);
  /* Ends everything in flight, without regard to other ranks; streams go on, and their results are
   * worth nothing. Only `close` may follow. */
  void (*abort)(void *communication);
  /* Without `abort` before: waits for what is in flight, but not past must_stop. */
  void (*close)(void *communication);
};

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_DEVICE_COMM_H */
