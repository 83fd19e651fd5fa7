// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Link.h"

#include "runtime/support/Failure.h"

#include <cmath>
#include <cstdlib>

namespace shardc::rt {

std::chrono::nanoseconds Link::time(int64_t bytes) const {
  return std::chrono::nanoseconds(
      int64_t(std::ceil(latencyUs * 1e3 + double(bytes) / gigabytesPerSecond)));
}

Link Link::parse(const char *text) {
  Link link;
  if (!text || !*text)
    return link;
  char *end = nullptr;
  link.latencyUs = std::strtod(text, &end);
  bool comma = end != text && *end == ',';
  const char *second = comma ? end + 1 : end;
  if (comma)
    link.gigabytesPerSecond = std::strtod(second, &end);
  if (!comma || end == second || *end || !std::isfinite(link.latencyUs) || link.latencyUs < 0 ||
      !std::isfinite(link.gigabytesPerSecond) || link.gigabytesPerSecond <= 0)
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  std::string("SHARDRT_LINK=") + text +
                      ": expected latency in microseconds and bandwidth in GB/s, as in 20,12.5");
  return link;
}

} // namespace shardc::rt
