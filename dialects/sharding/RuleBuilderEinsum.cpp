// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contractions: factors named by letters.
#include "dialects/sharding/RuleBuilder.h"

#include <algorithm>

namespace shardc {

/// `b(kg)s` -> {"b", "kg", "s"}; nothing where parentheses do not match.
static std::optional<std::vector<std::string>> splitDims(const std::string &text) {
  std::vector<std::string> dims;
  bool inside = false;
  for (char c : text) {
    if (c == '(' && !inside) {
      inside = true;
      dims.emplace_back();
    } else if (c == ')' && inside) {
      inside = false;
    } else if (c == '(' || c == ')') {
      return std::nullopt;
    } else if (inside) {
      dims.back().push_back(c);
    } else {
      dims.emplace_back(1, c);
    }
  }
  if (inside)
    return std::nullopt;
  return dims;
}

namespace {
struct LetterTensor {
  bool isResult;
  unsigned index;
  std::vector<std::string> dims;
};

/// Sizes of letters: first from dims of one letter, then the one missing letter of each product.
class LetterSizes {
public:
  void single(char letter, const DimSize &size) {
    auto [it, added] = sizes.try_emplace(letter, size);
    // A size-1 dim broadcasts; a known size says more than an unknown one.
    if (!added && (it->second.isOne() || (it->second.isUnknown() && !size.isOne())))
      it->second = size;
  }
  void product(const std::string &letters, const DimSize &size) {
    DimSize rest = size;
    char missing = 0;
    for (char letter : letters) {
      auto it = sizes.find(letter);
      if (it == sizes.end()) {
        missing = letter;
        continue;
      }
      bool divides = rest.symbols == it->second.symbols || it->second.symbols.empty();
      divides &= !rest.isUnknown() && !it->second.isUnknown() && it->second.coefficient > 0 &&
                 rest.coefficient % it->second.coefficient == 0;
      if (!divides) {
        rest = DimSize(kDynamic);
        continue;
      }
      if (!it->second.symbols.empty())
        rest.symbols.clear();
      rest.coefficient /= it->second.coefficient;
    }
    if (missing)
      sizes.try_emplace(missing, rest);
  }
  std::map<char, DimSize> sizes;
};
} // namespace

RuleBuilder &RuleBuilder::einsum(const std::vector<std::string> &operandDims,
                                 const std::vector<std::string> &resultDims, Reduction reduction) {
  letters.clear();
  if (!checkTensors(operandDims.size(), resultDims.size()))
    return *this;
  std::vector<LetterTensor> tensors;
  for (bool isResult : {false, true})
    for (unsigned i = 0; i < (isResult ? resultDims : operandDims).size(); ++i) {
      const std::string &text = (isResult ? resultDims : operandDims)[i];
      size_t rank = (isResult ? resultShapes : operandShapes)[i].size();
      std::optional<std::vector<std::string>> dims = splitDims(text);
      if (!dims || dims->size() != rank) {
        problems.push_back("'" + text + "' does not describe a tensor of rank " +
                           std::to_string(rank));
        return *this;
      }
      tensors.push_back({isResult, i, std::move(*dims)});
    }

  auto shapeOf = [&](const LetterTensor &t) -> const Shape & {
    return (t.isResult ? resultShapes : operandShapes)[t.index];
  };
  LetterSizes sizes;
  for (const LetterTensor &t : tensors)
    for (size_t d = 0; d < t.dims.size(); ++d)
      if (t.dims[d].size() == 1)
        sizes.single(t.dims[d][0], shapeOf(t)[d]);
  for (const LetterTensor &t : tensors)
    for (size_t d = 0; d < t.dims.size(); ++d)
      if (t.dims[d].size() > 1 && !shapeOf(t)[d].isOne())
        sizes.product(t.dims[d], shapeOf(t)[d]);

  for (const LetterTensor &t : tensors)
    for (size_t d = 0; d < t.dims.size(); ++d) {
      DimFactors factors;
      for (char c : t.dims[d]) {
        auto size = sizes.sizes.find(c);
        if (size == sizes.sizes.end() || size->second.isOne() || shapeOf(t)[d].isOne())
          continue;
        auto [it, added] = letters.try_emplace(c, 0u);
        if (added) {
          it->second = factor(size->second, FactorKind::Reducing);
          rule.factors[it->second].reduction = reduction;
        }
        if (t.isResult)
          rule.factors[it->second].kind = FactorKind::Parallel;
        factors.push_back(it->second);
      }
      setDim(t.isResult, t.index, d, std::move(factors));
    }
  return *this;
}

RuleBuilder &RuleBuilder::letter(char name, FactorKind kind, int64_t exchange) {
  // A letter of size 1 has no factor, and then nothing to say.
  if (auto it = letters.find(name); it != letters.end()) {
    rule.factors[it->second].kind = kind;
    rule.factors[it->second].exchange = exchange;
  }
  return *this;
}

RuleBuilder &RuleBuilder::matmul() {
  if (!checkTensors(2, 1))
    return *this;
  size_t a = operandShapes[0].size(), b = operandShapes[1].size();
  if (a == 0 || b == 0 || std::max(a, b) > 20) {
    problems.push_back("matmul of operands of rank " + std::to_string(a) + " and " +
                       std::to_string(b));
    return *this;
  }
  // Batch dims align from the last: letters from 'A', the contraction is 'k'.
  size_t batch = std::max(a, b) > 2 ? std::max(a, b) - 2 : 0;
  std::string batchLetters;
  for (size_t i = 0; i < batch; ++i)
    batchLetters.push_back(static_cast<char>('A' + i));
  auto batchOf = [&](size_t rank) {
    return rank > 2 ? batchLetters.substr(batch - (rank - 2)) : "";
  };
  std::string left = a == 1 ? "k" : batchOf(a) + "mk";
  std::string right = b == 1 ? "k" : batchOf(b) + "kn";
  std::string result = batchLetters + (a > 1 ? "m" : "") + (b > 1 ? "n" : "");
  return einsum({left, right}, {result}).linear(0).linear(1);
}

} // namespace shardc
