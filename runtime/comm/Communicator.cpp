// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Communicator.h"

#include <algorithm>

namespace shardc::rt {

Clock::time_point deadlineAfter(double seconds) {
  constexpr double thirtyYears = 1e9;
  double limited = seconds > 0 ? std::min(seconds, thirtyYears) : 0;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limited));
}

std::string rankList(std::span<const uint32_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

} // namespace shardc::rt
