/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_transport.h: what a library offers that moves the data of collectives for libshardrt
 * between processes: an engine such as MPI or Gloo behind a table of C functions. The runtime loads
 * it (libshardrt_NAME.so) when a world asks for it, and does the rest itself: who is there, which
 * ranks have died, deadlines, and messages.
 *
 * The one symbol that a plugin exports is shardrt_transport_query.
 */
#ifndef SHARDRT_TRANSPORT_H
#define SHARDRT_TRANSPORT_H

#include "runtime/include/shardrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDRT_TRANSPORT_VERSION 1

/* What a plugin gets from the runtime; valid until `close`. */
typedef struct shardrt_transport_world {
  uint64_t struct_bytes; /* sizeof(shardrt_transport_world) */
  int32_t rank;
  int32_t world_size;
  const char *address; /* IP address of this rank, at which the others reach it */
  void *host;          /* first argument of the functions below */
  /* As `exchange` of shardrt_communicator_functions. For `open` and `connect`: all ranks call it
   * in the same order. */
  shardrt_status (*exchange)(void *host, const shardrt_exchange *exchange, char *message);
  /* Whether a function that waits must return now, with SHARDRT_ABORTED; costs next to nothing.
   * It is asked at least every 50 ms, by the thread that called the plugin. The runtime says why in
   * its own words. */
  int32_t (*must_stop)(void *host);
} shardrt_transport_world;

typedef struct shardrt_transport_group {
  const int32_t *members; /* ranks by position */
  int32_t n_members;
} shardrt_transport_group;

/* How processes were started by the engine's own launcher (mpirun, say). */
typedef struct shardrt_transport_launch {
  uint64_t struct_bytes;
  int32_t rank;
  int32_t world_size;
} shardrt_transport_launch;

/* Functions return a status and write a message (SHARDRT_MESSAGE_BYTES, UTF-8, zero terminated)
 * if it is not SHARDRT_OK. Nothing may be thrown. `open`, `connect`, `transfer` and `close` are
 * called by one thread at a time, though not always by the same one. */
typedef struct shardrt_transport_plugin {
  uint64_t struct_bytes; /* sizeof(shardrt_transport_plugin) */
  uint32_t version;      /* SHARDRT_TRANSPORT_VERSION */
  uint32_t reserved;
  const char *name;    /* "mpi" */
  const char *details; /* the engine and its version, "Open MPI 4.1.4" */

  /* May be NULL: the engine has no launcher. Joins the launcher's world, if there is one.
   * SHARDRT_NOT_FOUND: this process was not started by it. */
  shardrt_status (*launch)(shardrt_transport_launch *launch, char *message);
  /* With `launch`: gives all ranks of the launcher's world the bytes of rank 0, by which they find
   * the control plane before there is one. */
  shardrt_status (*broadcast)(void *data, uint64_t bytes, double timeout_s, char *message);

  /* Makes this rank's end of the world; all ranks call it. */
  shardrt_status (*open)(const shardrt_transport_world *world, void **context, double timeout_s,
                         char *message);
  /* Called once, by all ranks with the same groups in the same order, also by those outside of a
   * group: makes what transfers over them need. A transfer over another group is an error. */
  shardrt_status (*connect)(void *context, const shardrt_transport_group *groups, uint64_t n_groups,
                            double timeout_s, char *message);
  /* As `supports` and `transfer` of shardrt_communicator_functions. Everything that has been said
   * there about memory holds: when it returns, also with an error, nothing reads or writes the
   * operands any more, or never again before the process ends (then `close` is told of a failure
   * and must not wait for others). */
  int32_t (*supports)(void *context, int32_t kind, shardrt_type type, int32_t reduction);
  shardrt_status (*transfer)(void *context, const shardrt_transfer *transfer, char *message);
  /* Ends this rank's end. `failed`: the world was given up, others may be gone. */
  void (*close)(void *context, int32_t failed);
} shardrt_transport_plugin;

/* The type of shardrt_transport_query. */
typedef const shardrt_transport_plugin *(*shardrt_transport_query_fn)(void);

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_TRANSPORT_H */
