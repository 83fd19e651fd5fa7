// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a safetensors file begins with, for those who write one.
#ifndef SHARDC_SUPPORT_ARCHIVE_SAFETENSORSWRITER_H
#define SHARDC_SUPPORT_ARCHIVE_SAFETENSORSWRITER_H

#include "support/ElementType.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shardc {

/// A tensor of the file, dense and row-major.
struct SafetensorsEntry {
  std::string name;
  ElementType type = ElementType::F32; ///< one with a safetensorsName
  std::vector<int64_t> sizes;
  /// Bytes behind the header, set by `safetensorsHeader`.
  uint64_t begin = 0, end = 0;
};

/// Everything of the file up to the data of the first tensor: the header's length and the header,
/// with spaces up to a multiple of 64 bytes. Places the tensors one behind the other, as the format
/// wants it: in the order of falling widths each lies at a multiple of its own.
std::string safetensorsHeader(std::vector<SafetensorsEntry> &entries,
                              const std::vector<std::pair<std::string, std::string>> &metadata);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_SAFETENSORSWRITER_H
