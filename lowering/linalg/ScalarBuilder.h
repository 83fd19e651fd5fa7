// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on single elements, by PyTorch's rules.
//
// Three types belong to an element: the ATen type (i1 is bool, ui8 is unsigned, f16 ...), the type
// that it is stored in (i8 for bool, signless integers), and the type that ops compute in (f32 for
// f16 and bf16, as PyTorch on CPUs: one op rounds once, at its end).

#ifndef SHARDC_LOWERING_LINALG_SCALARBUILDER_H
#define SHARDC_LOWERING_LINALG_SCALARBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace shardc {

/// i1 -> i8, uiN -> iN; others stay.
mlir::Type storageType(mlir::Type type);
/// The tensor type with that element type.
mlir::RankedTensorType storageType(mlir::RankedTensorType type);
/// f16, bf16 -> f32; uiN -> iN; others stay (bool stays i1).
mlir::Type computeType(mlir::Type type);

/// Builds arithmetic in one ATen type. Values are of its compute type.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type)
      : builder(builder), loc(loc), type(type) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  /// The ATen type of all values here.
  mlir::Type type;

  ScalarBuilder as(mlir::Type other) const { return {builder, loc, other}; }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type); }
  bool isBool() const { return type.isInteger(1); }
  bool isUnsigned() const { return isBool() || type.isUnsignedInteger(); }
  mlir::Type compute() const { return computeType(type); }

  /// Between storage and compute type of `type`.
  mlir::Value load(mlir::Value stored) const;
  mlir::Value store(mlir::Value value) const;
  /// A value of ATen type `from` in this one; floats are truncated towards zero to integers.
  mlir::Value convert(mlir::Value value, mlir::Type from) const;
  /// `value` as an i64 or index.
  mlir::Value constant(double value) const;
  mlir::Value constantInt(int64_t value) const;
  mlir::Value fromIndex(mlir::Value index) const;

  mlir::Value add(mlir::Value a, mlir::Value b) const;
  mlir::Value sub(mlir::Value a, mlir::Value b) const;
  mlir::Value mul(mlir::Value a, mlir::Value b) const;
  /// Of integers: rounds toward zero; x / 0 is 0 and does not trap.
  mlir::Value div(mlir::Value a, mlir::Value b) const;
  /// Integers: quotient rounded down.
  mlir::Value floorDiv(mlir::Value a, mlir::Value b) const;
  mlir::Value remainder(mlir::Value a, mlir::Value b) const;
  mlir::Value neg(mlir::Value a) const;
  /// NaN if one is NaN.
  mlir::Value max(mlir::Value a, mlir::Value b) const;
  mlir::Value min(mlir::Value a, mlir::Value b) const;
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) const;
  /// An i1. Ordered, but `ne` of NaN holds.
  enum class Predicate { eq, ne, lt, le, gt, ge };
  mlir::Value compare(Predicate predicate, mlir::Value a, mlir::Value b) const;
  mlir::Value isNonZero(mlir::Value a) const;

  /// Smallest and largest value, infinities of floats.
  mlir::Value lowest() const;
  mlir::Value highest() const;

  template <typename Op, typename... Args> mlir::Value make(Args &&...args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...).getResult();
  }
};

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_SCALARBUILDER_H
