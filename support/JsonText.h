// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JSON as it is written: one quoting for all that prints it, with the standard library alone (the
// runtime's tools and the importer plugin print some too, and link nothing for it).
#ifndef SHARDC_SUPPORT_JSONTEXT_H
#define SHARDC_SUPPORT_JSONTEXT_H

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace shardc {

/// `text` as a JSON string, quotes included. Bytes beyond ASCII stay as they are (UTF-8).
inline std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// The shortest decimal that reads back as the same double; `null` for what JSON has no number for.
inline std::string jsonNumber(double value) {
  if (!std::isfinite(value))
    return "null";
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

} // namespace shardc

#endif // SHARDC_SUPPORT_JSONTEXT_H
