// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads the directory of a zip archive whose records are stored uncompressed, in place.
// Format: PKWARE APPNOTE 6.3.10, sections 4.3 to 4.5.
#ifndef SHARDC_SUPPORT_ARCHIVE_ZIP_H
#define SHARDC_SUPPORT_ARCHIVE_ZIP_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardc {

/// A record of the archive. The views point into the bytes given to `ZipArchive::read`.
struct ZipRecord {
  std::string_view name;
  std::span<const std::byte> bytes;
  uint32_t crc = 0;
  /// Then `bytes` are the compressed ones, and `size` counts what they unpack to.
  bool compressed = false;
  uint64_t size = 0;
};

class ZipArchive {
public:
  /// Whether `bytes` begin as a zip archive does. For telling kinds of files apart.
  static bool hasMagic(std::span<const std::byte> bytes);

  /// Reads the central directory (local headers of streamed archives hold no sizes) and checks
  /// every length and offset against the file. `bytes` must outlive the archive. On failure `error`
  /// says what is wrong: truncated, compressed or encrypted records, names that repeat, parts
  /// outside the file. `allowCompressed`: compressed records are listed (nothing unpacks them
  /// here).
  static std::optional<ZipArchive> read(std::span<const std::byte> bytes, std::string &error,
                                        bool allowCompressed = false);

  /// The record called `name`, or null.
  const ZipRecord *find(std::string_view name) const;

  const std::vector<ZipRecord> &records() const { return list; }

private:
  std::vector<ZipRecord> list;
  std::unordered_map<std::string_view, size_t> index;
};

/// The CRC-32 of zip (polynomial 0xEDB88320, reflected).
uint32_t crc32(std::span<const std::byte> bytes);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_ZIP_H
