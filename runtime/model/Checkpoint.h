// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints: files with the parameters, buffers and states of a model (docs/training.md).
#ifndef SHARDC_RUNTIME_MODEL_CHECKPOINT_H
#define SHARDC_RUNTIME_MODEL_CHECKPOINT_H

#include "runtime/manifest/Manifest.h"
#include "support/archive/SafetensorsWriter.h"

#include <string>
#include <utility>
#include <vector>

namespace shardc::rt {

/// What a checkpoint says of itself in its metadata.
inline constexpr const char *checkpointKey = "shardc";
inline constexpr const char *checkpointValue = "checkpoint";
/// The names of its states, one on each line.
inline constexpr const char *checkpointStatesKey = "states";

/// A safetensors file that is filled in where it lies and replaces another one at the end: whoever
/// opens `path` finds the old file or the new one, complete. Until then it has no name, where the
/// file system has such files, so that nothing is left of it if the process is killed.
class CheckpointFile {
public:
  /// Of these tensors, in their order, which is best that of falling widths. Takes the room that
  /// all needs on the disk. Throws Failure (SHARDRT_BAD_FILE).
  CheckpointFile(std::vector<shardc::SafetensorsEntry> tensors,
                 const std::vector<std::pair<std::string, std::string>> &metadata,
                 const std::string &path);
  /// Removes a file that was not committed.
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile &) = delete;

  /// Where the elements of a tensor go, row-major.
  void *dataOf(size_t tensor) { return bytes + begins[tensor]; }
  /// Brings everything to the disk and gives the file its name. Throws Failure.
  void commit();

private:
  void open();
  [[noreturn]] void fail(const std::string &what) const;

  const std::string path, temporary;
  std::vector<uint64_t> begins; ///< by tensor, in the file
  int descriptor = -1;
  bool isNamed = false; ///< as `temporary`
  char *bytes = nullptr;
  size_t size = 0;
};

/// Parameters that a checkpoint has, those with wide elements first, so that all are aligned.
std::vector<size_t> savedParameters(const Manifest &manifest);

/// What a checkpoint says of itself.
std::vector<std::pair<std::string, std::string>> checkpointMetadata(const Manifest &manifest);

/// A text in place of the file `path`, in the same way. Throws Failure.
void replaceFile(const std::string &path, std::string_view text);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_CHECKPOINT_H
