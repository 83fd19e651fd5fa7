// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/archive/Json.h"

#include <cstring>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

namespace shardc {
namespace {

using Json = nlohmann::json;
using Kind = JsonToken::Kind;

// Receives the parser's events. An escaped string is never longer than its source text, so one
// allocation of the text's size holds all strings.
class TokenBuilder {
public:
  TokenBuilder(std::vector<JsonToken> &tokens, char *arena) : tokens(tokens), arena(arena) {}

  bool null() {
    push(Kind::Null);
    return true;
  }
  bool boolean(bool value) {
    push(Kind::Bool).integer = value;
    return true;
  }
  bool number_integer(int64_t value) {
    push(Kind::Integer).integer = value;
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      push(Kind::Real).real = double(value);
    else
      push(Kind::Integer).integer = int64_t(value);
    return true;
  }
  bool number_float(double value, const std::string &) {
    push(Kind::Real).real = value;
    return true;
  }
  bool string(std::string &value) {
    text(push(Kind::String), value);
    return true;
  }
  bool binary(Json::binary_t &) { return false; }
  bool key(std::string &value) {
    JsonToken &token = tokens.emplace_back();
    token.kind = Kind::String;
    text(token, value);
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
  JsonToken &push(Kind kind) {
    if (!containers.empty())
      ++tokens[containers.back()].size;
    JsonToken &token = tokens.emplace_back();
    token.kind = kind;
    token.integer = 0;
    return token;
  }
  void text(JsonToken &token, const std::string &value) {
    std::memcpy(arena, value.data(), value.size());
    token.text = arena;
    token.size = uint32_t(value.size());
    arena += value.size();
  }
  bool open(Kind kind) {
    if (containers.size() == JsonDocument::maxDepth) {
      problem = "containers nest more than " + std::to_string(JsonDocument::maxDepth) + " deep";
      return false;
    }
    push(kind);
    containers.push_back(tokens.size() - 1);
    return true;
  }
  bool close() {
    JsonToken &token = tokens[containers.back()];
    token.skip = tokens.size() - containers.back();
    containers.pop_back();
    return true;
  }

  std::vector<JsonToken> &tokens;
  std::vector<size_t> containers;
  char *arena;
};

} // namespace

std::optional<JsonDocument> JsonDocument::parse(std::string_view text, std::string &error) try {
  if (text.size() > std::numeric_limits<uint32_t>::max()) {
    error = "the document is longer than 4 GiB";
    return std::nullopt;
  }
  JsonDocument document;
  document.arena = std::shared_ptr<char[]>(new char[text.size() + 1]);
  document.tokens.reserve(text.size() / 12 + 1);
  TokenBuilder builder(document.tokens, document.arena.get());
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
    range.last = token + token->skip;
  }
  return range;
}

JsonElements JsonValue::elements() const {
  JsonElements range;
  if (isArray()) {
    range.first = token + 1;
    range.last = token + token->skip;
  }
  return range;
}

} // namespace shardc
