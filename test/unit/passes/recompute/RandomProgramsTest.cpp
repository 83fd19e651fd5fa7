// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random forwards and backwards under falling limits: whatever is chosen must run, and take no more
// memory than the result says.

#include "ReferenceMemory.h"

#include <gtest/gtest.h>

#include <random>

using namespace shardc::recompute;

namespace {

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  Program make() {
    Program program;
    program.constantBytes = upTo(50);
    unsigned numForward = 3 + upTo(25), numLate = 2 + upTo(25);
    std::vector<StorageId> early, all;
    for (unsigned i = 0; i != numForward + numLate; ++i) {
      bool late = i >= numForward;
      std::vector<StorageId> reads, makes;
      for (unsigned r = upTo(4); r-- > 0 && !all.empty();) {
        // Backwards read what was made last first.
        size_t at = late && upTo(2) != 0 && !early.empty()
                        ? std::min<size_t>(early.size() - 1,
                                           (numForward + numLate - i) * early.size() / numLate)
                        : upTo(all.size());
        StorageId storage = late && upTo(2) != 0 && !early.empty()
                                ? early[std::min(at, early.size() - 1)]
                                : all[upTo(all.size())];
        if (std::ranges::find(reads, storage) == reads.end())
          reads.push_back(storage);
      }
      for (unsigned m = 1 + (upTo(5) == 0); m-- > 0;)
        makes.push_back(program.addStorage(upTo(4) == 0 ? upTo(8) : 8 + upTo(200)));
      Choice choice = Choice::Never;
      uint32_t region = none;
      if (!late && upTo(6) != 0) {
        choice = upTo(5) == 0 ? Choice::Required : Choice::IfCheap;
        if (choice == Choice::Required && upTo(2) == 0)
          region = upTo(2);
      }
      program.addOp({double(upTo(30)), choice, late, region}, reads, makes);
      for (StorageId storage : makes) {
        all.push_back(storage);
        if (!late)
          early.push_back(storage);
        if (upTo(12) == 0)
          program.pin(storage);
      }
    }
    return program;
  }

private:
  unsigned upTo(size_t count) { return count == 0 ? 0 : random() % count; }
  std::mt19937 random;
};

class RandomPrograms : public testing::TestWithParam<unsigned> {};

TEST_P(RandomPrograms, RunAndTakeWhatTheResultSays) {
  for (unsigned i = 0; i != 200; ++i) {
    SCOPED_TRACE(GetParam() * 200 + i);
    Program program = Generator(GetParam() * 200 + i).make();
    Result plain = choose(program, {});
    EXPECT_EQ(ReferenceMemory(program, plain).error, "");
    uint64_t last = plain.peakAfter;
    for (unsigned percent : {100, 90, 75, 60, 40, 1}) {
      uint64_t limit = std::max<uint64_t>(plain.peakAfter * percent / 100, 1);
      Result result = choose(program, {limit});
      ReferenceMemory reference(program, result);
      EXPECT_EQ(reference.error, "");
      EXPECT_LE(reference.peak, result.peakAfter);
      EXPECT_LE(result.peakAfter, plain.peakAfter);
      if (percent == 100)
        EXPECT_EQ(result.again.size(), plain.again.size());
      if (result.peakAfter <= limit)
        EXPECT_GE(last, result.peakAfter);
      last = std::min(last, result.peakAfter);
      for (const Again &again : result.again) {
        EXPECT_NE(program.info(again.op).choice, Choice::Never);
        EXPECT_FALSE(program.info(again.op).late);
        EXPECT_TRUE(program.info(again.before).late);
      }
      Result second = choose(program, {limit});
      EXPECT_EQ(second.again.size(), result.again.size());
      EXPECT_EQ(second.peakAfter, result.peakAfter);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0u, 10u));

} // namespace
