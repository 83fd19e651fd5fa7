// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/archive/SafetensorsWriter.h"

#include "support/JsonText.h"

#include <cstring>

namespace shardc {

std::string safetensorsHeader(std::vector<SafetensorsEntry> &entries,
                              const std::vector<std::pair<std::string, std::string>> &metadata) {
  std::string text = "{";
  auto separate = [&] { text += text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    const char *separator = "";
    for (auto &[key, value] : metadata) {
      text += separator + jsonString(key) + ":" + jsonString(value);
      separator = ",";
    }
    text += "}";
  }
  uint64_t at = 0;
  for (SafetensorsEntry &entry : entries) {
    separate();
    text += jsonString(entry.name) + ":{\"dtype\":\"";
    text += safetensorsName(entry.type);
    text += "\",\"shape\":[";
    uint64_t bytes = byteWidth(entry.type);
    for (size_t d = 0; d < entry.sizes.size(); ++d) {
      text += (d ? "," : "") + std::to_string(entry.sizes[d]);
      bytes *= uint64_t(entry.sizes[d]);
    }
    entry.begin = at;
    entry.end = at += bytes;
    text += "],\"data_offsets\":[" + std::to_string(entry.begin) + "," + std::to_string(entry.end) +
            "]}";
  }
  text += "}";
  constexpr size_t alignment = 64;
  uint64_t length = text.size();
  length = (sizeof length + length + alignment - 1) / alignment * alignment - sizeof length;
  text.resize(length, ' ');
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

} // namespace shardc
