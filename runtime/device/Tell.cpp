// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/Tell.h"

#include <algorithm>

namespace shardc::rt {

std::vector<std::string> tellMembers(Communicator &communicator, const CollectiveCall &call,
                                     std::string mine, size_t bytes, Clock::time_point deadline) {
  const uint32_t n = call.group->size();
  mine.resize(bytes);
  std::string all(n * bytes, '\0');
  const shardrt_collective_operand facts{SHARDRT_U8, 1, 0, -1};
  shardrt_collective c{};
  c.name = call.collective->name ? call.collective->name : kindName(call.collective->kind);
  c.location = call.collective->location;
  c.operands = &facts;
  c.kind = SHARDRT_ALL_GATHER;
  c.n_operands = 1;
  const auto extent = int64_t(all.size());
  shardrt_collective_tensor tensor{mine.data(), all.data(), &extent, nullptr, nullptr, 0};
  CollectiveCall told;
  if (std::string problem = told.assign(c, *call.group, call.run, &tensor); !problem.empty())
    throw Failure(SHARDRT_INTERNAL, problem);
  communicator.hostTransport()->run(told, deadline);
  std::vector<std::string> texts;
  for (uint32_t q = 0; q < n; ++q)
    texts.push_back(all.substr(q * bytes, bytes));
  return texts;
}

void explainLate(Communicator &communicator, const CollectiveCall &call, bool atDeadline) {
  tellMembers(communicator, call, "late", 4, Clock::now() + lateTime);
  std::string text =
      describe(*call.collective) +
      ": it did not complete in time: all members have arrived, but their data has not";
  communicator.abort(SHARDRT_ABORTED, text);
  throw Failure(atDeadline ? SHARDRT_TIMEOUT : SHARDRT_ABORTED, text);
}

std::string reasonsOf(const std::vector<std::string> &texts) {
  std::string all;
  for (uint32_t rank = 0; rank < texts.size(); ++rank)
    if (!texts[rank].empty() &&
        std::find(texts.begin(), texts.begin() + rank, texts[rank]) == texts.begin() + rank)
      all += (all.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + texts[rank];
  return all;
}

} // namespace shardc::rt
