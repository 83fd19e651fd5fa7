// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists of sizes in the headers of files that hold tensors.
#ifndef SHARDC_SUPPORT_ARCHIVE_READSIZES_H
#define SHARDC_SUPPORT_ARCHIVE_READSIZES_H

#include "support/Json.h"

#include <optional>
#include <vector>

namespace shardc {

/// Appends the elements of an array of integers, none of which is negative; false if it is none.
inline bool readSizes(JsonValue value, std::vector<int64_t> &out) {
  if (!value.isArray())
    return false;
  for (JsonValue element : value.elements()) {
    std::optional<int64_t> size = element.integer();
    if (!size || *size < 0)
      return false;
    out.push_back(*size);
  }
  return true;
}

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_READSIZES_H
