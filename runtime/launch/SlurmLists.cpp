// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/launch/SlurmLists.h"

#include <charconv>
#include <string_view>

namespace shardc::rt {

namespace {

bool isNamePart(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_';
}

bool takeNumber(std::string_view &text, uint32_t &value) {
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    return false;
  text.remove_prefix(size_t(stop - text.data()));
  return true;
}

bool take(std::string_view &text, std::string_view what) {
  if (!text.starts_with(what))
    return false;
  text.remove_prefix(what.size());
  return true;
}

} // namespace

std::optional<std::string> firstHost(const std::string &list) {
  constexpr size_t longestName = 253; // RFC 1035
  std::string host;
  size_t i = 0;
  while (i < list.size() && list[i] != ',') {
    if (list[i] == '[') {
      size_t end = list.find(']', i);
      size_t digits = list.find_first_not_of("0123456789", i + 1);
      if (end == std::string::npos || digits == i + 1 ||
          (list[digits] != '-' && list[digits] != ',' && list[digits] != ']'))
        return std::nullopt;
      host += list.substr(i + 1, digits - i - 1);
      i = end + 1;
    } else if (isNamePart(list[i])) {
      host += list[i++];
    } else {
      return std::nullopt;
    }
  }
  if (host.empty() || host.size() > longestName)
    return std::nullopt;
  return host;
}

std::optional<uint32_t> tasksOfNode(const std::string &list, uint32_t node) {
  std::string_view rest = list;
  do {
    uint32_t tasks = 0, times = 1;
    if (!takeNumber(rest, tasks))
      return std::nullopt;
    if (take(rest, "(x") && !(takeNumber(rest, times) && take(rest, ")")))
      return std::nullopt;
    if (node < times)
      return tasks > 0 ? std::optional(tasks) : std::nullopt;
    node -= times;
  } while (take(rest, ","));
  return std::nullopt;
}

} // namespace shardc::rt
