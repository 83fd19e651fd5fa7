// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/RuleBuilder.h"

#include <algorithm>
#include <numeric>

namespace shardc {

DimSize::DimSize(int64_t coefficient, std::vector<int> symbols)
    : coefficient(coefficient), symbols(std::move(symbols)) {
  std::sort(this->symbols.begin(), this->symbols.end());
}

RuleBuilder::RuleBuilder(std::vector<Shape> operands, std::vector<Shape> results)
    : operandShapes(std::move(operands)), resultShapes(std::move(results)) {
  auto prepare = [](const std::vector<Shape> &shapes, std::vector<TensorFactors> &factors,
                    std::vector<std::vector<bool>> &set) {
    for (const Shape &shape : shapes) {
      factors.emplace_back(shape.size());
      set.emplace_back(shape.size(), false);
    }
  };
  prepare(operandShapes, rule.operands, operandSet);
  prepare(resultShapes, rule.results, resultSet);
}

RuleBuilder RuleBuilder::ofShapes(const std::vector<std::vector<int64_t>> &operandShapes,
                                  const std::vector<std::vector<int64_t>> &resultShapes) {
  auto convert = [](const std::vector<std::vector<int64_t>> &shapes) {
    std::vector<Shape> result;
    for (const std::vector<int64_t> &shape : shapes)
      result.emplace_back(shape.begin(), shape.end());
    return result;
  };
  return RuleBuilder(convert(operandShapes), convert(resultShapes));
}

//===-- Single facts
//------------------------------------------------------------------------------===//

unsigned RuleBuilder::factor(DimSize size, FactorKind kind) {
  Factor f;
  f.size = size.fixed();
  f.kind = kind;
  rule.factors.push_back(f);
  return static_cast<unsigned>(rule.factors.size() - 1);
}

DimFactors RuleBuilder::factorOfDim(const DimSize &size, FactorKind kind) {
  return size.isOne() ? DimFactors{} : DimFactors{factor(size, kind)};
}

bool RuleBuilder::checkDim(const Shape &shape, int64_t &dim) {
  int64_t rank = static_cast<int64_t>(shape.size());
  int64_t given = dim;
  if (dim < 0)
    dim += rank;
  if (dim >= 0 && dim < rank)
    return true;
  problems.push_back("dim " + std::to_string(given) + " is out of range for a tensor of rank " +
                     std::to_string(rank));
  return false;
}

bool RuleBuilder::checkTensors(size_t operands, size_t results) {
  if (operandShapes.size() >= operands && resultShapes.size() >= results)
    return true;
  problems.push_back("expected at least " + std::to_string(operands) + " operands and " +
                     std::to_string(results) + " results, got " +
                     std::to_string(operandShapes.size()) + " and " +
                     std::to_string(resultShapes.size()));
  return false;
}

void RuleBuilder::setDim(bool isResult, unsigned index, int64_t dim, DimFactors factors) {
  std::vector<Shape> &shapes = isResult ? resultShapes : operandShapes;
  if (index >= shapes.size()) {
    problems.push_back((isResult ? "result " : "operand ") + std::to_string(index) +
                       " does not exist");
    return;
  }
  if (!checkDim(shapes[index], dim))
    return;
  (isResult ? rule.results : rule.operands)[index][dim] = std::move(factors);
  (isResult ? resultSet : operandSet)[index][dim] = true;
}

RuleBuilder &RuleBuilder::operandDim(unsigned operand, int64_t dim, DimFactors factors) {
  setDim(false, operand, dim, std::move(factors));
  return *this;
}

RuleBuilder &RuleBuilder::resultDim(unsigned result, int64_t dim, DimFactors factors) {
  setDim(true, result, dim, std::move(factors));
  return *this;
}

RuleBuilder &RuleBuilder::operandDimKind(unsigned operand, int64_t dim, FactorKind kind) {
  if (checkTensors(operand + 1, 0) && checkDim(operandShapes[operand], dim))
    for (unsigned f : rule.operands[operand][dim])
      rule.factors[f].kind = kind;
  return *this;
}

RuleBuilder &RuleBuilder::operandDimInOnePiece(unsigned operand, int64_t dim) {
  if (checkTensors(operand + 1, 0) && checkDim(operandShapes[operand], dim))
    for (unsigned f : rule.operands[operand][dim])
      rule.factors[f].inOnePiece = true;
  return *this;
}

RuleBuilder &RuleBuilder::linearJointly(std::vector<unsigned> operands) {
  rule.linearIn.push_back(std::move(operands));
  return *this;
}

RuleBuilder &RuleBuilder::additive(unsigned operand) {
  rule.additive.push_back(operand);
  return *this;
}

RuleBuilder &RuleBuilder::movesDataOnly() {
  rule.movesDataOnly = true;
  return *this;
}

ShardingRule RuleBuilder::build() {
  auto close = [&](const std::vector<Shape> &shapes, std::vector<TensorFactors> &factors,
                   std::vector<std::vector<bool>> &set) {
    for (size_t i = 0; i < shapes.size(); ++i)
      for (size_t d = 0; d < shapes[i].size(); ++d)
        if (!set[i][d]) {
          factors[i][d] = factorOfDim(shapes[i][d], FactorKind::NeedReplication);
          set[i][d] = true;
        }
  };
  close(operandShapes, rule.operands, operandSet);
  close(resultShapes, rule.results, resultSet);
  // Nothing is shared out of a sum of nothing, and no rank can tell that it has a part.
  for (Factor &factor : rule.factors)
    if (factor.kind == FactorKind::Reducing && factor.size == 0)
      factor.kind = FactorKind::NeedReplication;
  return rule;
}

RuleBuilder &RuleBuilder::replicateAll() { return *this; }

RuleBuilder &RuleBuilder::create() {
  for (unsigned r = 0; r < resultShapes.size(); ++r)
    for (size_t d = 0; d < resultShapes[r].size(); ++d)
      setDim(true, r, d, factorOfDim(resultShapes[r][d]));
  return *this;
}

//===-- Elementwise, reductions
//-------------------------------------------------------------------===//

void RuleBuilder::alignTrailing(bool isResult, unsigned index, const TensorFactors &factors) {
  const Shape &shape = (isResult ? resultShapes : operandShapes)[index];
  for (size_t back = 1; back <= shape.size() && back <= factors.size(); ++back) {
    size_t d = shape.size() - back;
    bool one = shape[d].isOne();
    setDim(isResult, index, d, one ? DimFactors{} : factors[factors.size() - back]);
  }
}

RuleBuilder &RuleBuilder::pointwise() {
  if (!checkTensors(0, 1))
    return *this;
  TensorFactors factors;
  for (const DimSize &size : resultShapes[0])
    factors.push_back(factorOfDim(size));
  for (unsigned i = 0; i < operandShapes.size(); ++i)
    alignTrailing(false, i, factors);
  for (unsigned i = 0; i < resultShapes.size(); ++i)
    alignTrailing(true, i, factors);
  return *this;
}

RuleBuilder &RuleBuilder::reduce(std::vector<int64_t> dims, Reduction reduction) {
  if (!checkTensors(1, 1))
    return *this;
  const Shape &in = operandShapes[0];
  std::vector<bool> reduced(in.size(), dims.empty());
  for (int64_t dim : dims)
    if (checkDim(in, dim))
      reduced[dim] = true;
  TensorFactors kept, all;
  for (size_t d = 0; d < in.size(); ++d) {
    all.push_back(factorOfDim(in[d], reduced[d] ? FactorKind::Reducing : FactorKind::Parallel));
    if (reduced[d] && !all[d].empty())
      rule.factors[all[d][0]].reduction = reduction;
    if (!reduced[d])
      kept.push_back(all[d]);
  }
  alignTrailing(false, 0, all);
  for (unsigned r = 0; r < resultShapes.size(); ++r)
    alignTrailing(true, r, resultShapes[r].size() == in.size() ? all : kept);
  return *this;
}

RuleBuilder &RuleBuilder::cooperative(std::vector<int64_t> dims, int64_t exchange) {
  if (!checkTensors(1, 1))
    return *this;
  const Shape &in = operandShapes[0];
  std::vector<bool> joint(in.size(), false);
  for (int64_t dim : dims)
    if (checkDim(in, dim))
      joint[dim] = true;
  TensorFactors all;
  for (size_t d = 0; d < in.size(); ++d) {
    all.push_back(factorOfDim(in[d], joint[d] ? FactorKind::Cooperative : FactorKind::Parallel));
    if (joint[d] && !all[d].empty())
      rule.factors[all[d][0]].exchange = exchange;
  }
  TensorFactors kept;
  for (size_t d = 0; d < in.size(); ++d)
    if (!joint[d])
      kept.push_back(all[d]);
  for (unsigned i = 0; i < operandShapes.size(); ++i)
    alignTrailing(false, i, all);
  for (unsigned r = 0; r < resultShapes.size(); ++r)
    alignTrailing(true, r, resultShapes[r].size() == in.size() ? all : kept);
  return *this;
}

//===-- Movement
//----------------------------------------------------------------------------------===//

RuleBuilder &RuleBuilder::permute(std::vector<int64_t> permutation) {
  rule.movesDataOnly = true;
  if (!checkTensors(1, 1))
    return *this;
  if (permutation.size() != resultShapes[0].size()) {
    problems.push_back("a permutation of " + std::to_string(permutation.size()) +
                       " dims for a result of rank " + std::to_string(resultShapes[0].size()));
    return *this;
  }
  for (size_t d = 0; d < permutation.size(); ++d) {
    int64_t source = permutation[d];
    if (!checkDim(operandShapes[0], source))
      continue;
    DimFactors factors = factorOfDim(operandShapes[0][source]);
    setDim(false, 0, source, factors);
    setDim(true, 0, d, factors);
  }
  return linear(0);
}

RuleBuilder &RuleBuilder::expand() {
  rule.movesDataOnly = true;
  return pointwise().linear(0);
}

/// `start`: where the first piece begins in the whole.
void RuleBuilder::blocksOfDim(bool join, int64_t dim, const DimSize &whole, const DimSize &piece,
                              int64_t start) {
  DimFactors inner = factorOfDim(piece), both = inner;
  if (!(piece == whole)) {
    int64_t blocks =
        whole.symbols == piece.symbols ? whole.coefficient / piece.coefficient : kDynamic;
    both.insert(both.begin(), factor(blocks, FactorKind::NeedReplication));
  }
  const std::vector<Shape> &many = join ? operandShapes : resultShapes;
  for (unsigned i = 0; i < many.size(); ++i)
    setDim(!join, i, dim, inner);
  setDim(join, 0, dim, both);
  bool isStatic = piece.fixed() != kDynamic && whole.fixed() != kDynamic;
  if (!(piece == whole) && !inner.empty() && isStatic)
    rule.factors[inner.front()].exchange = start + 1;
}

/// Whether `whole` is a known multiple of `piece`.
static bool isMultiple(const DimSize &whole, const DimSize &piece) {
  if (whole == piece)
    return !whole.isUnknown();
  return !whole.isUnknown() && !piece.isUnknown() && whole.symbols == piece.symbols &&
         piece.coefficient > 0 && whole.coefficient % piece.coefficient == 0;
}

RuleBuilder &RuleBuilder::concat(int64_t dim) {
  rule.movesDataOnly = true;
  if (!checkTensors(1, 1) || !checkDim(resultShapes[0], dim))
    return *this;
  size_t rank = resultShapes[0].size();
  bool equal = true;
  for (const Shape &shape : operandShapes) {
    // torch.cat skips legacy empty operands of rank 1; their factors stay undescribed.
    if (shape.size() != rank)
      equal = false;
    else
      equal &= shape[dim] == operandShapes[0][dim];
  }
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int64_t>(d) == dim)
      continue;
    DimFactors factors = factorOfDim(resultShapes[0][d]);
    setDim(true, 0, d, factors);
    for (unsigned i = 0; i < operandShapes.size(); ++i)
      if (operandShapes[i].size() == rank)
        setDim(false, i, d, factors);
  }
  if (equal && isMultiple(resultShapes[0][dim], operandShapes[0][dim]))
    blocksOfDim(true, dim, resultShapes[0][dim], operandShapes[0][dim]);
  std::vector<unsigned> all(operandShapes.size());
  std::iota(all.begin(), all.end(), 0u);
  return linearJointly(std::move(all));
}

RuleBuilder &RuleBuilder::split(int64_t dim) {
  rule.movesDataOnly = true;
  if (!checkTensors(1, 1) || !checkDim(operandShapes[0], dim))
    return *this;
  size_t rank = operandShapes[0].size();
  bool equal = true;
  for (const Shape &shape : resultShapes) {
    if (shape.size() != rank) {
      problems.push_back("split results must have the rank of the operand");
      return *this;
    }
    equal &= shape[dim] == resultShapes[0][dim];
  }
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int64_t>(d) == dim)
      continue;
    DimFactors factors = factorOfDim(operandShapes[0][d]);
    setDim(false, 0, d, factors);
    for (unsigned i = 0; i < resultShapes.size(); ++i)
      setDim(true, i, d, factors);
  }
  if (equal && isMultiple(operandShapes[0][dim], resultShapes[0][dim]))
    blocksOfDim(false, dim, operandShapes[0][dim], resultShapes[0][dim]);
  return linear(0);
}

RuleBuilder &RuleBuilder::slice(int64_t dim, int64_t start) {
  rule.movesDataOnly = true;
  if (!checkTensors(1, 1) || !checkDim(operandShapes[0], dim))
    return *this;
  if (resultShapes[0].size() != operandShapes[0].size()) {
    problems.push_back("the result of a slice must have the rank of the operand");
    return *this;
  }
  for (size_t d = 0; d < operandShapes[0].size(); ++d) {
    if (static_cast<int64_t>(d) == dim)
      continue;
    DimFactors factors = factorOfDim(operandShapes[0][d]);
    setDim(false, 0, d, factors);
    setDim(true, 0, d, factors);
  }
  const DimSize &whole = operandShapes[0][dim], &piece = resultShapes[0][dim];
  bool aligned = start == 0 || (start > 0 && piece.symbols.empty() && piece.coefficient > 0 &&
                                start % piece.coefficient == 0);
  if (isMultiple(whole, piece) && aligned)
    blocksOfDim(false, dim, whole, piece, start);
  return linear(0);
}

} // namespace shardc
