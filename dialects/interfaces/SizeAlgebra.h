// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on sizes that says nothing of what sizes are made of. An op says once how the sizes of
// its results follow from those of its operands (ResultSizesOpInterface); over the numbers of types
// that is type inference, over expressions of symbols it gives global sizes, over index values it
// is a computation at run time.
#ifndef SHARDC_DIALECTS_INTERFACES_SIZEALGEBRA_H
#define SHARDC_DIALECTS_INTERFACES_SIZEALGEBRA_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <optional>

namespace shardc {

/// The size of a dim, or a bound in it, in elements: a number, something that the algebra at hand
/// has a name for (an expression, an index value), or not known.
class Dim {
public:
  Dim() = default;
  /// kDynamic is not known.
  Dim(int64_t number)
      : value(number), kind(mlir::ShapedType::isDynamic(number) ? Unknown : Number) {}
  /// What the algebra has under this number.
  static Dim entry(size_t index) {
    Dim dim;
    dim.value = static_cast<int64_t>(index);
    dim.kind = Entry;
    return dim;
  }

  bool isKnown() const { return kind != Unknown; }
  std::optional<int64_t> number() const {
    return kind == Number ? std::optional(value) : std::nullopt;
  }
  bool is(int64_t number) const { return kind == Number && value == number; }
  std::optional<size_t> entry() const {
    return kind == Entry ? std::optional(static_cast<size_t>(value)) : std::nullopt;
  }
  /// As types have it: kDynamic where it is no number.
  int64_t orDynamic() const { return number().value_or(mlir::ShapedType::kDynamic); }

private:
  int64_t value = 0;
  enum : uint8_t { Unknown, Number, Entry } kind = Unknown;
};

/// What sizes are made of, and how to calculate with it. Numbers are folded here; an operation on
/// what is not known is not known; the rest is up to `compute`.
class SizeAlgebra {
public:
  virtual ~SizeAlgebra();

  /// The sizes of a ranked tensor.
  virtual llvm::SmallVector<Dim> sizesOf(mlir::Value tensor) = 0;
  /// What an index operand is.
  virtual Dim valueOf(mlir::Value index) = 0;

  Dim add(Dim a, Dim b);
  Dim sub(Dim a, Dim b);
  Dim mul(Dim a, Dim b);
  /// The quotient rounded up; `b` is at least 1.
  Dim ceilDiv(Dim a, int64_t b);
  Dim min(Dim a, Dim b);
  Dim max(Dim a, Dim b);
  /// A position that counts from the end where it is negative: then `a + size`.
  Dim fromEnd(Dim a, Dim size);
  /// `a` as a size. A program in which it were negative is in error: what such a run does is no
  /// matter, but 0 is what code must go on with.
  Dim asSize(Dim a);

protected:
  enum class Operation { Add, Sub, Mul, CeilDiv, Min, Max, FromEnd, AsSize };
  /// Both are known, and not both are numbers (AsSize has only `a`). Not known unless overridden;
  /// `AsSize` is `a`.
  virtual Dim compute(Operation operation, Dim a, Dim b);

private:
  Dim apply(Operation operation, Dim a, Dim b);
};

/// The numbers of tensor types: all else is not known.
class StaticSizes : public SizeAlgebra {
public:
  llvm::SmallVector<Dim> sizesOf(mlir::Value tensor) override;
  Dim valueOf(mlir::Value index) override;
};

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_SIZEALGEBRA_H
