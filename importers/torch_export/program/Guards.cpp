// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/Guards.h"

#include <array>
#include <charconv>

namespace shardc::torch_export {
namespace {

using Kind = SymExpr::Kind;

constexpr std::array<std::string_view, 6> relations = {"==", "!=", "<=", ">=", "<", ">"};

bool same(const SymExpr &a, const SymExpr &b) {
  if (a.kind != b.kind || a.value != b.value || a.symbol != b.symbol ||
      a.operands.size() != b.operands.size())
    return false;
  for (size_t i = 0; i < a.operands.size(); ++i)
    if (!same(a.operands[i], b.operands[i]))
      return false;
  return true;
}

SymExpr binary(Kind kind, SymExpr left, SymExpr right) {
  SymExpr expr;
  expr.kind = kind;
  expr.operands.push_back(std::move(left));
  expr.operands.push_back(std::move(right));
  return expr;
}

SymExpr integerExpr(int64_t value) {
  SymExpr expr;
  expr.value = value;
  return expr;
}

class GuardParser {
public:
  GuardParser(std::string_view text, const InputSize &sizeOf, std::string &error)
      : text(text), sizeOf(sizeOf), error(error) {}

  std::optional<Guard> whole() {
    Guard guard;
    if (!sum(guard.left) || !relation(guard.relation) || !sum(guard.right))
      return std::nullopt;
    skipSpace();
    if (at != text.size()) {
      fail("unexpected text");
      return std::nullopt;
    }
    return guard;
  }

private:
  bool fail(std::string_view what) {
    if (error.empty())
      error.assign(what).append(" at byte ").append(std::to_string(at));
    return false;
  }
  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool eat(std::string_view token) {
    skipSpace();
    if (text.substr(at, token.size()) != token)
      return false;
    at += token.size();
    return true;
  }
  bool relation(std::string_view &found) {
    for (std::string_view name : relations)
      if (eat(name)) {
        found = name;
        return true;
      }
    return fail("expected a comparison");
  }
  bool integer(int64_t &value) {
    skipSpace();
    auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (code != std::errc())
      return fail("expected an integer");
    at = size_t(end - text.data());
    return true;
  }

  bool sum(SymExpr &expr) {
    if (!product(expr))
      return false;
    for (;;) {
      bool minus = eat("-");
      if (!minus && !eat("+"))
        return true;
      SymExpr next;
      if (!isShort() || !product(next))
        return false;
      if (minus)
        next = binary(Kind::Mul, integerExpr(-1), std::move(next));
      expr = binary(Kind::Add, std::move(expr), std::move(next));
    }
  }
  bool product(SymExpr &expr) {
    if (!factor(expr))
      return false;
    for (;;) {
      Kind kind = Kind::Mul;
      if (eat("//"))
        kind = Kind::FloorDiv;
      else if (eat("%"))
        kind = Kind::Mod;
      else if (text.substr(at, 2) == "**" || !eat("*"))
        return true;
      SymExpr next;
      if (!isShort() || !factor(next))
        return false;
      expr = binary(kind, std::move(expr), std::move(next));
    }
  }
  /// Each term after the first makes the tree deeper.
  bool isShort() { return ++terms != maxTerms || fail("the expression has too many terms"); }
  bool factor(SymExpr &expr) {
    if (++depth == SymExpr::maxDepth)
      return fail("the expression nests too deep");
    bool good = primary(expr);
    --depth;
    return good;
  }
  bool primary(SymExpr &expr) {
    if (eat("(")) {
      if (!sum(expr))
        return false;
      return eat(")") || fail("expected ')'");
    }
    if (eat("-")) {
      SymExpr operand;
      if (!factor(operand))
        return false;
      expr = binary(Kind::Mul, integerExpr(-1), std::move(operand));
      return true;
    }
    if (eat("L["))
      return size(expr);
    return integer(expr.value);
  }
  /// `'x'][0].size()[1]`: after the first bracket.
  bool size(SymExpr &expr) {
    std::string name;
    do {
      skipSpace();
      size_t end = text.find(']', at);
      if (end == std::string_view::npos)
        return fail("expected ']'");
      std::string_view key = text.substr(at, end - at);
      if (key.size() >= 2 && (key.front() == '\'' || key.front() == '"') &&
          key.back() == key.front())
        key = key.substr(1, key.size() - 2);
      name.append(name.empty() ? "" : "_").append(key);
      at = end + 1;
    } while (eat("["));
    int64_t dim = 0;
    if (!eat(".size()["))
      return fail("expected the size of an input");
    if (!integer(dim) || !eat("]"))
      return fail("expected a dim");
    std::optional<SymExpr> found = sizeOf(name, dim);
    if (!found)
      return fail("there is no dim " + std::to_string(dim) + " of an input " + name);
    expr = std::move(*found);
    return true;
  }

  std::string_view text;
  const InputSize &sizeOf;
  std::string &error;
  size_t at = 0;
  int depth = 0, terms = 0;
  static constexpr int maxTerms = 1000;
};

} // namespace

bool Guard::isTrivial() const {
  if (same(left, right))
    return relation == "==" || relation == "<=" || relation == ">=";
  if (left.kind != Kind::Integer || right.kind != Kind::Integer)
    return false;
  int64_t a = left.value, b = right.value;
  return (relation == "!=" && a != b) || (relation.starts_with('<') && a < b) ||
         (relation.starts_with('>') && a > b);
}

std::optional<Guard> parseGuard(std::string_view text, const InputSize &sizeOf,
                                std::string &error) {
  error.clear();
  return GuardParser(text, sizeOf, error).whole();
}

} // namespace shardc::torch_export
