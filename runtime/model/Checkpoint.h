// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checkpoints: files with the parameters, buffers and states of a model (docs/training.md).
#ifndef SHARDC_RUNTIME_MODEL_CHECKPOINT_H
#define SHARDC_RUNTIME_MODEL_CHECKPOINT_H

#include "runtime/manifest/Manifest.h"
#include "support/archive/SafetensorsWriter.h"

#include <memory>
#include <span>
#include <string>

namespace shardc::rt {

/// What a checkpoint says of itself in its metadata.
inline constexpr const char *checkpointKey = "shardc";
inline constexpr const char *checkpointValue = "checkpoint";
/// The names of its states, one on each line.
inline constexpr const char *checkpointStatesKey = "states";

/// A safetensors file that is filled in where it lies and replaces another one at the end: whoever
/// opens `path` finds the old file or the new one, complete.
class CheckpointFile {
public:
  /// Opens a file beside `path` with room for everything that `manifest` says is saved, on the
  /// disk too. Throws Failure (SHARDRT_BAD_FILE).
  CheckpointFile(const Manifest &manifest, const std::string &path);
  /// Removes a file that was not committed.
  ~CheckpointFile();
  CheckpointFile(const CheckpointFile &) = delete;

  /// Where the elements of a parameter go, row-major.
  void *dataOf(size_t parameter);
  /// Brings everything to the disk and gives the file its name. Throws Failure.
  void commit();

private:
  [[noreturn]] void fail(const std::string &what) const;

  const std::string path, temporary;
  std::vector<uint64_t> begins; ///< by parameter, in the file
  int descriptor = -1;
  char *bytes = nullptr;
  size_t size = 0;
};

/// Parameters that a checkpoint has, those with wide elements first, so that all are aligned.
std::vector<size_t> savedParameters(const Manifest &manifest);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_CHECKPOINT_H
