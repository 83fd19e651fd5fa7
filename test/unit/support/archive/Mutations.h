// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutations of archives and of the JSON of programs.
#ifndef SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_MUTATIONS_H
#define SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_MUTATIONS_H

#include <random>
#include <string>
#include <vector>

namespace shardc::test {

inline size_t below(std::mt19937_64 &random, size_t limit) { return limit ? random() % limit : 0; }

inline std::string mutateBytes(std::string bytes, std::mt19937_64 &random) {
  for (size_t i = 0, n = 1 + below(random, 8); i < n && !bytes.empty(); ++i) {
    size_t at = below(random, bytes.size());
    switch (below(random, 5)) {
    case 0:
      bytes[at] = char(random());
      break;
    case 1:
      bytes[at] = char(bytes[at] ^ (1 << below(random, 8)));
      break;
    case 2:
      bytes.resize(at);
      break;
    case 3:
      bytes.erase(at, 1 + below(random, 64));
      break;
    case 4: // an extreme number in the place of four or eight bytes
      for (size_t k = 0, size = random() & 1 ? 4 : 8; k < size && at + k < bytes.size(); ++k)
        bytes[at + k] = random() % 4 ? char(0xff) : char(random());
      break;
    }
  }
  return bytes;
}

// Replaces pieces of JSON by others, so that most results still parse.
inline std::string mutateJson(std::string json, std::mt19937_64 &random) {
  static const std::vector<std::string> pieces = {"null",
                                                  "true",
                                                  "-1",
                                                  "0",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "1e308",
                                                  "\"\"",
                                                  "[]",
                                                  "{}",
                                                  "\"Infinity\"",
                                                  "{\"as_int\": 5}",
                                                  "{\"as_none\": true}",
                                                  "{\"as_tensor\": {\"name\": \"x\"}}",
                                                  "{\"as_expr\": {\"expr_str\": \"Add(\"}}"};
  for (size_t i = 0, n = 1 + below(random, 4); i < n; ++i) {
    size_t begin = json.find_first_of(",:[{", below(random, json.size()));
    if (begin == std::string::npos)
      continue;
    size_t end = json.find_first_of(",]}", begin + 1);
    if (end == std::string::npos)
      continue;
    if (random() % 4 == 0) // moves a piece of the text elsewhere
      json.insert(begin + 1, json.substr(below(random, json.size()), below(random, 200)) + ",");
    else
      json.replace(begin + 1, end - begin - 1, pieces[below(random, pieces.size())]);
  }
  return json;
}

/// Puts values of arguments, shapes, targets and names where others were, and numbers that are
/// extreme: programs that parse, and are wrong.
inline std::string mutateProgram(std::string json, std::mt19937_64 &random) {
  struct Marker {
    const char *text, *end;
    std::vector<std::string> values;
  };
  static const std::vector<Marker> markers = {
      {"\"as_int\": ", ",}]", {"-1", "0", "1", "7", "-9", "4294967296", "9223372036854775807"}},
      {"\"as_ints\": [", "]", {"", "0", "-1, -1", "2, 3, 5", "9223372036854775807, 2"}},
      {"\"dtype\": ", ",}", {"1", "5", "6", "7", "10", "12"}},
      {"\"as_float\": ", "}", {"\"NaN\"", "\"-Infinity\"", "1e308", "0.0"}},
      {"\"as_bool\": ", "}", {"true", "false"}},
      {"\"target\": \"",
       "\"",
       {"torch.ops.aten.view.default", "torch.ops.aten.add_.Tensor", "torch.ops.aten.cat.default"}},
      {"\"as_tensor\": {\"name\": \"", "\"", {}},
      {"\"expr_str\": \"",
       "\"",
       {"Symbol('u0')", "FloorDiv(Symbol('s77'), Symbol('s77'))", "Integer(0)"}},
      {"\"arg\": {",
       "}",
       {"\"as_none\": true", "\"as_int\": -7", "\"as_ints\": [3]", "\"as_string\": \"x\""}},
  };
  auto valueAt = [&](const Marker &marker, size_t near, size_t &begin, size_t &end) {
    begin = json.find(marker.text, near);
    if (begin == std::string::npos)
      return false;
    begin += std::string(marker.text).size();
    end = json.find_first_of(marker.end, begin);
    return end != std::string::npos;
  };
  for (size_t i = 0, n = 1 + below(random, 3); i < n; ++i) {
    const Marker &marker = markers[below(random, markers.size())];
    size_t begin, end, otherBegin, otherEnd;
    if (!valueAt(marker, below(random, json.size()), begin, end))
      continue;
    std::string value;
    if (!marker.values.empty() && random() % 2)
      value = marker.values[below(random, marker.values.size())];
    else if (valueAt(marker, below(random, json.size()), otherBegin, otherEnd))
      value = json.substr(otherBegin, otherEnd - otherBegin);
    else
      continue;
    json.replace(begin, end - begin, value);
  }
  return json;
}

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_SUPPORT_ARCHIVE_MUTATIONS_H
