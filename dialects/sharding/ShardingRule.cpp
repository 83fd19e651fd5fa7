// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/ShardingRule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace shardc {

bool ShardingRule::isAdditive(unsigned operand) const {
  return std::find(additive.begin(), additive.end(), operand) != additive.end();
}

namespace {
/// Checks the tensors of one side and notes which factors they use.
struct TensorCheck {
  const ShardingRule &rule;
  std::vector<bool> &used;
  std::vector<std::string> &errors;

  void tensor(const std::string &name, const TensorFactors &dims, std::span<const int64_t> shape,
              bool isResult) {
    if (dims.size() != shape.size()) {
      errors.push_back(name + " has rank " + std::to_string(shape.size()) +
                       ", but the sharding rule describes " + std::to_string(dims.size()) +
                       " dims");
      return;
    }
    std::vector<bool> seen(rule.factors.size(), false);
    for (size_t d = 0; d < dims.size(); ++d)
      dim(name + " dim " + std::to_string(d), dims[d], shape[d], isResult, seen);
  }

private:
  void dim(const std::string &name, const DimFactors &factors, int64_t size, bool isResult,
           std::vector<bool> &seen) {
    int64_t product = 1;
    bool known = size != kDynamic;
    for (unsigned f : factors) {
      if (f >= rule.factors.size()) {
        errors.push_back(name + ": factor " + std::to_string(f) + " does not exist");
        return;
      }
      const Factor &factor = rule.factors[f];
      if (seen[f])
        errors.push_back(name + ": factor " + std::to_string(f) + " occurs twice in one tensor");
      seen[f] = used[f] = true;
      known &= factor.size != kDynamic && factor.kind != FactorKind::Neighbouring;
      if (known)
        product *= factor.size;
    }
    if (known && product != size)
      errors.push_back(name + " has size " + std::to_string(size) +
                       ", but the product of its factors is " + std::to_string(product));
  }
};
} // namespace

std::vector<std::string>
ShardingRule::validate(std::span<const std::vector<int64_t>> operandShapes,
                       std::span<const std::vector<int64_t>> resultShapes) const {
  std::vector<std::string> errors;
  std::vector<bool> used(factors.size(), false);
  TensorCheck check{*this, used, errors};
  auto tensors = [&](const char *kind, const std::vector<TensorFactors> &described,
                     std::span<const std::vector<int64_t>> shapes, bool isResult) {
    if (described.size() != shapes.size()) {
      errors.push_back("the op has " + std::to_string(shapes.size()) + " " + kind +
                       "s, but the sharding rule describes " + std::to_string(described.size()));
      return;
    }
    for (size_t i = 0; i < shapes.size(); ++i)
      check.tensor(std::string(kind) + " " + std::to_string(i), described[i], shapes[i], isResult);
  };
  tensors("operand", operands, operandShapes, false);
  tensors("result", results, resultShapes, true);
  for (size_t f = 0; f < factors.size(); ++f)
    if (!used[f])
      errors.push_back("factor " + std::to_string(f) + " occurs in no operand or result");
  for (size_t f = 0; f < factors.size(); ++f) {
    auto has = [&](const DimFactors &dim) {
      return std::find(dim.begin(), dim.end(), f) != dim.end();
    };
    auto hasFactor = [&](const TensorFactors &dims) {
      return std::any_of(dims.begin(), dims.end(), has);
    };
    if (factors[f].kind == FactorKind::Reducing && !results.empty() &&
        std::all_of(results.begin(), results.end(), hasFactor))
      errors.push_back("factor " + std::to_string(f) + " is reducing, but every result has it");
  }
  auto inRange = [&](unsigned operand, const char *what) {
    if (operand >= operands.size())
      errors.push_back(std::string(what) + " names operand " + std::to_string(operand) +
                       ", but the rule describes " + std::to_string(operands.size()));
  };
  for (const std::vector<unsigned> &set : linearIn)
    for (unsigned operand : set)
      inRange(operand, "linearIn");
  for (unsigned operand : additive)
    inRange(operand, "additive");
  return errors;
}

std::vector<FactorPart> partsOf(const ShardingRule &rule,
                                std::span<const std::vector<int64_t>> operandShapes,
                                std::span<const std::vector<int64_t>> resultShapes) {
  std::vector<FactorPart> parts;
  for (unsigned f = 0; f < rule.factors.size(); ++f) {
    const Factor &factor = rule.factors[f];
    if (!factor.hasParts())
      continue;
    size_t first = parts.size();
    int64_t longest = 0;
    for (bool isResult : {false, true}) {
      const std::vector<TensorFactors> &tensors = isResult ? rule.results : rule.operands;
      for (unsigned slot = 0; slot < tensors.size(); ++slot)
        for (unsigned d = 0; d < tensors[slot].size(); ++d)
          if (!tensors[slot][d].empty() && tensors[slot][d].back() == f) {
            int64_t size = (isResult ? resultShapes : operandShapes)[slot][d];
            parts.push_back({f, isResult, slot, d, 0, size});
            longest = std::max(longest, size);
          }
    }
    // The parts follow one another.
    int64_t next = factor.exchange - 1;
    for (size_t i = first; i < parts.size(); ++i)
      if (parts[i].size != longest) {
        parts[i].begin = next;
        next += parts[i].size;
      }
  }
  return parts;
}

size_t ShardingRule::hash() const {
  size_t seed = factors.size();
  for (const Factor &f : factors) {
    seed = hashCombine(seed, static_cast<size_t>(f.size));
    seed = hashCombine(seed, static_cast<size_t>(f.kind) * 8 + static_cast<size_t>(f.reduction));
    seed = hashCombine(seed, static_cast<size_t>(f.exchange));
    seed = hashCombine(seed, static_cast<size_t>(f.moved));
    seed = hashCombine(seed, f.inOnePiece);
  }
  for (const std::vector<TensorFactors> *side : {&operands, &results})
    for (const TensorFactors &dims : *side) {
      seed = hashCombine(seed, dims.size());
      for (const DimFactors &dim : dims) {
        seed = hashCombine(seed, dim.size());
        for (unsigned f : dim)
          seed = hashCombine(seed, f);
      }
    }
  for (const std::vector<unsigned> &set : linearIn) {
    seed = hashCombine(seed, set.size());
    for (unsigned operand : set)
      seed = hashCombine(seed, operand);
  }
  for (unsigned operand : additive)
    seed = hashCombine(seed, operand);
  return hashCombine(seed, movesDataOnly);
}

/// a .. z, then a1 .. z1 and so on.
static std::string factorName(unsigned index) {
  std::string name(1, static_cast<char>('a' + index % 26));
  return index < 26 ? name : name + std::to_string(index / 26);
}

/// A fraction has three digits at most.
static std::string haloText(double halo) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), halo == std::floor(halo) ? "%.0f" : "%.3g", halo);
  return text.data();
}

std::string ShardingRule::str() const {
  std::vector<int> order(factors.size(), -1);
  std::vector<unsigned> byOrder;
  auto name = [&](unsigned f) -> std::string {
    if (f >= factors.size())
      return "?";
    if (order[f] < 0) {
      order[f] = static_cast<int>(byOrder.size());
      byOrder.push_back(f);
    }
    return factorName(static_cast<unsigned>(order[f]));
  };
  auto side = [&](const std::vector<TensorFactors> &tensors) {
    std::string text;
    for (size_t i = 0; i < tensors.size(); ++i) {
      text += i ? ", " : "";
      for (const DimFactors &dim : tensors[i]) {
        text += "(";
        for (size_t k = 0; k < dim.size(); ++k)
          text += (k ? " " : "") + name(dim[k]);
        text += ")";
      }
      if (tensors[i].empty())
        text += "scalar";
    }
    return text;
  };
  std::string text = side(operands) + " -> " + side(results);
  for (size_t i = 0; i < byOrder.size(); ++i) {
    const Factor &f = factors[byOrder[i]];
    text += ", " + factorName(static_cast<unsigned>(i)) + " = " +
            (f.size == kDynamic ? "?" : std::to_string(f.size));
    switch (f.kind) {
    case FactorKind::Parallel:
      break;
    case FactorKind::Reducing:
      text += " " + std::string(reductionName(f.reduction));
      break;
    case FactorKind::Cooperative:
      text += " cooperative";
      break;
    case FactorKind::Neighbouring:
      text += " halo " + haloText(f.haloBefore) + ":" + haloText(f.haloAfter);
      break;
    case FactorKind::NeedReplication:
      text += " replicated";
      break;
    }
    if (f.inOnePiece)
      text += " in one piece";
  }
  return text;
}

} // namespace shardc
