// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A file mapped read-only into memory.
#ifndef SHARDC_SUPPORT_MAPPEDFILE_H
#define SHARDC_SUPPORT_MAPPEDFILE_H

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace shardc {

/// Pages are read when they are touched, so a rank that uses a slice of a tensor reads that slice.
class MappedFile {
public:
  /// Maps `path`. Returns null and sets `error` ("PATH: reason") when it is not a readable regular
  /// file. An empty file maps to an empty span.
  static std::shared_ptr<const MappedFile> open(const std::string &path, std::string &error);

  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const { return {data, size}; }
  const std::string &path() const { return name; }

private:
  MappedFile() = default;
  const std::byte *data = nullptr;
  size_t size = 0;
  std::string name;
};

} // namespace shardc

#endif // SHARDC_SUPPORT_MAPPEDFILE_H
