/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_launch.h: ranks that are processes of a launcher.
 *
 *   shardrt_communicator_from_environment(&config, &comm, &error);
 *   config.communicator = comm;
 *   config.rank = shardrt_communicator_rank(comm);
 *   config.world_size = shardrt_communicator_world_size(comm);
 *
 * and then as in shardrt.h. See runtime/examples/processes.c and docs/processes.md.
 */
#ifndef SHARDRT_LAUNCH_H
#define SHARDRT_LAUNCH_H

#include "shardrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* This process's rank in the world that a launcher has started: shard-run --processes, mpirun,
 * srun, torchrun, or whatever sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Without a
 * launcher, or where it started one process only, the world has one rank. Collective: every process
 * of the world calls it.
 *
 * The communicator is the first of these that all ranks can use, or the one that the environment's
 * SHARDRT_COMMUNICATOR names: `local` (shared memory, where all are on one machine), `mpi` (where
 * the MPI's own launcher started them, and libshardrt_mpi.so is found) or `gloo`
 * (libshardrt_gloo.so). The log says at `info` which it is and why; if there is none, the error
 * says of each why not.
 *
 * Of `config` only timeout_s (until all ranks are there), log_level, log and log_context are
 * looked at; NULL stands for the defaults. */
SHARDRT_API shardrt_status shardrt_communicator_from_environment(
    const shardrt_config *config, shardrt_communicator **communicator, shardrt_error **error);
/* The rank that the launcher gave this process; 0 without one, and -1 where its variables make no
 * sense. For messages before there is a communicator. */
SHARDRT_API int32_t shardrt_environment_rank(void);
SHARDRT_API int32_t shardrt_communicator_rank(const shardrt_communicator *communicator);
SHARDRT_API int32_t shardrt_communicator_world_size(const shardrt_communicator *communicator);
/* What it is, for people: "local, 4 processes, shared memory". Valid until it is destroyed. */
SHARDRT_API const char *shardrt_communicator_description(const shardrt_communicator *communicator);
/* Gives every rank of a communicator's world the bytes of each, for facts of the caller's own, say:
 * before a model is made, or between its runs. Collective; a failure ends the world. `topic` must
 * stay valid until the communicator is destroyed. */
SHARDRT_API shardrt_status shardrt_communicator_exchange(shardrt_communicator *communicator,
                                                         const shardrt_exchange *exchange,
                                                         shardrt_error **error);

/* Writes a trace, as shardrt_write_trace does, of all ranks of the model's world, which may be
 * other processes. Collective: rank 0 writes the file, and `path` is not looked at elsewhere. Times
 * of other hosts are as good as their clocks. */
SHARDRT_API shardrt_status shardrt_write_world_trace(shardrt_model *model, const char *path,
                                                     shardrt_error **error);

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_LAUNCH_H */
