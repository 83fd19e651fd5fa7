// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Latency and bandwidth of mesh axes, as options of a pass give them: `5`, or by axis `dp=20,tp=5`.
#ifndef SHARDC_PASSES_REDISTRIBUTE_AXISLINKS_H
#define SHARDC_PASSES_REDISTRIBUTE_AXISLINKS_H

#include "passes/cost/core/Transfer.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {

/// A number for every axis, or for some.
class AxisNumbers {
public:
  /// Fails with the entry that is no number, or is negative, in `bad`.
  static std::optional<AxisNumbers> parse(llvm::ArrayRef<std::string> entries, std::string &bad);

  bool empty() const { return !forAll && byName.empty(); }
  std::optional<double> of(llvm::StringRef axis) const;
  /// Names that are no axis of any of the meshes, sorted.
  std::vector<std::string> unknown(llvm::ArrayRef<Mesh> meshes) const;

private:
  std::optional<double> forAll;
  llvm::StringMap<double> byName;
};

/// The links of a mesh: those of the model, with what the options say instead. The mesh and the
/// model must outlive the result.
cost::LinkCosts linksOf(const cost::CostModel &model, const Mesh &mesh,
                        const AxisNumbers &latencyUs, const AxisNumbers &gbPerSecond);

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_AXISLINKS_H
