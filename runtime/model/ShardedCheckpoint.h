// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints with a file of each rank (support/archive/ShardedArchive.h has the format). Every
// rank writes what no rank before it has, under names of this save, and nothing is gathered. Then
// rank 0 replaces the index: whoever opens the folder finds the old checkpoint or the new one,
// complete. Rank 0 alone decides that, so nobody else removes what may have become a part of it.
#ifndef SHARDC_RUNTIME_MODEL_SHARDEDCHECKPOINT_H
#define SHARDC_RUNTIME_MODEL_SHARDEDCHECKPOINT_H

#include "runtime/executor/ProgramMemory.h"
#include "runtime/manifest/Manifest.h"

#include <string>
#include <vector>

namespace shardc::rt {

class ShardedCheckpoint {
public:
  /// On rank 0: makes the folder if there is none, and a name for a save. Throws Failure.
  static std::string begin(const std::string &folder);

  ShardedCheckpoint(const Manifest &manifest, std::string folder, std::string save)
      : manifest(manifest), folder(std::move(folder)), save(std::move(save)) {}

  /// This rank's file, complete and on the disk; none if it has nothing to write. `values` are the
  /// parameters' local parts, in `memory`. Throws Failure (SHARDRT_BAD_FILE).
  void write(uint32_t rank, void *const *values, ProgramMemory &memory) const;
  /// On rank 0, when all have written: makes this save the one of the folder, and removes files of
  /// others. Throws Failure, and then the folder is what it was.
  void commit() const;
  /// On rank 0: removes files of a save that is not committed.
  void discard() const { removeFiles(false); }

private:
  /// A box of a parameter that a rank writes.
  struct Block {
    size_t parameter = 0;
    std::vector<int64_t> begin, extents;
    std::vector<int64_t> localBegin; ///< in the rank's part
  };
  std::vector<Block> blocksOf(uint32_t rank) const;
  std::string fileOf(uint32_t rank) const;
  /// Those of this save, or those of all others.
  void removeFiles(bool ofOthers) const;

  const Manifest &manifest;
  const std::string folder, save;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_SHARDEDCHECKPOINT_H
