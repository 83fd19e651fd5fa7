// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The archive that torch.export.save writes: a zip with one root folder, which holds the program as
// JSON and each storage of the weights and constants as a record. Nothing in it is unpickled.
#ifndef SHARDC_SUPPORT_ARCHIVE_PT2ARCHIVE_H
#define SHARDC_SUPPORT_ARCHIVE_PT2ARCHIVE_H

#include "support/archive/TensorStore.h"
#include "support/archive/Zip.h"

namespace shardc {

class Pt2Archive {
public:
  /// Reads the directory and finds the model. `bytes` must outlive the archive and everything taken
  /// from it. On failure `error` says what is wrong.
  static std::optional<Pt2Archive> read(std::span<const std::byte> bytes, std::string &error);

  /// The text of models/NAME.json, its checksum verified.
  std::optional<std::string_view> programJson(std::string &error) const;

  /// The weights and the constants, as their two config records list them.
  std::optional<TensorStore> takeTensors(std::string &error) const;

  /// Whether `shardc export` wrote it, with its decompositions.
  bool isDecomposed() const { return zip.find(root + "extra/shardc_decomposed") != nullptr; }

private:
  std::optional<std::string_view> text(const std::string &path, std::string &error) const;
  bool addTies(TensorStore &store, std::string &error) const;
  bool addTensors(const std::string &folder, const std::string &config, TensorStore &store,
                  std::string &error) const;

  ZipArchive zip;
  std::string root;  // with its slash
  std::string model; // "model" unless it was saved otherwise
};

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_PT2ARCHIVE_H
