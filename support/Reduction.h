// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How values of several ranks are combined, for placements, the IR, compiled programs and the
// runtime.
#ifndef SHARDC_SUPPORT_REDUCTION_H
#define SHARDC_SUPPORT_REDUCTION_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

enum class Reduction : uint8_t { Sum, Avg, Min, Max, Prod };

/// In the order of the enumeration.
inline constexpr std::array<std::string_view, 5> reductionNames = {"sum", "avg", "min", "max",
                                                                   "prod"};

/// In plans, IR and messages.
constexpr std::string_view reductionName(Reduction reduction) {
  return reductionNames[static_cast<size_t>(reduction)];
}

constexpr std::optional<Reduction> parseReduction(std::string_view name) {
  for (size_t i = 0; i != reductionNames.size(); ++i)
    if (name == reductionNames[i])
      return static_cast<Reduction>(i);
  return std::nullopt;
}

/// The number in compiled programs (runtime/abi/shardrt_program.h), where 0 stands for none.
constexpr uint32_t runtimeCodeOf(Reduction reduction) {
  return static_cast<uint32_t>(reduction) + 1;
}

} // namespace shardc

#endif // SHARDC_SUPPORT_REDUCTION_H
