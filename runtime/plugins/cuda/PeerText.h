// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The texts of the kernels that ranks of one process move and reduce data with, for devices (PTX
// for sm_80 and later) and for the emulated one (LLVM's IR). Nothing of a toolkit is needed: the
// driver compiles them when they are first used.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_PEERTEXT_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_PEERTEXT_H

#include "runtime/include/shardrt_device_peer.h"

#include <string>

namespace shardc::plugin::cuda {

/// One copy in words of the kernel's size; distances in bytes. `rows` of all slabs together.
struct PeerCopyEntry {
  uint64_t to, from, words, rows, slabRows, toPitch, fromPitch, toSlab, fromSlab;
};
/// Parameters have at most 4 KiB.
constexpr unsigned peerCopyEntries = 48;
struct PeerCopyTable {
  PeerCopyEntry entries[peerCopyEntries];
};
struct PeerReductionTable {
  uint64_t sources[SHARDRT_DEVICE_PEER_MEMBERS], results[SHARDRT_DEVICE_PEER_MEMBERS];
};

/// `copy(table)`: words of 1 to 16 bytes, along x in a row; rows along y, as far as the grid goes,
/// and on from there; entry z of the table.
std::string peerCopyPtx(unsigned wordBytes);
std::string peerCopyIr(unsigned wordBytes);

/// `reduce(table, count, rows, sourcePitch, resultPitch, sources, results)`: elements along x, rows
/// along y.
std::string peerReductionPtx(shardrt_type type, uint32_t reduction);
std::string peerReductionIr(shardrt_type type, uint32_t reduction);

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_PEERTEXT_H
