// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emulated links, so that overlap can be measured where ranks share memory and cores.
#ifndef SHARDC_RUNTIME_COMM_LINK_H
#define SHARDC_RUNTIME_COMM_LINK_H

#include "runtime/support/Futex.h"

#include <span>
#include <string>

namespace shardc::rt {

struct Link {
  double latencyUs = 0;
  double gigabytesPerSecond = 0; ///< 0: no emulation

  bool enabled() const { return gigabytesPerSecond > 0; }
  /// Time to move that many bytes.
  std::chrono::nanoseconds time(int64_t bytes) const;
};

/// The link that all ranks share, or one within nodes and one between them.
struct Links {
  Link within;
  /// Rank r is on node r / ranksPerNode; 0: all are on one.
  uint32_t ranksPerNode = 0;
  /// Bandwidth of a full node: each of its ranks has its part of it.
  Link between;

  bool enabled() const { return within.enabled(); }
  /// What a collective of these ranks is bound by, as the compiler's cost model has it
  /// (passes/cost/core/TargetDescription.h): within a node the first link. Between nodes a ring
  /// drives the links of as many ranks as the group has on a node, at the node that has fewest;
  /// where every rank sends data of its own (`pointToPoint`), that is one.
  Link of(std::span<const uint32_t> members, bool pointToPoint) const;

  /// From "latency_us,GB/s", e.g. "20,12.5", or with nodes "5,100;2:20,12.5", where two ranks share
  /// a node; an empty or null text is no emulation. Throws Failure.
  static Links parse(const char *text);
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_LINK_H
