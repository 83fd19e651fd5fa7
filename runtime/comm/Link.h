// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An emulated link, so that overlap can be measured where ranks share memory and cores.
#ifndef SHARDC_RUNTIME_COMM_LINK_H
#define SHARDC_RUNTIME_COMM_LINK_H

#include "runtime/support/Futex.h"

#include <string>

namespace shardc::rt {

struct Link {
  double latencyUs = 0;
  double gigabytesPerSecond = 0; ///< 0: no emulation

  bool enabled() const { return gigabytesPerSecond > 0; }
  /// Time to move that many bytes.
  std::chrono::nanoseconds time(int64_t bytes) const;

  /// From "latency_us,GB/s", e.g. "20,12.5"; an empty or null text is no emulation. Throws Failure.
  static Link parse(const char *text);
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_LINK_H
