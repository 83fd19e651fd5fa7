// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/TreeExchange.h"

#include "runtime/control/Tree.h"

namespace shardc::rt {

uint32_t TreeExchange::wanted() const {
  return 1 + endChild(rank, worldSize) - firstChild(rank, worldSize);
}

std::optional<std::string> TreeExchange::add(uint32_t from, Gathered gathered, bool &disagree) {
  disagree = false;
  if (gathered.number != current.number)
    return "parts of exchange " + std::to_string(gathered.number) + " in exchange " +
           std::to_string(current.number);
  uint32_t expected = from == rank ? 1 : subtreeSize(from, worldSize);
  std::vector<bool> seen(worldSize);
  for (const Part &part : current.parts)
    seen[part.rank] = true;
  if (gathered.parts.size() != expected)
    return std::to_string(gathered.parts.size()) + " parts instead of " + std::to_string(expected);
  for (const Part &part : gathered.parts) {
    if (part.rank >= worldSize || !inSubtree(part.rank, from) || seen[part.rank])
      return "a part that cannot come from there";
    seen[part.rank] = true;
  }
  if (givers > 0 && (gathered.topic != current.topic || gathered.run != current.run)) {
    disagree = true;
    auto meeting = [](uint32_t who, const Gathered &what) {
      return "rank " + std::to_string(who) + " is at " + what.topic +
             (what.run ? " of run " + std::to_string(what.run) : "");
    };
    return meeting(from, gathered) + ", " + meeting(current.parts.front().rank, current);
  }
  current.topic = std::move(gathered.topic);
  current.run = gathered.run;
  for (Part &part : gathered.parts)
    current.parts.push_back(std::move(part));
  ++givers;
  return std::nullopt;
}

Spread TreeExchange::spread() const {
  Spread out{current.number, std::vector<std::string>(worldSize)};
  for (const Part &part : current.parts)
    out.parts[part.rank] = part.bytes;
  return out;
}

std::optional<std::string> TreeExchange::finish(const Spread &spread) {
  if (!complete() || spread.number != current.number || spread.parts.size() != worldSize)
    return "the result of exchange " + std::to_string(spread.number) + " at the wrong time";
  current = {};
  current.number = spread.number + 1;
  givers = 0;
  return std::nullopt;
}

std::vector<uint32_t> TreeExchange::missing() const {
  std::vector<bool> here(worldSize);
  for (const Part &part : current.parts)
    here[part.rank] = true;
  std::vector<uint32_t> out;
  for (uint32_t other = rank; other < worldSize; ++other)
    if (!here[other] && inSubtree(other, rank))
      out.push_back(other);
  return out;
}

} // namespace shardc::rt
