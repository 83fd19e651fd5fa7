// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/IndexValues.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shardc::memory {

constexpr size_t kMaxTerms = 16;

Polynomial::Polynomial(int64_t constant) {
  if (constant != 0)
    terms[{}] = constant;
}

Polynomial Polynomial::atom(unsigned number) {
  Polynomial result;
  result.terms[{number}] = 1;
  return result;
}

std::optional<Polynomial> Polynomial::add(const Polynomial &a, const Polynomial &b,
                                          int64_t factor) {
  Polynomial result = a;
  for (auto &[atoms, coefficient] : b.terms) {
    int64_t scaled = 0;
    int64_t &sum = result.terms[atoms];
    if (llvm::MulOverflow(coefficient, factor, scaled) || llvm::AddOverflow(sum, scaled, sum))
      return std::nullopt;
    if (sum == 0)
      result.terms.erase(atoms);
  }
  if (result.terms.size() > kMaxTerms)
    return std::nullopt;
  return result;
}

std::optional<Polynomial> Polynomial::multiply(const Polynomial &a, const Polynomial &b) {
  Polynomial result;
  for (auto &[left, leftCoefficient] : a.terms)
    for (auto &[right, rightCoefficient] : b.terms) {
      Polynomial product;
      std::vector<unsigned> atoms(left);
      atoms.insert(atoms.end(), right.begin(), right.end());
      llvm::sort(atoms);
      int64_t coefficient = 0;
      if (llvm::MulOverflow(leftCoefficient, rightCoefficient, coefficient))
        return std::nullopt;
      product.terms[std::move(atoms)] = coefficient;
      std::optional<Polynomial> sum = add(result, product);
      if (!sum)
        return std::nullopt;
      result = std::move(*sum);
    }
  return result;
}

std::optional<int64_t> Polynomial::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

unsigned IndexValues::atomOf(Value value) {
  auto [it, isNew] = atoms.try_emplace(value, nonNegative.size());
  if (isNew)
    nonNegative.push_back(false);
  return it->second;
}

Polynomial IndexValues::of(OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return Polynomial(*constant);
  Value value = cast<Value>(size);
  auto it = polynomials.find(value);
  if (it != polynomials.end())
    return it->second;
  Polynomial atom = Polynomial::atom(atomOf(value));
  note(value, atom);
  return atom;
}

std::optional<OpFoldResult> IndexValues::find(const Polynomial &polynomial) const {
  auto it = values.find(polynomial);
  if (it == values.end())
    return std::nullopt;
  return OpFoldResult(it->second);
}

void IndexValues::note(Value value, const Polynomial &polynomial) {
  polynomials.try_emplace(value, polynomial);
  values.try_emplace(polynomial, value);
}

void IndexValues::noteNonNegative(Value value) {
  of(value);
  auto atom = atoms.find(value);
  if (atom != atoms.end())
    nonNegative[atom->second] = true;
}

bool IndexValues::isNonNegative(const Polynomial &polynomial) const {
  return llvm::all_of(polynomial.getTerms(), [&](const auto &term) {
    return term.second >= 0 &&
           llvm::all_of(term.first, [&](unsigned atom) { return nonNegative[atom]; });
  });
}

Value IndexValues::clone(OpBuilder &builder, Operation *op, ArrayRef<Value> operands) {
  CloneKey key{
      op->getName().getAsOpaquePointer(), op->getAttrDictionary().getAsOpaquePointer(), {}};
  for (Value operand : operands)
    key.operands.push_back(of(operand));
  Value &known = clones[key];
  if (!known) {
    IRMapping mapping;
    mapping.map(op->getOperands(), operands);
    known = builder.clone(*op, mapping)->getResult(0);
  }
  return known;
}

} // namespace shardc::memory
