// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Communicator.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

namespace shardc::rt {

namespace {

constexpr Topic comparison{"the comparison of ranks before the first collective"};

/// Values one after the other, each behind its length.
std::string encode(const Identity &identity) {
  std::string text;
  for (const auto &[name, value] : identity) {
    uint64_t length = value.size();
    text.append(reinterpret_cast<const char *>(&length), sizeof length);
    text += value;
  }
  return text;
}

/// What a rank has that ends early, because it has fewer facts, is "nothing".
std::vector<std::string> decode(std::string_view text, size_t count) {
  std::vector<std::string> values;
  while (values.size() < count) {
    uint64_t length = 0;
    if (text.size() < sizeof length) {
      values.push_back("nothing");
      continue;
    }
    std::memcpy(&length, text.data(), sizeof length);
    text.remove_prefix(sizeof length);
    values.emplace_back(text.substr(0, size_t(length)));
    text.remove_prefix(values.back().size());
  }
  return values;
}

/// Where ranks differ; empty if they do not.
std::string differences(const Identity &identity, const std::vector<std::string> &everybody) {
  std::vector<std::vector<std::string>> values;
  for (const std::string &one : everybody)
    values.push_back(decode(one, identity.size()));
  std::string text;
  for (size_t fact = 0; fact < identity.size(); ++fact) {
    std::map<std::string, std::vector<uint32_t>> ranksOf;
    for (uint32_t r = 0; r < values.size(); ++r)
      ranksOf[values[r][fact]].push_back(r);
    if (ranksOf.size() == 1)
      continue;
    text += (text.empty() ? "ranks differ in " : "; ") + identity[fact].first + ":";
    const char *separator = " ";
    for (auto &[value, ranks] : ranksOf) {
      text += separator + value + " on " + rankList(ranks);
      separator = ", ";
    }
  }
  return text;
}

} // namespace

void Communicator::handshake(const Identity &identity, uint64_t run, Clock::time_point deadline) {
  const Topic topic{comparison.name, run};
  std::string problem = differences(identity, exchange(topic, encode(identity), deadline));
  if (problem.empty())
    return;
  // All ranks have seen the same, and say so themselves.
  problem = topic.name + (": " + problem);
  abort(SHARDRT_MISMATCH, problem);
  throw Failure(SHARDRT_MISMATCH, problem);
}

void Communicator::barrier(Clock::time_point deadline) { exchange({"the barrier"}, {}, deadline); }

Clock::time_point deadlineAfter(double seconds) {
  constexpr double thirtyYears = 1e9;
  double limited = seconds > 0 ? std::min(seconds, thirtyYears) : 0;
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limited));
}

double secondsUntil(Clock::time_point deadline) {
  return std::max(0.0, std::chrono::duration<double>(deadline - Clock::now()).count());
}

std::string secondsText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", value);
  return text;
}

std::string rankList(std::span<const uint32_t> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

} // namespace shardc::rt
