// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Factors of a row-major reshape.
//
// Both shapes are read outer to inner. Where the outermost remaining sizes are equal, or one
// divides the other, the smaller is a common factor. Where they only share a divisor, that divisor
// is a common factor, and what is left of both up to the next place where the products agree needs
// replication: [6, 4] -> [4, 6] shares the outer 2. Where they share none, as in [9, 7] -> [7, 9],
// both dims may be chunked, and ranks exchange what borders cut off.
#include "dialects/sharding/RuleBuilder.h"

#include <algorithm>
#include <numeric>

namespace shardc {

static DimSize times(const DimSize &a, const DimSize &b) {
  std::vector<int> symbols = a.symbols;
  symbols.insert(symbols.end(), b.symbols.begin(), b.symbols.end());
  return DimSize(a.coefficient * b.coefficient, std::move(symbols));
}

/// a / b where it is known to be exact.
static std::optional<DimSize> dividedBy(const DimSize &a, const DimSize &b) {
  if (b.coefficient == 0 || a.coefficient % b.coefficient != 0 ||
      !std::includes(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end()))
    return std::nullopt;
  std::vector<int> symbols;
  std::set_difference(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                      std::back_inserter(symbols));
  return DimSize(a.coefficient / b.coefficient, std::move(symbols));
}

static DimSize commonDivisor(const DimSize &a, const DimSize &b) {
  std::vector<int> symbols;
  std::set_intersection(a.symbols.begin(), a.symbols.end(), b.symbols.begin(), b.symbols.end(),
                        std::back_inserter(symbols));
  return DimSize(std::gcd(a.coefficient, b.coefficient), std::move(symbols));
}

/// Gives unknown dims symbols so that both shapes have one number of elements, where that is enough
/// to know them: one unknown on one side (any number on the other). False where it is not.
static bool resolveUnknown(RuleBuilder::Shape &in, RuleBuilder::Shape &out) {
  auto unknowns = [](const RuleBuilder::Shape &shape) {
    return std::count_if(shape.begin(), shape.end(),
                         [](const DimSize &s) { return s.isUnknown(); });
  };
  auto product = [](const RuleBuilder::Shape &shape) {
    DimSize total(1);
    for (const DimSize &size : shape)
      if (!size.isUnknown())
        total = times(total, size);
    return total;
  };
  if (!unknowns(in) && !unknowns(out))
    return true;
  bool outHasOne = unknowns(out) <= 1;
  if (!outHasOne && unknowns(in) > 1)
    return false;
  RuleBuilder::Shape &many = outHasOne ? in : out, &one = outHasOne ? out : in;
  int next = -1; // symbols of the caller are not negative
  for (DimSize &size : many)
    if (size.isUnknown())
      size = DimSize::symbol(next--);
  DimSize total = product(many), known = product(one);
  if (unknowns(one) == 0)
    return total == known;
  auto unknown =
      std::find_if(one.begin(), one.end(), [](const DimSize &s) { return s.isUnknown(); });
  if (std::optional<DimSize> size = dividedBy(total, known)) {
    *unknown = *size;
    return true;
  }
  // e.g. [?, 3] -> [?, 12]: the operand's dim is four times the result's.
  if (next != -2)
    return false;
  std::erase(total.symbols, -1);
  std::optional<DimSize> ratio = dividedBy(known, total);
  if (!ratio)
    return false;
  for (DimSize &size : many)
    if (size == DimSize::symbol(-1))
      size = times(size, *ratio);
  *unknown = DimSize::symbol(-1);
  return true;
}

namespace {
/// One side of the reshape: a cursor over dims of size other than 1.
struct Side {
  const RuleBuilder::Shape &shape;
  size_t dim = 0;
  DimSize rest{1}; ///< what is left of the current dim
  std::vector<DimFactors> factors;

  explicit Side(const RuleBuilder::Shape &shape) : shape(shape), factors(shape.size()) { load(); }
  bool done() const { return dim == shape.size(); }
  void advance() {
    ++dim;
    load();
  }
  void load() {
    while (dim < shape.size() && shape[dim].isOne())
      ++dim;
    if (dim < shape.size())
      rest = shape[dim];
  }
  /// Takes a factor of size `size` off the outer end of what is left.
  void take(unsigned factor, const DimSize &left) {
    factors[dim].push_back(factor);
    rest = left;
    if (rest.isOne())
      advance();
  }
};
bool areFixed(const RuleBuilder::Shape &shape) {
  return std::all_of(shape.begin(), shape.end(),
                     [](const DimSize &size) { return size.fixed() != kDynamic; });
}
/// Where both sides are at the begin of dims of known size: rows of the larger dim that one of two
/// ranks lacks of the other's chunk, which depend on how much of a row a border cuts off.
std::optional<int64_t> borderRows(const Side &in, const Side &out) {
  int64_t rows = in.rest.fixed(), others = out.rest.fixed();
  if (in.done() || out.done() || rows == kDynamic || others == kDynamic ||
      !(in.shape[in.dim] == in.rest) || !(out.shape[out.dim] == out.rest))
    return std::nullopt;
  // The borders between two ranks are at half a row of either from the middle, at most.
  return 1 + std::max(rows, others) / std::min(rows, others);
}
} // namespace

RuleBuilder &RuleBuilder::view() {
  rule.movesDataOnly = true;
  if (!checkTensors(1, 1))
    return *this;
  Shape inShape = operandShapes[0], outShape = resultShapes[0];
  linear(0);
  if (!resolveUnknown(inShape, outShape))
    return *this;
  auto isEmpty = [](const Shape &shape) {
    return std::any_of(shape.begin(), shape.end(),
                       [](const DimSize &s) { return s.coefficient == 0; });
  };
  Side in(inShape), out(outShape);
  if (isEmpty(inShape) || isEmpty(outShape)) {
    // Products say nothing: only equal outer dims correspond.
    while (!in.done() && !out.done() && in.rest == out.rest) {
      unsigned f = factor(in.rest);
      in.take(f, DimSize(1));
      out.take(f, DimSize(1));
    }
  }
  bool aligned = !isEmpty(inShape) && !isEmpty(outShape);
  while (aligned && !in.done() && !out.done()) {
    DimSize common = commonDivisor(in.rest, out.rest);
    bool whole = common == in.rest || common == out.rest;
    if (!common.isOne()) {
      unsigned f = factor(common);
      in.take(f, *dividedBy(in.rest, common));
      out.take(f, *dividedBy(out.rest, common));
    }
    if (whole)
      continue;
    // What is left of both dims does not fit: skip to the next place where the products agree.
    // Whole dims may still be chunked, and a rank fetches what it lacks of its chunk's rows.
    // The exchange needs all sizes.
    std::optional<int64_t> halo =
        areFixed(inShape) && areFixed(outShape) ? borderRows(in, out) : std::nullopt;
    DimSize inProduct(1), outProduct(1);
    if (halo) {
      unsigned f =
          factor(DimSize(std::max(in.rest.fixed(), out.rest.fixed())), FactorKind::Neighbouring);
      at(f).inOnePiece = true;
      at(f).haloAfter = *halo;
      inProduct = in.rest;
      outProduct = out.rest;
      in.take(f, DimSize(1));
      out.take(f, DimSize(1));
    }
    auto skip = [&](Side &side, DimSize &product) {
      product = times(product, side.rest);
      side.take(factor(side.rest, FactorKind::NeedReplication), DimSize(1));
    };
    if (!halo) {
      skip(in, inProduct);
      skip(out, outProduct);
    }
    while (!(inProduct == outProduct)) {
      bool inIsPart = dividedBy(outProduct, inProduct).has_value() ||
                      (inProduct.symbols == outProduct.symbols &&
                       inProduct.coefficient < outProduct.coefficient);
      if ((inIsPart || out.done()) && !in.done())
        skip(in, inProduct);
      else if (!out.done())
        skip(out, outProduct);
      else
        break;
    }
    aligned = inProduct == outProduct;
  }
  for (size_t d = 0; d < inShape.size(); ++d)
    if (!in.factors[d].empty() || inShape[d].isOne())
      setDim(false, 0, d, in.factors[d]);
  for (size_t d = 0; d < outShape.size(); ++d)
    if (!out.factors[d].empty() || outShape[d].isOne())
      setDim(true, 0, d, out.factors[d]);
  return *this;
}

} // namespace shardc
