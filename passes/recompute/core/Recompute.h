// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the backward computes again instead of keeping it from the forward. IR-free.
//
// Of a forward with its backward behind it, most memory is held by what the forward makes and the
// backward reads. An op of the forward that is computed again before the first such read holds its
// results only up to the forward's last read, and from there on. Its operands have to exist by
// then: most are kept anyway; those that are small against what is saved are kept for it; the
// others are computed again too, right before it (its chain).
//
// Without a limit only what is required is computed again. Under a limit, the op with the most
// bytes * steps saved for each microsecond of its chain is chosen, among those that hold memory at
// the step where the peak is, until the peak is below the limit or nothing is left that lowers it
// (then steps that are nearly as high are lowered too, because what is measured later may differ a
// little). What was chosen changes the chains of the others and where the peak is: both are looked
// at again for each choice. A choice that makes the peak higher (elsewhere) is not made.
//
// The result depends on nothing but the arguments. Near-linear: O((n + c) log n) for n ops and c
// choices, as long as the intervals in which results are held are nested, as those of a backward
// in reverse order are; a chain has at most `kMostInChain` ops.

#ifndef SHARDC_PASSES_RECOMPUTE_CORE_RECOMPUTE_H
#define SHARDC_PASSES_RECOMPUTE_CORE_RECOMPUTE_H

#include "passes/recompute/core/Program.h"

#include <optional>

namespace shardc::recompute {

inline constexpr unsigned kMostInChain = 64;
/// An operand that would be gone is kept, and not computed again, up to this part of the bytes that
/// are saved.
inline constexpr uint64_t kSmallOperand = 8;

struct Options {
  /// Bytes that may be in use at once, constant ones included.
  std::optional<uint64_t> limit;
};

/// An op that is computed again.
struct Again {
  OpId op;
  /// The late op before which it is.
  OpId before;
  /// Whose chain it is a part of; itself where late ops read its results.
  OpId owner;
};

/// Why an op is computed again, for those that own a chain.
struct Reason {
  OpId op;
  bool required;
  /// Bytes that its results held between the forward and the backward.
  uint64_t bytes;
  /// Microseconds of it and its chain.
  double us;
};

struct Result {
  /// In the order in which they run: by `before`, then in program order.
  std::vector<Again> again;
  /// In program order.
  std::vector<Reason> reasons;
  uint64_t peakBefore = 0, peakAfter = 0;
  double addedUs = 0;
};

Result choose(const Program &program, const Options &options);

} // namespace shardc::recompute

#endif // SHARDC_PASSES_RECOMPUTE_CORE_RECOMPUTE_H
