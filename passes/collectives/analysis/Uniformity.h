// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which values are the same on all ranks of a group.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_UNIFORMITY_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_UNIFORMITY_H

#include "passes/specialize/RankValues.h"

namespace shardc {

/// Which values all ranks of a group hold alike. A value's ranks are followed along mesh axes, and
/// along groups that are no mesh axes one by one: what is reduced or gathered over a group is the
/// same on its ranks, and so is what is computed from such values alone. Remembers as `RankValues`.
class Uniformity {
public:
  explicit Uniformity(RankValues &ranks) : ranks(ranks) {}

  bool isUniform(mlir::Value value, dist::GroupAttrInterface group);
  void forget(mlir::Operation *op);

private:
  /// A bit per mesh axis, then a bit per other group (those beyond the last bit are not followed).
  using Mask = uint64_t;
  static constexpr unsigned firstGroupBit = 32;

  Mask maskOf(dist::GroupAttrInterface group);
  Mask allAxes() const;
  Mask maskOf(mlir::Value value);
  Mask ofArgument(mlir::BlockArgument argument) const;
  Mask ofResult(mlir::OpResult result, Mask operands);
  Mask ofExtent(dist::ExtentsAttr extents);

  RankValues &ranks;
  llvm::DenseMap<mlir::Attribute, Mask> masks;
  llvm::DenseMap<mlir::Attribute, unsigned> bits;
  llvm::DenseMap<mlir::Value, Mask> known;
};

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_UNIFORMITY_H
