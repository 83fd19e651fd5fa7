// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/Bytes.h"

#include <charconv>
#include <cmath>

static std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

static std::optional<double> unitOf(std::string_view name) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr double kib = 1024, mib = kib * kib, gib = mib * kib;
  for (Unit unit : {Unit{"", 1},
                    {"B", 1},
                    {"K", kib},
                    {"KiB", kib},
                    {"M", mib},
                    {"MiB", mib},
                    {"G", gib},
                    {"GiB", gib},
                    {"KB", 1e3},
                    {"MB", 1e6},
                    {"GB", 1e9}})
    if (name == unit.name)
      return unit.bytes;
  return std::nullopt;
}

std::optional<uint64_t> shardc::parseBytes(std::string_view text) {
  constexpr uint64_t most = 1000000000000000000;
  text = trimmed(text);
  const char *begin = text.data(), *end = begin + text.size();
  uint64_t whole = 0;
  if (auto [stop, error] = std::from_chars(begin, end, whole); stop == end && error == std::errc())
    return whole >= 1 && whole <= most ? std::optional(whole) : std::nullopt;
  double number = 0;
  auto [stop, error] = std::from_chars(begin, end, number, std::chars_format::fixed);
  if (error != std::errc())
    return std::nullopt;
  std::optional<double> unit = unitOf(trimmed({stop, size_t(end - stop)}));
  if (!unit || !(number * *unit >= 1) || number * *unit > double(most))
    return std::nullopt;
  return static_cast<uint64_t>(std::llround(number * *unit));
}
