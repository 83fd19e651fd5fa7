// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/ByteSize.h"

#include <charconv>
#include <cmath>

namespace shardc {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit units[] = {
    {"", 1},          {"B", 1},           {"K", 1024.0},   {"KiB", 1024.0}, {"KB", 1e3},
    {"M", 1048576.0}, {"MiB", 1048576.0}, {"MB", 1e6},     {"G", 0x1p30},   {"GiB", 0x1p30},
    {"GB", 1e9},      {"T", 0x1p40},      {"TiB", 0x1p40}, {"TB", 1e12},
};
constexpr uint64_t most = 1000000000000000000;

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

std::optional<double> bytesOf(std::string_view unit, std::optional<uint64_t> whole) {
  if (unit == "%")
    return whole ? std::optional(static_cast<double>(*whole) / 100) : std::nullopt;
  for (const Unit &known : units)
    if (unit == known.name)
      return known.bytes;
  return std::nullopt;
}

} // namespace

std::optional<uint64_t> parseByteSize(std::string_view text, std::optional<uint64_t> whole) {
  text = trim(text);
  size_t length = text.find_first_not_of("0123456789.");
  std::string_view digits = text.substr(0, length);
  std::optional<double> unit = bytesOf(trim(text.substr(digits.size())), whole);
  double number = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number,
                                      std::chars_format::fixed);
  if (!unit || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  // Whole numbers of bytes beyond 2^53 are exact too.
  uint64_t exact = 0;
  auto [exactEnd, exactError] = std::from_chars(digits.data(), end, exact);
  if (*unit == 1 && exactError == std::errc() && exactEnd == end)
    return exact <= most ? std::optional(exact) : std::nullopt;
  double bytes = std::round(number * *unit);
  return bytes <= static_cast<double>(most) ? std::optional(static_cast<uint64_t>(bytes))
                                            : std::nullopt;
}

} // namespace shardc
