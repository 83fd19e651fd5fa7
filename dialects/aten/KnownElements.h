// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of tensors that a program computes of constants only, such as masks: of parts of a
// tensor, so that a large one never exists as a whole, and bounds of a part, so that one whose
// elements are equal need not be computed.
#ifndef SHARDC_DIALECTS_ATEN_KNOWNELEMENTS_H
#define SHARDC_DIALECTS_ATEN_KNOWNELEMENTS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

#include <optional>
#include <vector>

namespace shardc::aten {

/// Of an argument of kind "constant": its elements, which are the same in all runs. Importers write
/// it for what a mask may be made of, and `aten-recognize-neighborhoods` removes it.
inline constexpr llvm::StringLiteral kElementsAttr = "aten.elements";

/// A part of a tensor: of each dim, consecutive positions.
struct ElementBox {
  llvm::SmallVector<int64_t, 4> begin, sizes;

  int64_t numElements() const;
  static ElementBox whole(llvm::ArrayRef<int64_t> shape);
};

/// Numbers as doubles. What a double does not hold exactly is not known.
using Numbers = std::vector<double>;

/// Bounds of numbers, none of which is NaN.
struct NumberRange {
  double low = 0, high = 0;

  bool isOne() const { return low == high; }
};

class KnownElements {
public:
  /// `work`: how many numbers may be computed before nothing more is known.
  explicit KnownElements(int64_t work) : work(work) {}

  /// The elements in row-major order; nothing where they are not known.
  std::optional<Numbers> elements(mlir::Value tensor, const ElementBox &box);
  /// Bounds, which need not be the closest; nothing where none are known.
  std::optional<NumberRange> range(mlir::Value tensor, const ElementBox &box);

  bool isWorkDone() const { return work <= 0; }

private:
  std::optional<Numbers> compute(mlir::Value tensor, const ElementBox &box);
  std::optional<Numbers> reshaped(mlir::Value self, llvm::ArrayRef<int64_t> shape,
                                  const ElementBox &box);
  std::optional<Numbers> joined(mlir::Operation *op, int64_t dim, const ElementBox &box);
  std::optional<Numbers> reduced(mlir::Operation *op, const ElementBox &box);
  std::optional<Numbers> elementwise(mlir::Operation *op, const ElementBox &box);
  /// All elements of a small tensor, computed once.
  const std::optional<Numbers> *whole(mlir::Value tensor);

  int64_t work;
  int depth = 0; ///< of ops that are being looked at
  llvm::DenseMap<mlir::Value, std::optional<Numbers>> small;
};

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_KNOWNELEMENTS_H
