// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dims of inputs and outputs: integers, and expressions over the symbols of a program.
#ifndef SHARDC_RUNTIME_MANIFEST_EXPRESSION_H
#define SHARDC_RUNTIME_MANIFEST_EXPRESSION_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardc::rt {

struct Expression {
  enum class Kind : uint8_t { Constant, Symbol, Add, Sub, Mul, FloorDiv, CeilDiv, Mod, Min, Max };
  Kind kind = Kind::Constant;
  int64_t value = 0;                ///< the constant, or the index of the symbol
  std::vector<Expression> operands; ///< two for operators

  static Expression constant(int64_t value) { return {Kind::Constant, value, {}}; }
  static Expression symbol(size_t index) { return {Kind::Symbol, int64_t(index), {}}; }
  static std::optional<Kind> operatorNamed(std::string_view name);

  bool isConstant() const { return kind == Kind::Constant; }
  /// Nothing if a symbol has no value yet, on a division by zero, or on overflow.
  std::optional<int64_t> evaluate(std::span<const std::optional<int64_t>> symbols) const;
  /// The one symbol without a value such that this expression is affine in it, and the value for
  /// which the expression equals `target`; nothing if there is no such symbol or no integer value.
  struct Solution {
    size_t symbol;
    int64_t value;
  };
  std::optional<Solution> solve(int64_t target,
                                std::span<const std::optional<int64_t>> symbols) const;
  std::string str(std::span<const std::string> names) const;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MANIFEST_EXPRESSION_H
