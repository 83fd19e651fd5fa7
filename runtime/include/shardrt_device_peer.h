/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shardrt_device_peer.h: kernels that read and write memory of several devices of one process, as a
 * table of C functions that a device plugin (shardrt_device.h) offers beside its own. The runtime
 * says what each rank moves and reduces, and orders it by events; the plugin knows how.
 */
#ifndef SHARDRT_DEVICE_PEER_H
#define SHARDRT_DEVICE_PEER_H

#include "runtime/include/shardrt_device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHARDRT_DEVICE_PEER_VERSION 1
/* Sources, and results, of one reduction. */
#define SHARDRT_DEVICE_PEER_MEMBERS 64

/* Copies slabs x rows x bytes; distances are in bytes. None is 0. */
typedef struct shardrt_peer_copy {
  void *to;
  const void *from;
  uint64_t bytes, rows, slabs;
  uint64_t to_pitch, from_pitch; /* from row to row */
  uint64_t to_slab, from_slab;   /* from slab to slab */
} shardrt_peer_copy;

/* Element i of row r of every result is that of all sources, reduced in their order with the
 * rounding of shardrt.h: 16-bit floats in f32, rounded once. A result may be one of the sources. */
typedef struct shardrt_peer_reduction {
  int32_t type;       /* shardrt_type */
  uint32_t reduction; /* SHARDRT_SUM ... SHARDRT_PROD */
  uint32_t n_sources, n_results;
  const void *sources[SHARDRT_DEVICE_PEER_MEMBERS];
  void *results[SHARDRT_DEVICE_PEER_MEMBERS];
  uint64_t count, rows;                /* elements of a row */
  uint64_t source_pitch, result_pitch; /* bytes from row to row */
} shardrt_peer_reduction;

typedef struct shardrt_device_peers {
  uint64_t struct_bytes;
  uint32_t version; /* SHARDRT_DEVICE_PEER_VERSION */
  uint32_t reserved;

  /* Makes memory of `other`, which this plugin has opened in this process, usable by kernels of
   * `device`; the same device is reached always. SHARDRT_NOT_FOUND says why it cannot be. */
  shardrt_status (*reach)(void *device, void *other, char *message);
  /* Enqueue; what the arguments point to may change afterwards, but for the memory of devices. */
  shardrt_status (*copy)(void *device, const shardrt_peer_copy *copies, uint64_t n, void *stream,
                         char *message);
  shardrt_status (*reduce)(void *device, const shardrt_peer_reduction *reduction, void *stream,
                           char *message);
} shardrt_device_peers;

#ifdef __cplusplus
}
#endif
#endif /* SHARDRT_DEVICE_PEER_H */
