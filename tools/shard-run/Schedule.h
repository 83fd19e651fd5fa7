// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The learning rate of each step of a training.
#ifndef SHARDC_TOOLS_SHARD_RUN_SCHEDULE_H
#define SHARDC_TOOLS_SHARD_RUN_SCHEDULE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc::run {

/// The rate grows in equal parts in the first `warmup` steps, of which the last has the peak. Then
/// it stays, or falls to `final`, which the step behind the last one would have: on a line, or on
/// half a cosine (SGDR, arXiv:1608.03983, equation 5). As PyTorch's SequentialLR of a
/// LinearLR(1 / warmup, 1, warmup - 1) and a ConstantLR, LinearLR or CosineAnnealingLR.
struct Schedule {
  enum class Shape : uint8_t { Constant, Linear, Cosine };
  Shape shape = Shape::Constant;
  double peak = 0, final = 0;
  int64_t warmup = 0, steps = 1;

  /// Of step `step`, which counts from 0.
  double rate(int64_t step) const;
  /// "constant", "linear" or "cosine".
  static std::optional<Shape> shapeNamed(std::string_view name);
};

} // namespace shardc::run

#endif // SHARDC_TOOLS_SHARD_RUN_SCHEDULE_H
