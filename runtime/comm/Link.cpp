// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Link.h"

#include "runtime/support/Failure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace shardc::rt {

std::chrono::nanoseconds Link::time(int64_t bytes) const {
  return std::chrono::nanoseconds(
      int64_t(std::ceil(latencyUs * 1e3 + double(bytes) / gigabytesPerSecond)));
}

Link Links::of(std::span<const uint32_t> members, bool pointToPoint) const {
  if (ranksPerNode == 0)
    return within;
  std::map<uint32_t, uint32_t> membersOf;
  for (uint32_t rank : members)
    ++membersOf[rank / ranksPerNode];
  if (membersOf.size() <= 1)
    return within;
  uint32_t fewest = ranksPerNode;
  for (auto [node, count] : membersOf)
    fewest = std::min(fewest, count);
  Link link = between;
  link.gigabytesPerSecond *= double(pointToPoint ? 1 : fewest) / double(ranksPerNode);
  return link;
}

namespace {

/// "LATENCY_US,GB_PER_S", from the start of `text`, which is left with what follows.
bool takeLink(std::string_view &text, Link &link) {
  auto take = [&](double &number) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(size_t(end - text.data()));
    return failure == std::errc() && std::isfinite(number);
  };
  if (!take(link.latencyUs) || !text.starts_with(','))
    return false;
  text.remove_prefix(1);
  return take(link.gigabytesPerSecond) && link.latencyUs >= 0 && link.gigabytesPerSecond > 0;
}

/// What is wrong, or null.
const char *parseLinks(std::string_view text, Links &links) {
  if (!takeLink(text, links.within))
    return "expected latency in microseconds and bandwidth in GB/s, as in 20,12.5";
  if (text.empty())
    return nullptr;
  if (!text.starts_with(';'))
    return "expected ';' and the link between nodes behind the first link, as in 5,100;2:20,12.5";
  text.remove_prefix(1);
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), links.ranksPerNode);
  text.remove_prefix(size_t(end - text.data()));
  if (failure != std::errc() || links.ranksPerNode == 0 || !text.starts_with(':'))
    return "expected how many ranks share a node and ':' behind ';', as in 5,100;2:20,12.5";
  text.remove_prefix(1);
  if (!takeLink(text, links.between) || !text.empty())
    return "expected latency and bandwidth of the link between nodes at the end, as in "
           "5,100;2:20,12.5";
  return nullptr;
}

} // namespace

Links Links::parse(const char *text) {
  Links links;
  if (!text || !*text)
    return links;
  if (const char *problem = parseLinks(text, links))
    throw Failure(SHARDRT_INVALID_ARGUMENT, std::string("SHARDRT_LINK=") + text + ": " + problem);
  return links;
}

} // namespace shardc::rt
