// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the ranks of a program share random numbers (semantics.md N1), and its random state.
#ifndef SHARDC_DIALECTS_DIST_RANDOMMODE_H
#define SHARDC_DIALECTS_DIST_RANDOMMODE_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace shardc::dist {

/// The attribute of a module, a string: the mode. Absent: the default one.
inline constexpr llvm::StringLiteral kRandomAttr = "dist.random";

/// The states of a program that draws random numbers.
inline constexpr llvm::StringLiteral kRandomSeed = "random.seed";
inline constexpr llvm::StringLiteral kRandomOffset = "random.offset";

enum class RandomMode {
  /// An element's number depends on its index in the whole tensor: the same on every mesh.
  Global,
  /// Shards draw from offsets that PyTorch's tracker computes; replicas agree, shards differ.
  DTensor,
  /// Each rank draws by a key of its own: replicas differ too.
  PerRank,
};

/// "default", "dtensor", "per-rank".
inline std::optional<RandomMode> parseRandomMode(llvm::StringRef text) {
  if (text == "default")
    return RandomMode::Global;
  if (text == "dtensor")
    return RandomMode::DTensor;
  if (text == "per-rank")
    return RandomMode::PerRank;
  return std::nullopt;
}

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_RANDOMMODE_H
