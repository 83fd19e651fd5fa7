// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/cost/core/TargetDescription.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

using namespace shardc;
using namespace shardc::cost;

namespace {

std::vector<std::string_view> splitWords(std::string_view line) {
  std::vector<std::string_view> words;
  size_t i = 0;
  while (true) {
    i = line.find_first_not_of(" \t\r", i);
    if (i == std::string_view::npos)
      return words;
    size_t end = line.find_first_of(" \t\r", i);
    words.push_back(line.substr(i, end - i));
    if (end == std::string_view::npos)
      return words;
    i = end;
  }
}

std::optional<double> parseNumber(std::string_view word) {
  double value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// Reads one description line by line; every mistake is kept and reading goes on.
class Parser {
public:
  Parser(std::string_view source, std::string &errors) : source(source), errors(errors) {}

  std::optional<TargetDescription> parse(std::string_view text) {
    while (!text.empty()) {
      size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
      ++lineNumber;
      line = line.substr(0, line.find('#'));
      std::vector<std::string_view> words = splitWords(line);
      if (!words.empty())
        parseLine(line, words);
    }
    checkComplete();
    if (failed)
      return std::nullopt;
    return std::move(target);
  }

private:
  void fail(const std::string &message) {
    failed = true;
    errors += std::string(source) + ":" + std::to_string(lineNumber) + ": " + message + "\n";
  }

  void parseLine(std::string_view line, const std::vector<std::string_view> &words) {
    if (words.front().front() == '[')
      return parseSection(line);
    if (line.find('=') != std::string_view::npos)
      return parseSetting(line);
    parseRow(words);
  }

  void parseSetting(std::string_view line) {
    size_t equals = line.find('=');
    std::vector<std::string_view> key = splitWords(line.substr(0, equals));
    std::vector<std::string_view> value = splitWords(line.substr(equals + 1));
    if (key.empty() || value.size() != 1)
      return fail("expected 'key = value'");
    if (key[0] == "name" && key.size() == 1) {
      target.name = value[0];
      return;
    }
    std::optional<double> number = parseNumber(value[0]);
    if (!number || *number < 0)
      return fail("'" + std::string(value[0]) + "' is not a number of 0 or more");
    if (key[0] == "peak_tflops" && key.size() == 2)
      target.peakTflops[std::string(key[1])] = *number;
    else if (key.size() != 1)
      fail("unknown setting '" + std::string(line.substr(0, equals)) + "'");
    else if (key[0] == "ranks_per_node" && *number >= 1 && *number <= 1e6)
      saysOneRank = (target.ranksPerNode = static_cast<uint32_t>(*number)) == 1;
    else if (key[0] == "memory_gb_per_s" && *number > 0)
      target.memoryGBPerSecond = *number;
    else if (key[0] == "launch_us")
      target.launchUs = *number;
    else
      fail("unknown setting or value out of range: '" + std::string(key[0]) +
           "'; settings are name, ranks_per_node, memory_gb_per_s, launch_us, peak_tflops TYPE");
  }

  void parseSection(std::string_view line) {
    table = nullptr;
    measured = nullptr;
    size_t open = line.find('['), close = line.find(']');
    if (close == std::string_view::npos || !splitWords(line.substr(close + 1)).empty())
      return fail("a section is '[KIND intra|inter algbw|busbw]' or '[measured KIND RANKS]'");
    std::vector<std::string_view> words = splitWords(line.substr(open + 1, close - open - 1));
    if (words.size() != 3)
      return fail("a section has three words: 'KIND intra|inter algbw|busbw' or "
                  "'measured KIND RANKS'");
    bool isMeasured = words[0] == "measured";
    std::optional<CollectiveKind> kind = parseCollectiveKind(words[isMeasured ? 1 : 0]);
    if (!kind)
      return fail("unknown collective '" + std::string(words[isMeasured ? 1 : 0]) + "'");
    if (isMeasured) {
      std::optional<double> size = parseNumber(words[2]);
      if (!size || *size < 1 || *size > 1e9 || *size != std::floor(*size))
        return fail("'" + std::string(words[2]) + "' is not a number of ranks");
      measured = &target.measured[{*kind, static_cast<uint32_t>(*size)}];
      return;
    }
    if (words[1] != "intra" && words[1] != "inter")
      return fail("'" + std::string(words[1]) + "' is neither 'intra' nor 'inter'");
    if (words[2] != "algbw" && words[2] != "busbw")
      return fail("'" + std::string(words[2]) + "' is neither 'algbw' nor 'busbw'");
    auto &tables = words[1] == "intra" ? target.intra : target.inter;
    table = &tables[static_cast<size_t>(*kind)];
    table->busBandwidth = words[2] == "busbw";
  }

  void parseRow(const std::vector<std::string_view> &words) {
    if (!table && !measured)
      return fail("expected 'key = value' or a section");
    size_t columns = table ? 3 : 2;
    if (words.size() != columns)
      return fail("a row of this section has " + std::to_string(columns) + " numbers");
    std::array<double, 3> row = {};
    for (size_t i = 0; i != columns; ++i) {
      std::optional<double> number = parseNumber(words[i]);
      if (!number || *number < 0)
        return fail("'" + std::string(words[i]) + "' is not a number of 0 or more");
      row[i] = *number;
    }
    std::vector<double> &keys = table ? table->counts : measured->bytes;
    if (!keys.empty() && row[0] <= keys.back())
      return fail("the first column must ascend");
    if (table && row[2] <= 0)
      return fail("a bandwidth must be above 0");
    keys.push_back(row[0]);
    (table ? table->latencyUs : measured->us).push_back(row[1]);
    if (table)
      table->gbPerSecond.push_back(row[2]);
  }

  void checkComplete() {
    if (target.name.empty())
      fail("no 'name'");
    if (target.memoryGBPerSecond == 0)
      fail("no 'memory_gb_per_s'");
    if (target.intra[0].empty() && target.inter[0].empty() && !(saysOneRank && target.isOneRank()))
      fail("no rows for all_gather, intra or inter: every other kind falls back to it");
    for (auto &[key, rows] : target.measured)
      if (rows.bytes.empty())
        fail("measured table of " + std::string(nameOf(key.first)) + " over " +
             std::to_string(key.second) + " ranks has no rows");
  }

  std::string_view source;
  std::string &errors;
  TargetDescription target;
  LinkTable *table = nullptr;
  MeasuredTable *measured = nullptr;
  unsigned lineNumber = 0;
  bool saysOneRank = false;
  bool failed = false;
};

} // namespace

bool TargetDescription::isOneRank() const {
  auto isEmpty = [](const LinkTable &table) { return table.empty(); };
  return ranksPerNode == 1 && std::ranges::all_of(intra, isEmpty) &&
         std::ranges::all_of(inter, isEmpty) && measured.empty();
}

std::optional<TargetDescription> shardc::cost::parseTargetDescription(std::string_view text,
                                                                      std::string_view source,
                                                                      std::string &errors) {
  return Parser(source, errors).parse(text);
}
