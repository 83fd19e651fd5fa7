// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chips that kernels are compiled for, and what a person writes for them.

#ifndef SHARDC_LOWERING_CUDA_CORE_CHIPS_H
#define SHARDC_LOWERING_CUDA_CORE_CHIPS_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardc::cuda {

struct Chip {
  unsigned number = 0; // 90 for sm_90
  /// Version of the oldest PTX that knows the chip, times ten: what drivers and ptxas must read.
  unsigned ptx = 0;

  std::string name() const { return "sm_" + std::to_string(number); }
};

/// Shared memory that every launch may have without asking for more.
inline constexpr int64_t kStaticSharedBytes = 48 * 1024;
/// Most shared memory of a block. Some chips have more (sm_90: 227 KiB), but code for sm_80 also
/// runs on sm_86 and sm_89, and PTX on sm_120, which have no more than this.
inline constexpr int64_t kMostSharedBytes = 99 * 1024;

/// By number.
std::span<const Chip> knownChips();

struct ChipChoice {
  /// By number, without duplicates; empty for the emulated device.
  std::vector<Chip> chips;
  bool emulated = false;
  /// What is wrong with the text; empty: nothing.
  std::string problem;

  /// "sm_80,sm_90" or "emulated".
  std::string text() const;
};

/// Whether an artifact has the PTX of chip number `index` besides its machine code, so that every
/// device from the lowest of the chips on runs it. Machine code runs on its chip and on later ones
/// of its generation (sm_80 on sm_86, not on sm_90); PTX on all later ones. So it is kept for the
/// last chip, and where devices may lie between the generations of two neighbours.
bool keepsPtx(std::span<const Chip> chips, size_t index);

/// "" (all known chips), "sm_80,sm_90" or "emulated". A problem names everything that is wrong.
ChipChoice chooseChips(std::string_view text);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_CORE_CHIPS_H
