// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes that all targets share ask of the target. In the IR these are entries of the module's
// target (Target.h), under the names of kLimits.

#ifndef SHARDC_LOWERING_TARGET_LIMITS_H
#define SHARDC_LOWERING_TARGET_LIMITS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace shardc::target {

/// The values here hold for a module that names no target.
struct Limits {
  /// Bytes of the widest vector that kernels should be written with, and how many such registers a
  /// loop has.
  int64_t vectorBytes = 64;
  int64_t vectorRegisters = 32;
  /// Bytes: buffers of the arena and constants begin at multiples of it, and take up multiples.
  int64_t bufferAlignment = 64;
  /// Elements of a tile of an elementwise kernel: enough for its loops to be worth starting, few
  /// enough for several operands to stay in the first cache.
  int64_t tileElements = 4096;
  /// Least tile of a dim that vector instructions run along, in elements.
  int64_t rowTileElements = 64;
  /// Most elements of a temporary that one iteration of a fused kernel needs; and the same where
  /// nothing divides the kernel among threads, so that fusing would leave one with all the work.
  int64_t temporaryElements = 65536;
  int64_t serialElements = 4096;
  /// Work below which dividing it further does not pay, in elements touched.
  int64_t taskElements = 16384;
  /// Rows of each matrix, on average, above which products with matrices that rows name
  /// (grouped_mm) are faster where the rows of a matrix stand together, so that sorting them pays.
  int64_t togetherRows = 1;
  /// Nanoseconds of a launch, and of each further tensor of a collective; bytes that a copy moves
  /// in a nanosecond, reads and writes of a byte counted once.
  double launchNs = 300;
  double tensorNs = 300;
  double copyBytesPerNs = 6;

  bool operator==(const Limits &) const = default;
};

/// One limit and its name in the IR. Exactly one of the two members is set.
struct LimitField {
  llvm::StringLiteral name;
  int64_t Limits::*integer = nullptr;
  double Limits::*real = nullptr;
  /// Highest value of an integer; a power of two where `powerOfTwo`.
  int64_t most = int64_t(1) << 40;
  bool powerOfTwo = false;
};

/// The largest `bufferAlignment` is that of the arena itself (runtime/abi/shardrt_program.h).
inline constexpr LimitField kLimits[] = {
    {"vector_bytes", &Limits::vectorBytes, nullptr, 4096, true},
    {"vector_registers", &Limits::vectorRegisters, nullptr, 4096},
    {"buffer_alignment", &Limits::bufferAlignment, nullptr, 4096, true},
    {"tile_elements", &Limits::tileElements},
    {"row_tile_elements", &Limits::rowTileElements},
    {"temporary_elements", &Limits::temporaryElements},
    {"serial_elements", &Limits::serialElements},
    {"task_elements", &Limits::taskElements},
    {"together_rows", &Limits::togetherRows},
    {"launch_ns", nullptr, &Limits::launchNs},
    {"tensor_ns", nullptr, &Limits::tensorNs},
    {"copy_bytes_per_ns", nullptr, &Limits::copyBytesPerNs},
};

} // namespace shardc::target

#endif // SHARDC_LOWERING_TARGET_LIMITS_H
