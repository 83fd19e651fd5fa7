// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes of memory as people write them in options.
#ifndef SHARDC_SUPPORT_BYTESIZE_H
#define SHARDC_SUPPORT_BYTESIZE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

/// Reads a number with an optional fraction and an optional unit: "1234", "64KiB", "1.5 GB",
/// "110%".
///
///   (none), B               bytes
///   K, M, G, T, KiB, ...    powers of 1024
///   KB, MB, GB, TB          powers of 1000
///   %                       hundredths of `whole`, where there is one
///
/// The result is rounded to the nearest byte. Nothing for any other text, a negative number, or
/// more than 10^18 bytes.
std::optional<uint64_t> parseByteSize(std::string_view text,
                                      std::optional<uint64_t> whole = std::nullopt);

} // namespace shardc

#endif // SHARDC_SUPPORT_BYTESIZE_H
