// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a graph says of a tensor, and how an argument names one.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_TENSORMETA_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_TENSORMETA_H

#include "support/ElementType.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace shardc::torch_export {

/// A size, stride or offset: a constant, or an expression with its value in the example.
struct SymInt {
  int64_t value = 0;          // the constant, or the hint
  std::string_view expr = {}; // sympy's srepr (SymExpr.h); empty for a constant
  bool hasHint = false;
  bool constant() const { return expr.empty(); }
  bool operator==(const SymInt &other) const {
    return expr == other.expr && (!constant() || value == other.value);
  }
};

struct TensorMeta {
  ElementType type = ElementType::F32;
  std::vector<SymInt> sizes, strides;
  SymInt offset;
  int64_t layout = 7; // 7: strided
  bool requiresGrad = false;
  std::string_view device;

  bool isComplex() const { return shardc::isComplex(type); }
  /// Of the tensor as the IR has it: a complex one is real there, with a last dim of 2 for its
  /// parts.
  std::vector<SymInt> pairSizes() const {
    std::vector<SymInt> all = sizes;
    if (isComplex())
      all.push_back({.value = 2});
    return all;
  }
};

/// as_tensor; in an optional list, an empty name is None.
struct TensorArg {
  static constexpr uint32_t unknown = UINT32_MAX;
  std::string_view name;
  /// Of the tensor in `Graph::tensors`; unknown where that has no such name.
  uint32_t number = unknown;
};

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_PROGRAM_TENSORMETA_H
