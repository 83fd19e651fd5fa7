// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Json.h"

#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

namespace shardc {
namespace {

using Json = nlohmann::json;
using Kind = JsonToken::Kind;

// Receives the parser's events. An escaped string is never longer than its source text, so one
// allocation of the text's size holds all strings. Keys and names repeat all the time: those of the
// last strings that are equal are shared, so that most of that allocation is never touched.
class TokenBuilder {
public:
  TokenBuilder(std::vector<JsonToken> &tokens, JsonText &text)
      : tokens(tokens), text(text), recent(numRecent), arena(text.arena.get()) {}

  bool null() { return push(Kind::Null, 0, 0); }
  bool boolean(bool value) { return push(Kind::Bool, 0, value); }
  bool number_integer(int64_t value) {
    if (JsonToken::fits(value))
      return push(Kind::Integer, uint64_t(value) >> 32 & JsonToken::maxSize, uint32_t(value));
    return wide(Kind::Wide, uint64_t(value));
  }
  bool number_unsigned(uint64_t value) {
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      return wide(Kind::Real, std::bit_cast<uint64_t>(double(value)));
    return number_integer(int64_t(value));
  }
  bool number_float(double value, const std::string &) {
    return wide(Kind::Real, std::bit_cast<uint64_t>(value));
  }
  bool string(std::string &value) {
    return checkSize(value) && push(Kind::String, value.size(), place(value));
  }
  bool binary(Json::binary_t &) { return false; }
  bool key(std::string &value) {
    if (!checkSize(value))
      return false;
    append(Kind::String, value.size(), place(value));
    return true;
  }
  bool start_object(size_t) { return open(Kind::Object); }
  bool start_array(size_t) { return open(Kind::Array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t at, const std::string &, const Json::exception &what) {
    problem = "byte " + std::to_string(at) + ": " + what.what();
    return false;
  }

  std::string problem;

private:
  void append(Kind kind, uint64_t size, uint64_t at) {
    JsonToken &token = tokens.emplace_back();
    token.kindBits = static_cast<uint64_t>(kind);
    token.size = size;
    token.at = at;
  }
  // A value, not a key.
  bool push(Kind kind, uint64_t size, uint64_t at) {
    if (!containers.empty()) {
      JsonToken &container = tokens[containers.back()];
      if (container.size == JsonToken::maxSize)
        return tooLarge();
      ++container.size;
    }
    append(kind, size, at);
    return true;
  }
  bool wide(Kind kind, uint64_t bits) {
    text.wide.push_back(bits);
    return push(kind, 0, text.wide.size() - 1);
  }
  bool checkSize(const std::string &value) {
    return value.size() <= JsonToken::maxSize || tooLarge();
  }
  bool tooLarge() {
    problem = "a string or container has more than " + std::to_string(JsonToken::maxSize) +
              " bytes or children";
    return false;
  }
  // Where the string is in the arena.
  uint64_t place(const std::string &value) {
    std::string_view &known = recent[std::hash<std::string_view>()(value) % numRecent];
    if (known != value) {
      std::memcpy(arena, value.data(), value.size());
      known = {arena, value.size()};
      arena += value.size();
    }
    return known.empty() ? 0 : known.data() - text.arena.get();
  }
  bool open(Kind kind) {
    if (containers.size() == JsonDocument::maxDepth) {
      problem = "containers nest more than " + std::to_string(JsonDocument::maxDepth) + " deep";
      return false;
    }
    if (!push(kind, 0, 0))
      return false;
    containers.push_back(tokens.size() - 1);
    return true;
  }
  bool close() {
    tokens[containers.back()].at = tokens.size() - containers.back();
    containers.pop_back();
    return true;
  }

  static constexpr size_t numRecent = 4096;

  std::vector<JsonToken> &tokens;
  JsonText &text;
  std::vector<size_t> containers;
  std::vector<std::string_view> recent;
  char *arena;
};

// At least as many as there are tokens: each follows a bracket, comma or colon, or is the first.
size_t countTokens(std::string_view text) {
  size_t count = 1;
  for (char c : text)
    count += (c == '[') + (c == '{') + (c == ',') + (c == ':');
  return count;
}

} // namespace

std::optional<JsonDocument> JsonDocument::parse(std::string_view text, std::string &error) try {
  if (text.size() > std::numeric_limits<uint32_t>::max()) {
    error = "the document is longer than 4 GiB";
    return std::nullopt;
  }
  JsonDocument document;
  document.text = std::make_shared<JsonText>();
  document.text->arena.reset(new char[text.size() + 1]);
  // Growing would hold two copies; what is never touched takes no memory.
  document.tokens.reserve(countTokens(text));
  TokenBuilder builder(document.tokens, *document.text);
  if (!Json::sax_parse(text.data(), text.data() + text.size(), &builder)) {
    error = builder.problem.empty() ? "not a JSON document" : builder.problem;
    return std::nullopt;
  }
  return document;
} catch (const std::exception &exception) {
  error = exception.what();
  return std::nullopt;
}

JsonValue JsonValue::operator[](std::string_view key) const {
  for (JsonMember member : members())
    if (member.key == key)
      return member.value;
  return {};
}

JsonMembers JsonValue::members() const {
  JsonMembers range;
  if (isObject()) {
    range.first = token + 1;
    range.last = token + token->extent();
    range.text = text;
  }
  return range;
}

JsonElements JsonValue::elements() const {
  JsonElements range;
  if (isArray()) {
    range.first = token + 1;
    range.last = token + token->extent();
    range.text = text;
  }
  return range;
}

} // namespace shardc
