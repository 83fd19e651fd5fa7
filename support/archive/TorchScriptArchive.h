// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The archive that torch.jit.save writes: a zip with one root folder, which holds the model's
// objects (data.pkl), the tensors that its code names (constants.pkl), their storages as records,
// and the code itself (code/*.py, compressed). Only the tensors are read here, without PyTorch.
#ifndef SHARDC_SUPPORT_ARCHIVE_TORCHSCRIPTARCHIVE_H
#define SHARDC_SUPPORT_ARCHIVE_TORCHSCRIPTARCHIVE_H

#include "support/archive/TensorStore.h"
#include "support/archive/Zip.h"

namespace shardc {

class TorchScriptArchive {
public:
  /// Whether the file is such an archive, told by the names of its records.
  static bool accepts(std::span<const std::byte> bytes);

  /// Reads the directory. `bytes` must outlive the archive and everything taken from it. On failure
  /// `error` says what is wrong.
  static std::optional<TorchScriptArchive> read(std::span<const std::byte> bytes,
                                                std::string &error);

  /// Every tensor that is an attribute, by its path ("layers.0.weight"), and the constants of the
  /// code, called "CONSTANTS.c0" and so on. Checks the pickles' checksums.
  std::optional<TensorStore> takeTensors(std::string &error) const;

  /// Element type and sizes of the inputs that the model was traced with; nothing where it was not,
  /// or an input is no tensor.
  struct Input {
    ElementType type;
    std::vector<int64_t> sizes;
  };
  std::vector<Input> tracedInputs() const;

private:
  ZipArchive zip;
  std::string root; // with its slash
};

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_TORCHSCRIPTARCHIVE_H
