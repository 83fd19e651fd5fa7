// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardc::run {

double Schedule::rate(int64_t step) const {
  if (step < warmup)
    return peak * double(step + 1) / double(warmup);
  if (shape == Shape::Constant)
    return peak;
  double part = double(step - warmup) / double(std::max<int64_t>(steps - warmup, 1));
  part = std::min(part, 1.0);
  if (shape == Shape::Linear)
    return peak + (final - peak) * part;
  return final + (peak - final) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

std::optional<Schedule::Shape> Schedule::shapeNamed(std::string_view name) {
  if (name == "constant")
    return Shape::Constant;
  if (name == "linear")
    return Shape::Linear;
  if (name == "cosine")
    return Shape::Cosine;
  return std::nullopt;
}

} // namespace shardc::run
