// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kinds of collectives, for the IR, cost models, the optimiser, compiled programs and the
// runtime: one enumeration with the names and numbers that each of them uses.
#ifndef SHARDC_SUPPORT_COLLECTIVEKIND_H
#define SHARDC_SUPPORT_COLLECTIVEKIND_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

enum class CollectiveKind : uint8_t {
  AllGather,
  ReduceScatter,
  AllReduce,
  AllToAll,
  Broadcast,
  Permute,
};

struct CollectiveKindFacts {
  std::string_view name;      ///< in IR, target descriptions, manifests and messages
  std::string_view shortName; ///< in figures and plans
  uint32_t runtimeCode;       ///< in compiled programs (runtime/abi/shardrt_program.h)
};

/// In the order of the enumeration.
inline constexpr std::array<CollectiveKindFacts, 6> collectiveKinds = {{
    {"all_gather", "AG", 1},
    {"reduce_scatter", "RS", 3},
    {"all_reduce", "AR", 2},
    {"all_to_all", "A2A", 4},
    {"broadcast", "BC", 5},
    {"permute", "PM", 6},
}};
inline constexpr size_t numCollectiveKinds = collectiveKinds.size();

constexpr const CollectiveKindFacts &factsOf(CollectiveKind kind) {
  return collectiveKinds[static_cast<size_t>(kind)];
}
constexpr std::string_view nameOf(CollectiveKind kind) { return factsOf(kind).name; }
constexpr std::string_view shortNameOf(CollectiveKind kind) { return factsOf(kind).shortName; }
constexpr uint32_t runtimeCodeOf(CollectiveKind kind) { return factsOf(kind).runtimeCode; }

/// Takes both the name and the short name.
constexpr std::optional<CollectiveKind> parseCollectiveKind(std::string_view name) {
  for (size_t i = 0; i != numCollectiveKinds; ++i)
    if (name == collectiveKinds[i].name || name == collectiveKinds[i].shortName)
      return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

constexpr std::optional<CollectiveKind> collectiveKindFromRuntime(uint32_t code) {
  for (size_t i = 0; i != numCollectiveKinds; ++i)
    if (code == collectiveKinds[i].runtimeCode)
      return static_cast<CollectiveKind>(i);
  return std::nullopt;
}

} // namespace shardc

#endif // SHARDC_SUPPORT_COLLECTIVEKIND_H
