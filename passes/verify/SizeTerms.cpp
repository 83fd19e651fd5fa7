// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/SizeTerms.h"

#include "dialects/dist/SizeSigns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;

namespace {

constexpr size_t kMostProducts = 256;

/// Whether an op computes what it would in integers of any width.
bool cannotWrap(Operation *op) {
  auto arithmetic = dyn_cast_or_null<arith::ArithIntegerOverflowFlagsInterface>(op);
  if (!arithmetic || !op->getResult(0).getType().isSignlessInteger())
    return false;
  auto both = arith::IntegerOverflowFlags::nsw | arith::IntegerOverflowFlags::nuw;
  return (arithmetic.getOverflowAttr().getValue() & both) == both;
}

/// Whether a value may be asked for: of others it counts only which ones they are.
bool isNumber(Value value) {
  return value.getType().isIntOrIndex() || isa<MemRefType>(value.getType());
}

} // namespace

SizeSum SizeTerms::constant(int64_t value) { return value ? SizeSum{{{}, value}} : SizeSum(); }

std::optional<SizeSum> SizeTerms::add(const SizeSum &a, const SizeSum &b, int64_t factor) {
  SizeSum sum = a;
  for (const auto &[product, coefficient] : b) {
    int64_t scaled;
    if (__builtin_mul_overflow(coefficient, factor, &scaled))
      return std::nullopt;
    auto it = sum.try_emplace(product, 0).first;
    if (__builtin_add_overflow(it->second, scaled, &it->second))
      return std::nullopt;
    if (it->second == 0)
      sum.erase(it);
  }
  return sum;
}

std::optional<SizeSum> SizeTerms::multiply(const SizeSum &a, const SizeSum &b) {
  SizeSum result;
  for (const auto &[left, leftCoefficient] : a)
    for (const auto &[right, rightCoefficient] : b) {
      std::vector<unsigned> product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::sort(product.begin(), product.end());
      int64_t coefficient;
      if (__builtin_mul_overflow(leftCoefficient, rightCoefficient, &coefficient))
        return std::nullopt;
      std::optional<SizeSum> sum = add(result, {{product, coefficient}});
      if (!sum)
        return std::nullopt;
      result = std::move(*sum);
    }
  return result;
}

SizeSum SizeTerms::of(Value value) {
  auto it = known.find(value);
  if (it != known.end())
    return it->second;
  SizeSum sum = compute(value);
  known[value] = sum;
  return sum;
}

SizeSum SizeTerms::compute(Value value) {
  if (std::optional<int64_t> number = getConstantIntValue(value))
    return constant(*number);
  Operation *op = value.getDefiningOp();
  if (op && isa<arith::IndexCastOp, arith::IndexCastUIOp>(op) &&
      cannotWrap(op->getOperand(0).getDefiningOp()))
    return of(op->getOperand(0));
  if (!op || op->getNumOperands() != 2 || (!value.getType().isIndex() && !cannotWrap(op)))
    return atomOf(value);
  SizeSum a = of(op->getOperand(0)), b = of(op->getOperand(1));
  // Nobody compares sums of so many products.
  if (a.size() * b.size() > kMostProducts)
    return atomOf(value);
  std::optional<SizeSum> sum;
  if (isa<arith::AddIOp>(op))
    sum = add(a, b);
  else if (isa<arith::SubIOp>(op))
    sum = add(a, b, -1);
  else if (isa<arith::MulIOp>(op))
    sum = multiply(a, b);
  return sum ? *sum : atomOf(value);
}

/// One atom for equal computations.
SizeSum SizeTerms::atomOf(Value value) {
  Operation *op = value.getDefiningOp();
  Key key{value.getAsOpaquePointer(), nullptr, {}};
  Atom atom;
  if (op && op->getNumResults() == 1 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
      llvm::all_of(op->getOperands(), isNumber)) {
    key = {op->getName().getAsOpaquePointer(), op->getAttrDictionary().getAsOpaquePointer(), {}};
    for (Value operand : op->getOperands())
      key.operands.push_back(of(operand));
    if (isa<arith::MaxUIOp, arith::MaxSIOp>(op)) {
      atom.kind = Kind::Maximum;
      atom.operands = key.operands;
      std::sort(key.operands.begin(), key.operands.end());
    } else if (isa<arith::CeilDivUIOp, arith::CeilDivSIOp>(op)) {
      if (std::optional<int64_t> divisor = getConstantIntValue(op->getOperand(1));
          divisor && *divisor > 0)
        atom = {Kind::CeilDiv, {key.operands.front()}, *divisor};
    } else if (auto extent = dyn_cast<dist::ExtentOp>(op);
               isa<dist::AxisIndexOp>(op) || (extent && !mayBeNegative(extent.getExtents()))) {
      atom.kind = Kind::Size;
    }
  }
  auto [it, inserted] = numbers.try_emplace(std::move(key), atoms.size());
  if (inserted) {
    atom.sample = sampleOf(atom);
    atoms.push_back(std::move(atom));
  }
  return {{{it->second}, 1}};
}

int64_t SizeTerms::sampleOf(const Atom &atom) const {
  constexpr int64_t someSize = 1009;
  switch (atom.kind) {
  case Kind::Other:
  case Kind::Size:
    return someSize;
  case Kind::Maximum:
    return std::max(sample(atom.operands[0]), sample(atom.operands[1]));
  case Kind::CeilDiv:
    return llvm::divideCeilSigned(sample(atom.operands.front()), atom.divisor);
  }
  return 0;
}

int64_t SizeTerms::sample(const SizeSum &sum) const {
  int64_t total = 0;
  for (const auto &[product, coefficient] : sum) {
    int64_t value = coefficient;
    for (unsigned atom : product)
      if (__builtin_mul_overflow(value, atoms[atom].sample, &value))
        return std::numeric_limits<int64_t>::max();
    if (__builtin_add_overflow(total, value, &total))
      return std::numeric_limits<int64_t>::max();
  }
  return total;
}

bool SizeTerms::isAtomNonNegative(unsigned number) const {
  const Atom &atom = atoms[number];
  switch (atom.kind) {
  case Kind::Other:
    return false;
  case Kind::Size:
    return true;
  case Kind::Maximum:
    return llvm::any_of(atom.operands, [&](const SizeSum &sum) { return isNonNegative(sum); });
  case Kind::CeilDiv:
    return isNonNegative(atom.operands.front());
  }
  return false;
}

bool SizeTerms::isNonNegative(const SizeSum &sum) const {
  return sizes.contains(sum) || llvm::all_of(sum, [&](const auto &term) {
           return term.second >= 0 &&
                  llvm::all_of(term.first, [&](unsigned atom) { return isAtomNonNegative(atom); });
         });
}

/// The one atom of a product; nothing for others.
static std::optional<unsigned> single(const std::vector<unsigned> &product) {
  return product.size() == 1 ? std::optional(product.front()) : std::nullopt;
}

std::optional<SizeSum> SizeTerms::replaceRounding(const SizeSum &sum, unsigned atom,
                                                  int64_t coefficient) const {
  if (atoms[atom].kind != Kind::CeilDiv || coefficient < atoms[atom].divisor)
    return std::nullopt;
  int64_t times = coefficient / atoms[atom].divisor;
  std::optional<SizeSum> less = add(sum, {{{atom}, times * atoms[atom].divisor}}, -1);
  return less ? add(*less, atoms[atom].operands.front(), times) : std::nullopt;
}

SizeSum SizeTerms::withoutRounding(const SizeSum &sum) const {
  SizeSum result = sum;
  for (const auto &[product, coefficient] : sum)
    if (std::optional<unsigned> atom = single(product))
      result = replaceRounding(result, *atom, coefficient).value_or(result);
  return result;
}

/// Whether it is seen not to be negative, with at most one quotient replaced: wherever it is
/// multiplied again, or, because buffers of equal size share their quotient, once.
bool SizeTerms::isShown(const SizeSum &difference) const {
  if (isNonNegative(difference))
    return true;
  for (const auto &[product, coefficient] : difference)
    if (std::optional<unsigned> atom = single(product))
      for (int64_t part : {coefficient, std::min(coefficient, atoms[*atom].divisor)})
        if (std::optional<SizeSum> less = replaceRounding(difference, *atom, part))
          if (isNonNegative(*less))
            return true;
  return false;
}

std::vector<SizeSum> SizeTerms::maximumOf(const SizeSum &sum) const {
  std::vector<SizeSum> operands, work{sum};
  std::set<SizeSum> seen;
  while (!work.empty()) {
    SizeSum next = std::move(work.back());
    work.pop_back();
    if (!seen.insert(next).second)
      continue;
    std::optional<unsigned> atom;
    if (next.size() == 1 && next.begin()->second == 1)
      atom = single(next.begin()->first);
    if (!atom || atoms[*atom].kind != Kind::Maximum)
      operands.push_back(std::move(next));
    else
      work.insert(work.end(), atoms[*atom].operands.begin(), atoms[*atom].operands.end());
  }
  return operands;
}

bool SizeTerms::isAtLeast(const SizeSum &a, const SizeSum &b) const {
  std::optional<SizeSum> first = add(a, b, -1);
  if (!first)
    return false;
  // Differences, one of which must be seen not to be negative: a maximum may be replaced by any of
  // its operands.
  std::vector<SizeSum> work{std::move(*first)};
  std::set<unsigned> replaced;
  while (!work.empty()) {
    SizeSum difference = std::move(work.back());
    work.pop_back();
    if (isShown(difference))
      return true;
    for (const auto &[product, coefficient] : difference) {
      std::optional<unsigned> atom = single(product);
      if (!atom || coefficient != 1 || atoms[*atom].kind != Kind::Maximum ||
          !replaced.insert(*atom).second)
        continue;
      for (const SizeSum &operand : atoms[*atom].operands) {
        std::optional<SizeSum> next = add(difference, {{product, 1}}, -1);
        if (next)
          next = add(*next, operand);
        if (next)
          work.push_back(std::move(*next));
      }
    }
  }
  return false;
}
