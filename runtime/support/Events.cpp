// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/support/Events.h"

#include <algorithm>

namespace shardc::rt {

std::vector<shardrt_event> EventLog::sorted() const {
  std::vector<shardrt_event> all;
  for (const auto &stream : streams)
    all.insert(all.end(), stream.begin(), stream.end());
  std::sort(all.begin(), all.end(), [](const shardrt_event &a, const shardrt_event &b) {
    return a.start_us != b.start_us ? a.start_us < b.start_us : a.stream < b.stream;
  });
  return all;
}

} // namespace shardc::rt
