// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Expression.h"

#include <algorithm>
#include <string_view>

namespace shardc::rt {

namespace {

struct OperatorName {
  const char *name;
  Expression::Kind kind;
  const char *text; ///< infix, or empty for a function
};
using Kind = Expression::Kind;
constexpr OperatorName operators[] = {
    {"add", Kind::Add, " + "},      {"sub", Kind::Sub, " - "},
    {"mul", Kind::Mul, " * "},      {"floordiv", Kind::FloorDiv, " // "},
    {"ceildiv", Kind::CeilDiv, ""}, {"mod", Kind::Mod, " % "},
    {"min", Kind::Min, ""},         {"max", Kind::Max, ""}};

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

} // namespace

std::optional<Kind> Expression::operatorNamed(std::string_view name) {
  for (const OperatorName &entry : operators)
    if (name == entry.name)
      return entry.kind;
  return std::nullopt;
}

std::optional<int64_t> Expression::evaluate(std::span<const std::optional<int64_t>> symbols) const {
  if (kind == Kind::Constant)
    return value;
  if (kind == Kind::Symbol)
    return symbols[size_t(value)];
  std::optional<int64_t> left = operands[0].evaluate(symbols),
                         right = operands[1].evaluate(symbols);
  if (!left || !right)
    return std::nullopt;
  int64_t a = *left, b = *right, result = 0;
  bool divides = kind == Kind::FloorDiv || kind == Kind::CeilDiv || kind == Kind::Mod;
  // INT64_MIN / -1 overflows; no extent is near it.
  if (divides && (b == 0 || (b == -1 && a == INT64_MIN)))
    return std::nullopt;
  bool overflow = false;
  switch (kind) {
  case Kind::Add:
    overflow = __builtin_add_overflow(a, b, &result);
    break;
  case Kind::Sub:
    overflow = __builtin_sub_overflow(a, b, &result);
    break;
  case Kind::Mul:
    overflow = __builtin_mul_overflow(a, b, &result);
    break;
  case Kind::FloorDiv:
    result = floorDivide(a, b);
    break;
  case Kind::CeilDiv:
    result = a % b == 0 ? a / b : floorDivide(a, b) + 1;
    break;
  case Kind::Mod:
    result = a - floorDivide(a, b) * b;
    break;
  case Kind::Min:
    result = std::min(a, b);
    break;
  default:
    result = std::max(a, b);
  }
  return overflow ? std::nullopt : std::optional<int64_t>(result);
}

std::optional<Expression::Solution>
Expression::solve(int64_t target, std::span<const std::optional<int64_t>> symbols) const {
  if (kind == Kind::Constant)
    return std::nullopt;
  if (kind == Kind::Symbol) {
    if (symbols[size_t(value)])
      return std::nullopt;
    return Solution{size_t(value), target};
  }
  // One side must be known; the other is solved for what it then has to be.
  std::optional<int64_t> left = operands[0].evaluate(symbols),
                         right = operands[1].evaluate(symbols);
  if (left.has_value() == right.has_value())
    return std::nullopt;
  const Expression &unknown = left ? operands[1] : operands[0];
  int64_t known = left ? *left : *right, rest = 0;
  switch (kind) {
  case Kind::Add:
    return __builtin_sub_overflow(target, known, &rest) ? std::nullopt
                                                        : unknown.solve(rest, symbols);
  case Kind::Sub:
    if (left ? __builtin_sub_overflow(known, target, &rest)
             : __builtin_add_overflow(target, known, &rest))
      return std::nullopt;
    return unknown.solve(rest, symbols);
  case Kind::Mul:
    if (known == 0 || (known == -1 && target == INT64_MIN) || target % known != 0)
      return std::nullopt;
    return unknown.solve(target / known, symbols);
  default:
    return std::nullopt;
  }
}

std::string Expression::str(std::span<const std::string> names) const {
  if (kind == Kind::Constant)
    return std::to_string(value);
  if (kind == Kind::Symbol)
    return names[size_t(value)];
  std::string left = operands[0].str(names), right = operands[1].str(names);
  for (const OperatorName &entry : operators)
    if (entry.kind == kind)
      return *entry.text ? "(" + left + entry.text + right + ")"
                         : std::string(entry.name) + "(" + left + ", " + right + ")";
  return "";
}

} // namespace shardc::rt
