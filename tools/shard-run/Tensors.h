// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs and outputs of a program as files.
#ifndef SHARDC_TOOLS_SHARD_RUN_TENSORS_H
#define SHARDC_TOOLS_SHARD_RUN_TENSORS_H

#include "runtime/include/shardrt.h"

#include <memory>
#include <string>
#include <vector>

namespace shardc::run {

struct FileTensor {
  std::string name; ///< empty for a .npy file that was given without one
  shardrt_type type = 0;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides; ///< in elements
  const void *data = nullptr;
  std::shared_ptr<const void> owner; ///< keeps `data` valid
};

/// The tensors of one file: FILE.npy, NAME=FILE.npy, or a safetensors file (any other). Throws
/// std::runtime_error with the path.
std::vector<FileTensor> readTensors(const std::string &argument);

/// An output of a run, dense.
struct OutputTensor {
  std::string name;
  shardrt_type type = 0;
  std::vector<int64_t> extents;
  std::vector<char> bytes;
};

/// Writes a temporary file and renames it. Throws std::runtime_error.
void writeSafetensors(const std::string &path, const std::vector<OutputTensor> &tensors);

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_TENSORS_H
