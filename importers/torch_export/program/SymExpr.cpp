// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/program/SymExpr.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace shardc::torch_export {
namespace {

using Kind = SymExpr::Kind;

struct Function {
  std::string_view name;
  Kind kind;
  size_t minOperands, maxOperands;
};
constexpr size_t any = std::numeric_limits<size_t>::max();

// sympy's own and those of torch.utils._sympy.functions that mean integer arithmetic.
constexpr std::array functions = {
    Function{"Add", Kind::Add, 2, any},         Function{"Mul", Kind::Mul, 2, any},
    Function{"Max", Kind::Max, 2, any},         Function{"Min", Kind::Min, 2, any},
    Function{"FloorDiv", Kind::FloorDiv, 2, 2}, Function{"CleanDiv", Kind::FloorDiv, 2, 2},
    Function{"CeilDiv", Kind::CeilDiv, 2, 2},   Function{"Mod", Kind::Mod, 2, 2},
    Function{"PythonMod", Kind::Mod, 2, 2},     Function{"Pow", Kind::Pow, 2, 2},
    Function{"PowByNatural", Kind::Pow, 2, 2},
};

/// Whether it is no less than 0, since sizes are not.
bool isNotNegative(const SymExpr &expr) {
  if (expr.kind == Kind::Integer)
    return expr.value >= 0;
  return std::all_of(expr.operands.begin(), expr.operands.end(), isNotNegative);
}

/// An integer times factor, rounded down: exact where the factor is a fraction of small integers
/// whose denominator is a power of two, since the product is a float of 64 bits then.
std::optional<SymExpr> timesFloat(SymExpr expr, double factor) {
  constexpr double kMost = 1 << 20;
  SymExpr times, over;
  over.value = 1;
  while (static_cast<double>(over.value) < kMost && factor != std::floor(factor)) {
    factor *= 2;
    over.value *= 2;
  }
  if (!(factor > 0 && factor <= kMost && factor == std::floor(factor)) || !isNotNegative(expr))
    return std::nullopt;
  times.value = static_cast<int64_t>(factor);
  auto join = [](Kind kind, SymExpr left, SymExpr right) {
    SymExpr joined;
    joined.kind = kind;
    joined.operands = {std::move(left), std::move(right)};
    return joined;
  };
  if (times.value != 1)
    expr = join(Kind::Mul, std::move(expr), times);
  if (over.value != 1)
    expr = join(Kind::FloorDiv, std::move(expr), over);
  return expr;
}

class SymExprParser {
public:
  SymExprParser(std::string_view text, std::string &error) : text(text), error(error) {}

  std::optional<SymExpr> whole() {
    SymExpr expr;
    if (!parse(expr, 0))
      return std::nullopt;
    skipSpace();
    if (at != text.size()) {
      fail("unexpected text");
      return std::nullopt;
    }
    return expr;
  }

private:
  bool fail(std::string_view what) {
    error.assign(what).append(" at byte ").append(std::to_string(at)).append(" of '");
    error.append(text).append("'");
    return false;
  }
  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool eat(char c) {
    skipSpace();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  std::string_view word() {
    skipSpace();
    size_t begin = at;
    auto part = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    };
    while (at < text.size() && part(text[at]))
      ++at;
    std::string_view found = text.substr(begin, at - begin);
    return found.substr(found.rfind('.') + 1); // without the module's name
  }
  bool integer(int64_t &value) {
    skipSpace();
    auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (code != std::errc())
      return fail("expected an integer of 64 bits");
    at = size_t(end - text.data());
    return true;
  }
  // 'name', then assumptions such as positive=True.
  bool symbol(std::string_view &name) {
    if (!eat('\''))
      return fail("expected a quoted name");
    size_t end = text.find('\'', at);
    if (end == std::string_view::npos || end == at)
      return fail("expected a name");
    name = text.substr(at, end - at);
    std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    if (letters.find(name[0]) == letters.npos ||
        name.find_first_not_of(std::string(letters) + "0123456789") != name.npos)
      return fail("expected a name");
    at = end + 1;
    while (eat(',')) {
      if (word().empty() || !eat('=') || word().empty())
        return fail("expected an assumption");
    }
    return true;
  }
  bool parse(SymExpr &expr, int depth) {
    if (depth == SymExpr::maxDepth)
      return fail("the expression nests too deep");
    std::string_view name = word();
    if (name.empty() || !eat('('))
      return fail("expected a function");
    if (name == "Integer") {
      if (!integer(expr.value))
        return false;
    } else if (name == "Symbol") {
      expr.kind = Kind::Symbol;
      if (!symbol(expr.symbol))
        return false;
    } else if (name == "TruncToInt") {
      if (!truncated(expr, depth))
        return false;
    } else if (!call(name, expr, depth)) {
      return false;
    }
    return eat(')') || fail("expected ')'");
  }
  // The size of an image that is resized by a factor: Mul(Float('1.5', precision=53), ToFloat(n)).
  bool truncated(SymExpr &expr, int depth) {
    double factor = 1;
    std::string_view name = word();
    bool isProduct = name == "Mul";
    if (isProduct) {
      std::string_view digits;
      if (!eat('(') || word() != "Float" || !eat('(') || !quoted(digits) || !eat(',') ||
          word() != "precision" || !eat('=') || word() != "53" || !eat(')') || !eat(','))
        return fail("only a product of a size and a float is truncated");
      auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), factor);
      if (code != std::errc() || end != digits.data() + digits.size())
        return fail("expected a float");
      name = word();
    }
    SymExpr size;
    if (name != "ToFloat" || !eat('('))
      return fail("only a product of a size and a float is truncated");
    if (!parse(size, std::min(depth + 2, SymExpr::maxDepth)))
      return false;
    if (!eat(')') || (isProduct && !eat(')')))
      return fail("expected ')'");
    std::optional<SymExpr> product = timesFloat(std::move(size), factor);
    if (!product)
      return fail("a size times a float is known where the float is a fraction whose denominator "
                  "is a small power of two, and the size cannot be negative");
    expr = std::move(*product);
    return true;
  }
  bool quoted(std::string_view &text) {
    size_t end = eat('\'') ? this->text.find('\'', at) : std::string_view::npos;
    if (end == std::string_view::npos)
      return false;
    text = this->text.substr(at, end - at);
    at = end + 1;
    return true;
  }
  bool call(std::string_view name, SymExpr &expr, int depth) {
    const Function *function = nullptr;
    for (const Function &candidate : functions)
      if (candidate.name == name)
        function = &candidate;
    if (!function)
      return fail("the function " + std::string(name) + " is not known");
    expr.kind = function->kind;
    do {
      if (!parse(expr.operands.emplace_back(), depth + 1))
        return false;
    } while (eat(','));
    if (expr.operands.size() < function->minOperands ||
        expr.operands.size() > function->maxOperands)
      return fail("wrong number of operands of " + std::string(name));
    if ((expr.kind == Kind::FloorDiv || expr.kind == Kind::CeilDiv || expr.kind == Kind::Mod) &&
        expr.operands[1].kind == Kind::Integer && expr.operands[1].value <= 0)
      return fail("only positive divisors are known");
    if (expr.kind == Kind::Pow && (expr.operands[1].kind != Kind::Integer ||
                                   expr.operands[1].value < 0 || expr.operands[1].value > 63))
      return fail("only powers with a small constant exponent are known");
    return true;
  }

  std::string_view text;
  std::string &error;
  size_t at = 0;
};

} // namespace

std::optional<SymExpr> parseSymExpr(std::string_view text, std::string &error) {
  return SymExprParser(text, error).whole();
}

} // namespace shardc::torch_export
