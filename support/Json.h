// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A JSON document as one flat array of tokens: cheap to build, to walk and to free, and the only
// place that sees the JSON library. Nothing here throws.
#ifndef SHARDC_SUPPORT_JSON_H
#define SHARDC_SUPPORT_JSON_H

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// Eight bytes: a kind, and what it needs. A container is followed by its children, an object's as
/// key, value, key, value.
struct JsonToken {
  enum class Kind : uint8_t { Null, Bool, Integer, Wide, Real, String, Array, Object };
  /// The most bytes of a string, members of an object, elements of an array.
  static constexpr uint64_t maxSize = (uint64_t(1) << 29) - 1;

  uint64_t kindBits : 3 = 0;
  /// Bytes of a string, elements of an array, members of an object; the upper bits of an integer.
  uint64_t size : 29 = 0;
  /// Strings: the first byte in the arena. Containers: tokens in the subtree, this one included.
  /// Wide and Real: an index of `JsonText::wide`. The lower bits of a bool or an integer.
  uint64_t at : 32 = 0;

  Kind kind() const { return static_cast<Kind>(kindBits); }
  size_t extent() const { return kind() == Kind::Array || kind() == Kind::Object ? at : 1; }
  int64_t integer() const { return int64_t(uint64_t(size) << 35 | uint64_t(at) << 3) >> 3; }
  /// Whether an integer fits into `size` and `at`.
  static bool fits(int64_t value) { return (value << 3) >> 3 == value; }
};
static_assert(sizeof(JsonToken) == 8);

/// What tokens refer to.
struct JsonText {
  std::unique_ptr<char[]> arena;
  /// Integers beyond 61 bits and doubles, by their bits.
  std::vector<uint64_t> wide;
};

class JsonMembers;
class JsonElements;

/// A view of one value; valid while its document lives. A missing member is a value too, for which
/// every question is answered by nothing, so that lookups chain.
class JsonValue {
public:
  JsonValue() = default;
  JsonValue(const JsonToken *token, const JsonText *text) : token(token), text(text) {}

  bool exists() const { return token; }
  bool isNull() const { return is(JsonToken::Kind::Null); }
  bool isString() const { return is(JsonToken::Kind::String); }
  bool isArray() const { return is(JsonToken::Kind::Array); }
  bool isObject() const { return is(JsonToken::Kind::Object); }

  std::optional<bool> boolean() const {
    return is(JsonToken::Kind::Bool) ? std::optional<bool>(token->at != 0) : std::nullopt;
  }
  /// Nothing for numbers with a fraction or exponent, and beyond 64 bits.
  std::optional<int64_t> integer() const {
    if (is(JsonToken::Kind::Integer))
      return token->integer();
    return is(JsonToken::Kind::Wide) ? std::optional<int64_t>(text->wide[token->at]) : std::nullopt;
  }
  /// Any number.
  std::optional<double> real() const {
    if (is(JsonToken::Kind::Real))
      return std::bit_cast<double>(text->wide[token->at]);
    std::optional<int64_t> whole = integer();
    return whole ? std::optional<double>(double(*whole)) : std::nullopt;
  }
  std::optional<std::string_view> string() const {
    return isString()
               ? std::optional<std::string_view>({text->arena.get() + token->at, token->size})
               : std::nullopt;
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
  bool is(JsonToken::Kind kind) const { return token && token->kind() == kind; }
  const JsonToken *token = nullptr;
  const JsonText *text = nullptr;
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

class JsonMembers {
public:
  struct Iterator {
    const JsonToken *at;
    const JsonText *text;
    JsonMember operator*() const {
      return {{text->arena.get() + at->at, at->size}, JsonValue(at + 1, text)};
    }
    Iterator &operator++() {
      at += 1 + (at + 1)->extent();
      return *this;
    }
    bool operator==(const Iterator &other) const = default;
  };
  Iterator begin() const { return {first, text}; }
  Iterator end() const { return {last, text}; }

private:
  friend class JsonValue;
  const JsonToken *first = nullptr, *last = nullptr;
  const JsonText *text = nullptr;
};

class JsonElements {
public:
  struct Iterator {
    const JsonToken *at;
    const JsonText *text;
    JsonValue operator*() const { return JsonValue(at, text); }
    Iterator &operator++() {
      at += at->extent();
      return *this;
    }
    bool operator==(const Iterator &other) const = default;
  };
  Iterator begin() const { return {first, text}; }
  Iterator end() const { return {last, text}; }

private:
  friend class JsonValue;
  const JsonToken *first = nullptr, *last = nullptr;
  const JsonText *text = nullptr;
};

class JsonDocument {
public:
  /// Containers may nest this deep; beyond it parsing fails, so that consumers may recurse.
  static constexpr size_t maxDepth = 128;

  /// Parses strict JSON in UTF-8, of at most 4 GiB. On failure `error` says what and at which byte.
  static std::optional<JsonDocument> parse(std::string_view text, std::string &error);

  JsonValue root() const { return JsonValue(tokens.data(), text.get()); }
  /// What the strings of the document live in; holding it keeps them valid without the tokens.
  std::shared_ptr<const void> strings() const { return text; }

private:
  std::vector<JsonToken> tokens;
  std::shared_ptr<JsonText> text;
};

} // namespace shardc

#endif // SHARDC_SUPPORT_JSON_H
