// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kinds of collectives that cost models and the collective optimiser tell apart.

#ifndef SHARDC_PASSES_COST_CORE_COLLECTIVEKIND_H
#define SHARDC_PASSES_COST_CORE_COLLECTIVEKIND_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc::cost {

enum class CollectiveKind : uint8_t {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  Broadcast,
  Permute,
};

inline constexpr size_t numCollectiveKinds = 6;

/// The names used in target descriptions: "all_gather", "reduce_scatter", ...
inline constexpr std::array<std::string_view, numCollectiveKinds> collectiveNames = {
    "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "permute"};

/// The short names used in figures and plans: "AG", "RS", "AR", "A2A", "BC", "PM".
inline constexpr std::array<std::string_view, numCollectiveKinds> collectiveShortNames = {
    "AG", "RS", "AR", "A2A", "BC", "PM"};

inline std::string_view nameOf(CollectiveKind kind) {
  return collectiveNames[static_cast<size_t>(kind)];
}

inline std::string_view shortNameOf(CollectiveKind kind) {
  return collectiveShortNames[static_cast<size_t>(kind)];
}

inline std::optional<CollectiveKind> parseCollectiveKind(std::string_view name) {
  for (size_t i = 0; i != numCollectiveKinds; ++i)
    if (name == collectiveNames[i] || name == collectiveShortNames[i])
      return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_COLLECTIVEKIND_H
