// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank may pass for an all_to_all within one dim, and how much of it goes over the wire.
#include "runtime/comm/Call.h"
#include "test/unit/runtime/Ranks.h"

using namespace shardc::rt;

namespace {

/// Rank 1 of three; a tensor of 2 x `rows` bytes, of which rows are cut and concatenated.
struct Exchange {
  test::Collective collective{
      SHARDRT_ALL_TO_ALL, SHARDRT_REDUCE_NONE, {{SHARDRT_I8, 2, 1, 1}}, "all_to_all.0"};
  Group group{{4, 7, 9}, 1};
  CollectiveCall call;
  char memory[64] = {};

  std::string assign(int64_t rows, const std::vector<int64_t> *gives,
                     const std::vector<int64_t> *gets) {
    int64_t extents[] = {2, rows};
    shardrt_collective_tensor tensor{memory, memory + 32, extents, gets ? gets->data() : nullptr,
                                     gives ? gives->data() : nullptr};
    return call.assign(collective.desc, group, 1, &tensor);
  }
  std::string assign(int64_t rows, const std::vector<int64_t> &gives,
                     const std::vector<int64_t> &gets) {
    return assign(rows, &gives, &gets);
  }
};

} // namespace

TEST(Exchange, IsWhatTheTablesSay) {
  Exchange e;
  ASSERT_EQ(e.assign(7, {1, 2, 3}, {0, 2, 5}), "");
  EXPECT_EQ(e.call.operands[0].inElements(1), 14);
  EXPECT_EQ(e.call.operands[0].outElements(1, e.collective.desc), 14);
  EXPECT_EQ(e.call.operandBytes(), 14);
  EXPECT_EQ(e.call.wireBytes(), 2 * 5) << "it gets 0 + 5 rows of others and gives 1 + 3";
  ASSERT_EQ(e.assign(7, {4, 2, 1}, {0, 2, 0}), "");
  EXPECT_EQ(e.call.wireBytes(), 2 * 5);
  ASSERT_EQ(e.assign(7, {0, 2, 0}, {0, 2, 0}), "");
  EXPECT_EQ(e.call.wireBytes(), 0) << "what a rank keeps is not sent";
  ASSERT_EQ(e.assign(6, nullptr, nullptr), "");
  EXPECT_EQ(e.call.operands[0].gather, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(e.call.wireBytes(), 2 * 4);
}

TEST(Exchange, RefusesTablesThatDoNotFit) {
  Exchange e;
  std::vector<int64_t> ones{1, 1, 1};
  std::string here = "operand 0: dim 1: ";
  EXPECT_EQ(e.assign(2, ones, ones), here + "the pieces that leave sum to 3, the dim has 2");
  EXPECT_EQ(e.assign(3, ones, {1, 2, 1}),
            here + "the rank keeps 1 elements and expects 2 of itself");
  EXPECT_EQ(e.assign(3, {1, -1, 1}, ones), here + "a member's extent is negative (-1)");
  EXPECT_EQ(e.assign(3, ones, {1, 1, -2}), here + "a member's extent is negative (-2)");
  EXPECT_EQ(e.assign(3, ones, {INT64_MAX, 1, 1}), here + "the members' extents are too large");
  EXPECT_EQ(e.assign(3, ones, {INT64_MAX / 2, 1, 1}),
            here + "the pieces that arrive are too large");
  EXPECT_EQ(e.assign(3, &ones, nullptr),
            here + "the extents of pieces that leave are needed with those that arrive");
  EXPECT_EQ(e.assign(4, nullptr, nullptr), here + "a dim of 4 elements has no 3 equal pieces");
}
