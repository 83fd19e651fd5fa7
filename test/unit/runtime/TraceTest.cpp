// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the traces of a world are gathered.
#include "runtime/model/Trace.h"

#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

/// Rank 0 of a world in which the others have no events, and say nothing of their own.
class Alone : public Communicator {
public:
  explicit Alone(uint32_t worldSize) : size(worldSize) {}

  size_t longest = 0; ///< of what it said at once

  uint32_t worldSize() const override { return size; }
  uint32_t rank() const override { return 0; }
  Group &group(std::span<const uint32_t>) override { throw std::logic_error("no collectives"); }
  std::vector<std::string> exchange(const Topic &, std::string_view mine,
                                    Clock::time_point) override {
    longest = std::max(longest, mine.size());
    bool isNumber = meetings++ < 2; // when the first event was, and how long the trace is
    std::vector<std::string> all(size, isNumber ? std::string(mine) : "");
    all[0] = mine;
    return all;
  }
  void abort(shardrt_status, const std::string &) noexcept override {}
  void refuse(uint64_t, const std::string &) noexcept override {}
  void leave() noexcept override {}
  void notePosition(const shardrt_op *) noexcept override {}

private:
  const uint32_t size;
  int meetings = 0;
};

TEST(Trace, WhatAllRanksSayAtOnceIsBounded) {
  EventLog log(true, 0);
  Clock::time_point begin = Clock::now();
  for (int i = 0; i < 30000; ++i)
    log.add(0, "a kernel", "a place in the program", begin + std::chrono::microseconds(i),
            begin + std::chrono::microseconds(i + 1), 0);
  Alone few(1), many(1024);
  std::string text = gatherTrace(log, few, 60), ofMany = gatherTrace(log, many, 60);
  EXPECT_GT(text.size(), size_t(3) << 20); // more than is said at once, however many there are
  EXPECT_LE(few.longest, size_t(1) << 20);
  // Far below what a message of the control plane can have (Link::mostBytes).
  EXPECT_LE(many.longest * 1024, size_t(64) << 20);
  EXPECT_EQ(ofMany, text + std::string(1023, ','));
}

TEST(Trace, CollectivesInFlightAtOnceHaveLanesOfTheirOwn) {
  EventLog log(true, 0);
  Clock::time_point begin = Clock::now();
  auto add = [&](const char *name, int from, int to) {
    log.add(SHARDRT_STREAM_COMM, name, "", begin + std::chrono::milliseconds(from),
            begin + std::chrono::milliseconds(to), 8);
  };
  add("first", 0, 10);
  add("beside", 4, 20);
  add("third", 10, 15); // right behind the first
  add("fourth", 12, 13);
  Alone alone(1);
  std::string text = gatherTrace(log, alone, 60);
  for (auto [name, lane] : {std::pair("first", "1"), std::pair("beside", "7"),
                            std::pair("third", "1"), std::pair("fourth", "13")})
    EXPECT_NE(text.find("\"name\":\"" + std::string(name) +
                        "\",\"cat\":\"communication\",\"ph\":\"X\",\"pid\":0,\"tid\":" + lane +
                        ","),
              std::string::npos)
        << text;
  EXPECT_NE(text.find("\"tid\":7,\"name\":\"thread_name\",\"args\":{\"name\":\"communication 2\"}"),
            std::string::npos)
      << text;
}

} // namespace
