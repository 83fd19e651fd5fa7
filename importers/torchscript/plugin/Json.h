// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// JSON text, as far as writing a program needs it.
#ifndef SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_JSON_H
#define SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_JSON_H

#include "support/JsonText.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace shardc::torchscript {

/// JSON has no infinities: they are strings, as torch.export writes them.
inline std::string number(double value) {
  if (std::isnan(value))
    return "\"NaN\"";
  if (std::isinf(value))
    return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  // A float stays one.
  if (std::string_view(text).find_first_of(".e") == std::string_view::npos)
    return std::string(text) + ".0";
  return text;
}

/// {"key": value}, of a value that is JSON already.
inline std::string member(std::string_view key, const std::string &value) {
  return "{" + jsonString(key) + ": " + value + "}";
}

/// [a, b, ...] of what `text` makes of each item.
template <typename Items, typename Text> std::string list(const Items &items, Text text) {
  std::string out = "[";
  bool first = true;
  for (const auto &item : items) {
    out += first ? "" : ", ";
    out += text(item);
    first = false;
  }
  return out + "]";
}

} // namespace shardc::torchscript

#endif // SHARDC_IMPORTERS_TORCHSCRIPT_PLUGIN_JSON_H
