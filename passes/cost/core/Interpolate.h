// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COST_CORE_INTERPOLATE_H
#define SHARDC_PASSES_COST_CORE_INTERPOLATE_H

#include <cstddef>
#include <span>

namespace shardc::cost {

/// Piecewise linear through (xs[i], ys[i]), constant outside. `xs` ascends, both have equal length
/// of at least one.
inline double interpolateClamped(double x, std::span<const double> xs, std::span<const double> ys) {
  if (x <= xs.front())
    return ys.front();
  for (size_t i = 0; i + 1 < xs.size(); ++i)
    if (x <= xs[i + 1])
      return ys[i] + (ys[i + 1] - ys[i]) * (x - xs[i]) / (xs[i + 1] - xs[i]);
  return ys.back();
}

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_INTERPOLATE_H
