// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sharding rules that users write for ops of their own, as einsum texts:
//
//   n d, m d -> n k                          k nearest neighbours of n points among m
//   b (h e), (h e) o -> b o; sum h           a product, of which ranks may have some of the h
//   c y[kernel=3, padding=1] x -> c y x      each row of the result sees three of the operand
//
// Tensors are separated by commas, dims by spaces; `()` is a tensor without dims. Equal names are
// one factor (ShardingRule.h). Names of operands and results are independent and may be sharded,
// but for those that follow `whole`, and those that some result lacks. Names of operands alone are
// needed whole, unless they follow `sum`, `max` or `min`: then each rank reduces what it has, and
// results are partial. Names of results alone are whole. Several names in parentheses are one dim,
// outer to inner.
//
// A dim with a window is one over which a window slides: its name counts the positions of the
// window, as a dim of a result or of another operand has them. The op gets what the positions
// cover, padding included, and has itself none: a dim of `size` elements has
// (size - extent) / stride + 1 positions, where the extent is dilation * (kernel - 1) + 1. Numbers
// of windows may be sums and products of numbers and of integer arguments of the op, e.g.
// padding=2*reach.
#ifndef SHARDC_DIALECTS_SHARDING_RULETEXT_H
#define SHARDC_DIALECTS_SHARDING_RULETEXT_H

#include "dialects/sharding/ShardingRule.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardc {

/// An operand that the function does not need, in the rule of a backward: `_` in place of its dims.
inline constexpr std::string_view kUnused = "_";

/// In elements.
struct TextWindow {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t padding = 0;        ///< on both sides
  std::string mode = "zeros"; ///< of the padding: zeros, circular, reflect or replicate

  /// From the first element that it covers to the last, both included.
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  /// What the positions [begin, end) cover, without padding.
  Run cover(Run positions) const {
    if (positions.begin >= positions.end)
      return {};
    return {positions.begin * stride, (positions.end - 1) * stride + extent()};
  }
  /// Positions in a dim of `size` elements without padding; not known where that is not.
  int64_t positions(int64_t size) const;
};

struct TextDim {
  std::vector<std::string> names; ///< outer to inner
  std::optional<TextWindow> window;
};

struct RuleText {
  std::vector<std::vector<TextDim>> operands, results;
  std::vector<std::pair<std::string, Reduction>> reduced;
  std::vector<std::string> whole;

  /// What the number of a window is that is given by a name; nothing if there is none.
  using NumberOf = std::function<std::optional<int64_t>(std::string_view)>;

  /// On a mistake returns nothing, and says in `error` what it is.
  static std::optional<RuleText> parse(std::string_view text, std::string &error,
                                       const NumberOf &numberOf = {});
  std::string str() const;

  using Shapes = std::vector<std::vector<int64_t>>;
  /// What contradicts the rule in tensors of these shapes (kDynamic matches any size).
  std::vector<std::string> check(const Shapes &operandShapes, const Shapes &resultShapes) const;
  /// For shapes that `check` has nothing to say of.
  ShardingRule build(const Shapes &operandShapes, const Shapes &resultShapes) const;

  bool isReduced(std::string_view name) const;
  bool isUnused(size_t operand) const {
    return operands[operand].size() == 1 && operands[operand].front().names.front() == kUnused;
  }
};

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_RULETEXT_H
