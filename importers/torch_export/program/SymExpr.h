// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Expressions over the symbolic dims of an exported program, as sympy's srepr prints them.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_SYMEXPR_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_SYMEXPR_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc::torch_export {

/// A tree. Integer and Symbol are leaves; Add, Mul, Max and Min have two or more operands;
/// FloorDiv, CeilDiv, Mod (the sign of the divisor, as in Python) and Pow have two.
struct SymExpr {
  enum class Kind { Integer, Symbol, Add, Mul, Max, Min, FloorDiv, CeilDiv, Mod, Pow };
  Kind kind = Kind::Integer;
  int64_t value = 0;       // Integer
  std::string_view symbol; // Symbol: "s77"; a view into the parsed text
  std::vector<SymExpr> operands;

  /// Parsers refuse deeper trees, so that neither they nor their users can exhaust the stack.
  static constexpr int maxDepth = 200;
};

/// Parses e.g. `Add(Symbol('s70', positive=True, integer=True), Integer(1))`. Returns nothing and
/// sets `error` for functions that are not integer arithmetic and for text of another form. A size
/// times a float, truncated, is integer arithmetic where the float is a fraction of small integers
/// whose denominator is a power of two.
std::optional<SymExpr> parseSymExpr(std::string_view text, std::string &error);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_SYMEXPR_H
