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
  /// Most shared memory of a block, in bytes.
  int64_t sharedBytes = 0;

  std::string name() const { return "sm_" + std::to_string(number); }
};

/// Shared memory that every launch may have without asking for more.
inline constexpr int64_t kStaticSharedBytes = 48 * 1024;

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
  /// What a block may have on all of them.
  int64_t sharedBytes() const;
};

/// "" (all known chips), "sm_80,sm_90" or "emulated". A problem names everything that is wrong.
ChipChoice chooseChips(std::string_view text);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_CORE_CHIPS_H
