// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The archive that torch.save writes of a module's state dict: a zip with one root folder, which
// holds the dict (data.pkl) and each storage as a record. The dict is read as data: nothing in it
// is executed.
#ifndef SHARDC_SUPPORT_ARCHIVE_STATEDICTARCHIVE_H
#define SHARDC_SUPPORT_ARCHIVE_STATEDICTARCHIVE_H

#include "support/archive/TensorStore.h"

namespace shardc {

class StateDictArchive {
public:
  /// Whether the file is an archive of torch.save, told by the names of its records.
  static bool accepts(std::span<const std::byte> bytes);
  /// Whether torch.save wrote the file in the format that it had before PyTorch 1.6.
  static bool isOldFile(std::span<const std::byte> bytes);

  /// Every tensor, by its key. Only a dict of names and tensors is read; of anything else `error`
  /// says what it is. The storages point into `bytes`. A tensor of floats counts as a parameter,
  /// any other one as a buffer: the file does not tell.
  static std::optional<TensorStore> read(std::span<const std::byte> bytes, std::string &error);
};

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_STATEDICTARCHIVE_H
