// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/report/LayerPattern.h"

#include <algorithm>
#include <charconv>

namespace shardc {

static constexpr std::string_view digits = "0123456789";
static constexpr std::string_view ofComponents =
    "0123456789_*{}abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

LayerPattern::LayerPattern(std::string_view text) : pieces(1) {
  bool followsName = false; // what is before the dot here is a name or such a number
  for (size_t i = 0; i < text.size();) {
    size_t end = std::min(text.find_first_not_of(ofComponents, i), text.size());
    std::string_view component = text.substr(i, end - i);
    bool isNumber = !component.empty() && component.size() < 19 &&
                    component.find_first_not_of(digits) == std::string_view::npos;
    if (isNumber && followsName) {
      std::from_chars(component.data(), component.data() + component.size(),
                      numbers.emplace_back());
      pieces.emplace_back();
    } else {
      pieces.back() += component;
      followsName = !component.empty() && !isNumber;
    }
    if (end < text.size()) {
      pieces.back() += text[end];
      followsName &= text[end] == '.';
    }
    i = end + 1;
  }
}

std::string LayerPattern::key() const {
  std::string text = pieces.front();
  for (size_t i = 1; i < pieces.size(); ++i)
    text += "*" + pieces[i];
  return text;
}

void LayerGroup::add(const LayerPattern &pattern) {
  for (size_t i = 0; i < seen.size() && i < pattern.numbers.size(); ++i)
    seen[i].insert(pattern.numbers[i]);
}

static std::string rangeOf(const std::set<uint64_t> &numbers) {
  uint64_t first = *numbers.begin(), last = *numbers.rbegin();
  if (first == last)
    return std::to_string(first);
  if (last - first + 1 == numbers.size())
    return "{" + std::to_string(first) + "-" + std::to_string(last) + "}";
  return "*";
}

std::string LayerGroup::str() const {
  std::string text = pieces.front();
  for (size_t i = 0; i < seen.size(); ++i)
    text += rangeOf(seen[i]) + pieces[i + 1];
  return text;
}

} // namespace shardc
