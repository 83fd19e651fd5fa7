// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reader of rules that are written as einsum texts.
#include "dialects/sharding/RuleText.h"

#include <algorithm>
#include <charconv>

namespace shardc {

namespace {

constexpr std::string_view kModes[] = {"zeros", "circular", "reflect", "replicate"};

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

class RuleReader {
public:
  RuleReader(std::string_view text, const RuleText::NumberOf &numberOf)
      : text(text), numberOf(numberOf) {}

  std::optional<RuleText> read(std::string &message) {
    readTensors(rule.operands);
    if (!accept("->"))
      fail("expected '->' between operands and results");
    readTensors(rule.results);
    while (accept(";"))
      readClause();
    if (!atEnd())
      fail("expected the end, or ';'");
    if (error.empty())
      checkNames();
    if (error.empty())
      return std::move(rule);
    message = std::move(error);
    return std::nullopt;
  }

private:
  void fail(const std::string &what) {
    if (error.empty())
      error = what + ", at character " + std::to_string(at + 1) + " of the rule '" +
              std::string(text) + "'";
  }
  void refuse(const std::string &what) {
    if (error.empty())
      error = what + ", in the rule '" + std::string(text) + "'";
  }

  bool atEnd() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n'))
      ++at;
    return at == text.size();
  }
  bool accept(std::string_view token) {
    if (atEnd() || text.substr(at, token.size()) != token)
      return false;
    at += token.size();
    return true;
  }
  std::string word() {
    atEnd();
    size_t begin = at;
    while (at < text.size() && isNameCharacter(text[at]))
      ++at;
    return std::string(text.substr(begin, at - begin));
  }
  /// A name begins with a letter, so that it is no size.
  std::string name() {
    std::string read = word();
    if (read.empty() || (read.front() >= '0' && read.front() <= '9'))
      fail("expected the name of a dim");
    return read;
  }

  void readTensors(std::vector<std::vector<TextDim>> &tensors) {
    do
      tensors.push_back(readTensor());
    while (error.empty() && accept(","));
  }

  std::vector<TextDim> readTensor() {
    std::vector<TextDim> dims;
    bool isScalar = false;
    if (accept("_") && (atEnd() || !isNameCharacter(text[at])))
      return {{{std::string(kUnused)}, std::nullopt}};
    while (error.empty() && !atEnd() && (isNameCharacter(text[at]) || text[at] == '(')) {
      TextDim dim;
      if (accept("(")) {
        while (error.empty() && !accept(")"))
          dim.names.push_back(name());
        isScalar = dim.names.empty();
        if (isScalar)
          break;
      } else {
        dim.names.push_back(name());
      }
      if (accept("["))
        dim.window = readWindow();
      dims.push_back(std::move(dim));
    }
    if (dims.empty() && !isScalar)
      fail("expected the dims of a tensor, or () for one without dims");
    if (!dims.empty() && isScalar)
      fail("() is a tensor without dims, and no dim");
    return dims;
  }

  /// A sum of products.
  std::optional<int64_t> number(std::string_view what) {
    std::optional<int64_t> sum = product(what);
    while (sum && error.empty()) {
      bool isDifference = accept("-");
      if (!isDifference && !accept("+"))
        break;
      std::optional<int64_t> more = product(what);
      int64_t result = 0;
      if (more && (isDifference ? __builtin_sub_overflow(*sum, *more, &result)
                                : __builtin_add_overflow(*sum, *more, &result)))
        fail("the " + std::string(what) + " of a window is too large");
      sum = more ? std::optional(result) : std::nullopt;
    }
    return sum;
  }

  std::optional<int64_t> product(std::string_view what) {
    std::optional<int64_t> value = atom(what);
    while (value && error.empty() && accept("*")) {
      std::optional<int64_t> more = atom(what);
      int64_t result = 0;
      if (more && __builtin_mul_overflow(*value, *more, &result))
        fail("the " + std::string(what) + " of a window is too large");
      value = more ? std::optional(result) : std::nullopt;
    }
    return value;
  }

  std::optional<int64_t> atom(std::string_view what) {
    std::string read = word();
    int64_t value = 0;
    auto [end, code] = std::from_chars(read.data(), read.data() + read.size(), value);
    if (!read.empty() && code == std::errc() && end == read.data() + read.size())
      return value;
    if (std::optional<int64_t> named = numberOf && !read.empty() ? numberOf(read) : std::nullopt)
      return named;
    fail("the " + std::string(what) + " of a window is a number" +
         (numberOf ? ", or an integer argument of the op" : "") + ", not '" + read + "'");
    return std::nullopt;
  }

  TextWindow readWindow() {
    TextWindow window;
    do {
      std::string key = word();
      if (!accept("="))
        fail("expected KEY=VALUE in a window, with the keys kernel, stride, dilation, padding and "
             "mode");
      if (key == "mode") {
        window.mode = word();
        if (std::find(std::begin(kModes), std::end(kModes), window.mode) == std::end(kModes))
          fail("there is no mode '" + window.mode +
               "' of padding; it is zeros, circular, reflect or replicate");
        continue;
      }
      int64_t *field = key == "kernel"     ? &window.kernel
                       : key == "stride"   ? &window.stride
                       : key == "dilation" ? &window.dilation
                       : key == "padding"  ? &window.padding
                                           : nullptr;
      if (!field)
        fail("a window has no '" + key + "'; it has kernel, stride, dilation, padding and mode");
      std::optional<int64_t> value = error.empty() ? number(key) : std::nullopt;
      int64_t least = key == "padding" ? 0 : 1;
      if (value && (*value < least || *value > INT32_MAX))
        fail("the " + key + " of a window is at least " + std::to_string(least) + ", not " +
             std::to_string(*value));
      if (field && value)
        *field = *value;
    } while (error.empty() && accept(","));
    if (error.empty() && !accept("]"))
      fail("expected ']' behind a window");
    return window;
  }

  void readClause() {
    std::string kind = word();
    bool isWhole = kind == "whole";
    std::optional<Reduction> reduction = kind == "sum"   ? std::optional(Reduction::Sum)
                                         : kind == "max" ? std::optional(Reduction::Max)
                                         : kind == "min" ? std::optional(Reduction::Min)
                                                         : std::nullopt;
    if (!isWhole && !reduction)
      return fail("expected 'whole', 'sum', 'max' or 'min' behind ';', not '" + kind + "'");
    do {
      std::string read = name();
      if (isWhole)
        rule.whole.push_back(read);
      else
        rule.reduced.emplace_back(read, *reduction);
    } while (error.empty() && !atEnd() && text[at] != ';');
  }

  /// Where names occur, over all tensors of one side.
  static bool occurs(const std::vector<std::vector<TextDim>> &tensors, std::string_view name,
                     bool outsideOfWindows) {
    for (const std::vector<TextDim> &dims : tensors)
      for (const TextDim &dim : dims)
        if (!(outsideOfWindows && dim.window) &&
            std::find(dim.names.begin(), dim.names.end(), name) != dim.names.end())
          return true;
    return false;
  }

  bool hasWindow(std::string_view name) const {
    for (const std::vector<TextDim> &dims : rule.operands)
      for (const TextDim &dim : dims)
        if (dim.window && dim.names.front() == name)
          return true;
    return false;
  }

  void checkNames() {
    for (const std::vector<TextDim> &dims : rule.results)
      if (!dims.empty() && dims.front().names.front() == kUnused)
        refuse("'_' stands for an operand that is not needed, and a result is");
    for (const auto *side : {&rule.operands, &rule.results})
      for (const std::vector<TextDim> &dims : *side) {
        std::vector<std::string_view> seen;
        for (const TextDim &dim : dims) {
          for (const std::string &name : dim.names) {
            if (dim.names.size() > 1 && hasWindow(name))
              refuse("a window slides over '" + name + "', which is no dim of its own elsewhere");
            if (std::find(seen.begin(), seen.end(), name) != seen.end())
              refuse("'" + name + "' is two dims of one tensor");
            seen.push_back(name);
          }
          if (!dim.window)
            continue;
          if (side == &rule.results)
            refuse("'" + dim.names.front() +
                   "' has a window in a result; windows slide over operands");
          if (dim.names.size() != 1)
            refuse("a window slides over a dim of one name");
          else if (!occurs(rule.results, dim.names.front(), false) &&
                   !occurs(rule.operands, dim.names.front(), true))
            refuse("nothing counts the positions of the window over '" + dim.names.front() +
                   "': no result has it, nor an operand without a window");
        }
      }
    for (const auto &[name, reduction] : rule.reduced) {
      if (!occurs(rule.operands, name, true))
        refuse("'" + name + "' is reduced, but no operand has it");
      if (occurs(rule.results, name, false))
        refuse("'" + name + "' is reduced, but a result has it");
      if (hasWindow(name))
        refuse("'" + name + "' is reduced, but a window slides over it");
    }
    for (const std::string &name : rule.whole)
      if (!occurs(rule.operands, name, false) && !occurs(rule.results, name, false))
        refuse("'" + name + "' is whole, but no tensor has it");
  }

  std::string_view text;
  const RuleText::NumberOf &numberOf;
  RuleText rule;
  size_t at = 0;
  std::string error;
};

} // namespace

std::optional<RuleText> RuleText::parse(std::string_view text, std::string &error,
                                        const NumberOf &numberOf) {
  return RuleReader(text, numberOf).read(error);
}

} // namespace shardc
