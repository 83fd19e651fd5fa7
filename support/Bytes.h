// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of bytes as people write them.

#ifndef SHARDC_SUPPORT_BYTES_H
#define SHARDC_SUPPORT_BYTES_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

/// Reads "1234", "64KiB", "1.5 GB" (K, M and G are KiB, MiB and GiB). Nothing for other text, for
/// less than one byte and for more than 10^18.
std::optional<uint64_t> parseBytes(std::string_view text);

} // namespace shardc

#endif // SHARDC_SUPPORT_BYTES_H
