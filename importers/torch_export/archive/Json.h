// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A JSON document as one flat array of tokens: cheap to build, to walk and to free, and the only
// place that sees the JSON library. Nothing here throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// A token; a container is followed by its children, an object's as key, value, key, value.
struct JsonToken {
  enum class Kind : uint8_t { Null, Bool, Integer, Real, String, Array, Object };
  Kind kind = Kind::Null;
  uint32_t size = 0; // children of an array, members of an object, bytes of a string
  union {
    int64_t integer; // also Bool
    double real;
    const char *text;
    uint64_t skip; // containers: tokens in the subtree, this one included
  };

  size_t extent() const { return kind == Kind::Array || kind == Kind::Object ? skip : 1; }
};

class JsonMembers;
class JsonElements;

/// A view of one value; valid while its document lives. A missing member is a value too, for which
/// every question is answered by nothing, so that lookups chain.
class JsonValue {
public:
  JsonValue() = default;
  explicit JsonValue(const JsonToken *token) : token(token) {}

  bool exists() const { return token; }
  bool isNull() const { return is(JsonToken::Kind::Null); }
  bool isString() const { return is(JsonToken::Kind::String); }
  bool isArray() const { return is(JsonToken::Kind::Array); }
  bool isObject() const { return is(JsonToken::Kind::Object); }

  std::optional<bool> boolean() const {
    return is(JsonToken::Kind::Bool) ? std::optional<bool>(token->integer != 0) : std::nullopt;
  }
  /// Nothing for numbers with a fraction or exponent, and beyond 64 bits.
  std::optional<int64_t> integer() const {
    return is(JsonToken::Kind::Integer) ? std::optional<int64_t>(token->integer) : std::nullopt;
  }
  /// Any number.
  std::optional<double> real() const {
    if (is(JsonToken::Kind::Real))
      return token->real;
    return is(JsonToken::Kind::Integer) ? std::optional<double>(double(token->integer))
                                        : std::nullopt;
  }
  std::optional<std::string_view> string() const {
    return isString() ? std::optional<std::string_view>({token->text, token->size}) : std::nullopt;
  }

  /// Elements of an array or members of an object; 0 otherwise.
  size_t size() const { return isArray() || isObject() ? token->size : 0; }
  /// The member `key` of an object (the first, should it repeat). Linear in the members.
  JsonValue operator[](std::string_view key) const;
  /// The members of an object; none for anything else.
  JsonMembers members() const;
  /// The elements of an array; none for anything else.
  JsonElements elements() const;

private:
  bool is(JsonToken::Kind kind) const { return token && token->kind == kind; }
  const JsonToken *token = nullptr;
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

class JsonMembers {
public:
  struct Iterator {
    const JsonToken *at;
    JsonMember operator*() const { return {{at->text, at->size}, JsonValue(at + 1)}; }
    Iterator &operator++() {
      at += 1 + (at + 1)->extent();
      return *this;
    }
    bool operator==(const Iterator &other) const = default;
  };
  Iterator begin() const { return {first}; }
  Iterator end() const { return {last}; }

private:
  friend class JsonValue;
  const JsonToken *first = nullptr, *last = nullptr;
};

class JsonElements {
public:
  struct Iterator {
    const JsonToken *at;
    JsonValue operator*() const { return JsonValue(at); }
    Iterator &operator++() {
      at += at->extent();
      return *this;
    }
    bool operator==(const Iterator &other) const = default;
  };
  Iterator begin() const { return {first}; }
  Iterator end() const { return {last}; }

private:
  friend class JsonValue;
  const JsonToken *first = nullptr, *last = nullptr;
};

class JsonDocument {
public:
  /// Containers may nest this deep; beyond it parsing fails, so that consumers may recurse.
  static constexpr size_t maxDepth = 128;

  /// Parses strict JSON in UTF-8. On failure `error` says what and at which byte.
  static std::optional<JsonDocument> parse(std::string_view text, std::string &error);

  JsonValue root() const { return JsonValue(tokens.data()); }
  /// What the strings of the document live in; holding it keeps them valid without the tokens.
  std::shared_ptr<const void> strings() const { return arena; }

private:
  std::vector<JsonToken> tokens;
  std::shared_ptr<char[]> arena;
};

} // namespace shardc
