// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a collective and a kernel cost, in microseconds. One interface for every user: the planner
// of redistributions, the bucketing and scheduling of collectives, and reports.

#ifndef SHARDC_PASSES_COST_CORE_COSTMODEL_H
#define SHARDC_PASSES_COST_CORE_COSTMODEL_H

#include "support/CollectiveKind.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shardc::cost {

/// The ranks that take part in a collective. `ranks` may be empty when only the size is known;
/// where it is given it has `size` entries, and a model may use it to find the slowest link they
/// share.
struct Group {
  uint32_t size = 1;
  std::span<const int64_t> ranks = {};
};

class CostModel {
public:
  virtual ~CostModel();

  virtual std::string_view name() const = 0;

  /// Whether the model says anything about this kind; the other members must not be asked
  /// otherwise.
  virtual bool supports(CollectiveKind kind) const = 0;

  /// Microseconds for one collective. `bytes` is the full size S: the result of an all-gather, the
  /// operand of every other kind, on one rank. A bucket is one collective over the sum of its
  /// bytes.
  virtual double collectiveUs(CollectiveKind kind, const Group &group, uint64_t bytes) const = 0;

  /// The part of collectiveUs that does not depend on the bytes: what merging two collectives
  /// saves.
  virtual double latencyUs(CollectiveKind kind, const Group &group) const = 0;

  /// How many ranks a node holds, in order: rank r is on node r / ranksPerNode(). Nothing where the
  /// model does not say which ranks share a node.
  virtual std::optional<uint32_t> ranksPerNode() const { return std::nullopt; }

  /// What the compute stream pays to launch one kernel or collective.
  virtual double launchUs() const = 0;

  /// Bytes per second of device memory: copies and kernels bound by memory.
  virtual double memoryBytesPerSecond() const = 0;

  /// Floating point operations per second for an element type ("f32", "bf16", ...); infinity where
  /// the model prices kernels by bytes alone.
  virtual double peakFlops(std::string_view elementType) const = 0;

  /// Microseconds of a kernel that moves `bytes` through device memory, without its launch.
  double memoryUs(double bytes) const { return bytes / memoryBytesPerSecond() * 1e6; }

  /// Microseconds of a kernel, max(flops / peak, bytes / memory bandwidth), without its launch.
  double kernelUs(double flops, double bytes, std::string_view elementType) const {
    return std::max(flops / peakFlops(elementType) * 1e6, memoryUs(bytes));
  }
};

} // namespace shardc::cost

#endif // SHARDC_PASSES_COST_CORE_COSTMODEL_H
