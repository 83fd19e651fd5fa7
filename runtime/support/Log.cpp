// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Log.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace shardc::rt {

namespace {
constexpr const char *levels[] = {"error", "warning", "info", "debug"};
}

void Log::write(int32_t messageLevel, const std::string &message) const {
  if (!enabled(messageLevel))
    return;
  if (function)
    function(context, messageLevel, rank, message.c_str());
  else // one call, so that ranks' lines do not mix
    std::fprintf(stderr, "shardrt: rank %d: %s: %s\n", int(rank), levels[messageLevel],
                 message.c_str());
}

int32_t defaultLogLevel() {
  const char *wanted = std::getenv("SHARDRT_LOG");
  for (size_t i = 0; wanted && i < std::size(levels); ++i)
    if (std::string(wanted) == levels[i])
      return int32_t(i);
  return SHARDRT_LOG_WARNING;
}

} // namespace shardc::rt
