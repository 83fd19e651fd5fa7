// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A checkpoint in several files: a folder with a safetensors file for each rank that wrote a part,
// and an index that says of each tensor of which blocks it consists. The files of a save have its
// name, and the index is replaced last: the folder is always what its index says, complete.
#ifndef SHARDC_SUPPORT_ARCHIVE_SHARDEDARCHIVE_H
#define SHARDC_SUPPORT_ARCHIVE_SHARDEDARCHIVE_H

#include "support/archive/TensorStore.h"

namespace shardc {

/// A box of a tensor, dense and row-major, under a name of its own in a file.
struct ShardedBlock {
  std::string file; ///< in the folder
  std::string key;  ///< its name there
  std::vector<int64_t> begin, sizes;

  /// "NAME[0:4, 8:16]".
  static std::string keyOf(std::string_view name, std::span<const int64_t> begin,
                           std::span<const int64_t> sizes);
};

struct ShardedTensor {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> sizes;
  std::vector<ShardedBlock> blocks; ///< none of a tensor without elements
};

struct ShardedIndex {
  static constexpr const char *fileName = "index.json";
  /// Under this key, a file says in its metadata which save it is of.
  static constexpr const char *saveKey = "save";

  std::string save; ///< a name that no other save has
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<ShardedTensor> tensors;

  std::string json() const;
  static std::optional<ShardedIndex> parse(std::string_view text, std::string &error);
};

/// Opens the folder: its index and all files that it names, which must be there, of that save, and
/// such that the blocks of each tensor are the whole of it, once. On failure `error` names all
/// files that are missing, or the first tensor that does not fit.
std::optional<TensorStore> readShardedArchive(const std::string &folder, std::string &error);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_SHARDEDARCHIVE_H
