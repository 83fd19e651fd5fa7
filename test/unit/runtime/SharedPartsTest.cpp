// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the communicator over shared memory is made of: segments and their heap, the server that
// gives them away, and records of calls.
#include "runtime/control/Secret.h"
#include "runtime/shared/CallRecord.h"
#include "runtime/shared/SegmentServer.h"
#include "runtime/support/Failure.h"
#include "test/unit/runtime/Ranks.h"

#include <cstring>
#include <random>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace shardc::rt;

namespace {

int64_t bytesHeld(const SegmentHeap &heap, uint32_t segment) {
  struct stat facts{};
  EXPECT_EQ(fstat(heap.descriptor(segment).get(), &facts), 0);
  return int64_t(facts.st_blocks) * 512;
}

} // namespace

TEST(Segment, IsSharedAndCannotShrink) {
  Descriptor file = makeSegment(8192);
  Mapping one = mapSegment(file), other = mapSegment(file);
  ASSERT_NE(one.data(), other.data());
  one.data()[8191] = 7;
  EXPECT_EQ(other.data()[8191], 7);
  EXPECT_NE(ftruncate(file.get(), 4096), 0) << "others would fault";
  EXPECT_TRUE(one.has(8192, 0));
  EXPECT_FALSE(one.has(8191, 2));
  EXPECT_FALSE(one.has(9000, UINT64_MAX - 8000));
}

TEST(Segment, OthersFilesAreRefused) {
  Descriptor unsealed(memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THROW(mapSegment(unsealed), Failure);
  EXPECT_THROW(mapSegment(Descriptor(dup(0))), Failure);
  EXPECT_THROW(mapSegment(Descriptor()), Failure);
}

TEST(SegmentHeap, AllocationsDoNotTouchEachOther) {
  SegmentHeap heap;
  std::mt19937 random(7);
  struct Block {
    uint8_t *data;
    size_t bytes;
    uint8_t value;
  };
  std::vector<Block> blocks;
  auto check = [](const Block &b) {
    EXPECT_EQ(size_t(std::count(b.data, b.data + b.bytes, b.value)), b.bytes);
  };
  for (int i = 0; i < 4000; ++i) {
    if (blocks.size() > 60 || (!blocks.empty() && random() % 3 == 0)) {
      size_t victim = random() % blocks.size();
      check(blocks[victim]);
      heap.release(blocks[victim].data, blocks[victim].bytes);
      blocks.erase(blocks.begin() + ptrdiff_t(victim));
      continue;
    }
    size_t bytes = size_t(1) << random() % 22, alignment = size_t(1) << random() % 13;
    bytes -= random() % bytes;
    auto *data = static_cast<uint8_t *>(heap.allocate(bytes, alignment));
    ASSERT_NE(data, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
    blocks.push_back({data, bytes, uint8_t(random())});
    std::memset(data, blocks.back().value, bytes);
  }
  for (const Block &block : blocks) {
    check(block);
    heap.release(block.data, block.bytes);
  }
  // Nothing is lost: the first segment is whole again.
  void *all = heap.allocate(heap.segmentBytes(0), 4096);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(heap.find(all, heap.segmentBytes(0))->segment, 0u);
}

TEST(SegmentHeap, GrowsAndSaysWhereThingsAre) {
  SegmentHeap heap;
  size_t large = size_t(100) << 20;
  auto *small = static_cast<char *>(heap.allocate(10, 1));
  auto *big = static_cast<char *>(heap.allocate(large, 4096));
  ASSERT_NE(big, nullptr);
  EXPECT_EQ(heap.find(small, 10)->segment, 0u);
  EXPECT_EQ(heap.find(big + 5, large - 5)->segment, 1u);
  EXPECT_EQ(heap.find(big + 5, 1)->offset, heap.find(big, 1)->offset + 5);
  int local = 0;
  EXPECT_FALSE(heap.find(&local, sizeof local));
  EXPECT_FALSE(heap.find(big, heap.segmentBytes(1) + 1)) << "beyond the end";
  EXPECT_FALSE(heap.descriptor(2));
  EXPECT_EQ(heap.allocate(1, 8192), nullptr) << "more than a page's alignment";
  EXPECT_EQ(heap.allocate(SIZE_MAX, 1), nullptr);
}

TEST(SegmentHeap, GivesBackWhatIsFreed) {
  SegmentHeap heap;
  size_t bytes = size_t(16) << 20;
  void *data = heap.allocate(bytes, 4096);
  EXPECT_LT(bytesHeld(heap, 0), 1 << 20) << "nothing was written";
  Mapping other = mapSegment(heap.descriptor(0)); // of another rank, which keeps nothing alive
  std::memset(data, 1, bytes);
  EXPECT_GE(bytesHeld(heap, 0), int64_t(bytes));
  heap.release(data, bytes);
  EXPECT_LT(bytesHeld(heap, 0), 1 << 20);
}

TEST(SegmentServer, GivesWhatIsAskedFor) {
  SegmentHeap heap;
  std::memcpy(heap.allocate(8, 8), "a value", 8);
  SegmentServer server([&](uint32_t segment) { return heap.descriptor(segment); });
  auto never = [] { return false; };
  Mapping mapping = mapSegment(fetchSegment(server.address(), 0, deadlineAfter(60), never));
  EXPECT_STREQ(reinterpret_cast<char *>(mapping.data()), "a value");
  EXPECT_THROW(fetchSegment(server.address(), 9, deadlineAfter(60), never), Failure);
  SegmentAddress stranger = server.address();
  stranger.token[3] ^= 1;
  EXPECT_THROW(fetchSegment(stranger, 0, deadlineAfter(60), never), Failure);
  SegmentAddress nobody;
  EXPECT_THROW(fetchSegment(nobody, 0, deadlineAfter(60), never), Failure);
}

TEST(SegmentServer, AStrangerWhoSaysNothingHoldsNobodyUp) {
  SegmentHeap heap;
  heap.allocate(8, 8);
  SegmentServer server([&](uint32_t segment) { return heap.descriptor(segment); });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 3; ++i) {
    strangers.push_back(connectLocally("shardrt-memory-" + hexOf(viewOf(server.address().name))));
    ASSERT_TRUE(strangers.back());
  }
  // They stay until the test ends.
  EXPECT_TRUE(fetchSegment(server.address(), 0, deadlineAfter(60), [] { return false; }));
}

TEST(SegmentServer, WhoAsksInVainStopsAtTheDeadlineOrWhenTheWorldEnds) {
  std::atomic<bool> go{false};
  SegmentServer server([&](uint32_t) {
    while (!go)
      std::this_thread::yield();
    return Descriptor();
  });
  Clock::time_point begin = Clock::now();
  EXPECT_THROW(fetchSegment(server.address(), 0, deadlineAfter(0.2), [] { return false; }),
               Failure);
  EXPECT_THROW(fetchSegment(server.address(), 0, deadlineAfter(600), [] { return true; }), Failure);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(300)) << "it waits for neither deadline";
  go = true;
}

namespace {

/// A call of one of two members with an exchange, a table and a name. Member 0 gives the other
/// three elements and gets five.
struct Example {
  explicit Example(uint32_t position) : group({4, 2}, position) {
    collective.desc.name = "all_to_all.1";
    int64_t own[] = {6, 2}, gets[] = {1, 5}, gives[] = {1, 3};
    if (position == 1) {
      gets[0] = 3;
      gives[0] = 5;
      gets[1] = gives[1] = 1;
    }
    shardrt_collective_tensor tensors[] = {{data, data, own, gets, gives},
                                           {data, data, extents, table, nullptr}};
    EXPECT_EQ(call.assign(collective.desc, group, 3, tensors), "");
  }
  float data[64] = {};
  int64_t extents[2] = {4, 2}, table[2] = {3, 1};
  test::Collective collective{
      SHARDRT_ALL_TO_ALL, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 2, 0, 0}, {SHARDRT_F32, 2, 0, 1}}};
  Group group;
  CollectiveCall call;
  std::vector<OperandPlaces> places = {{{1, 64}, {2, 128}}, {{0, 0}, {}}};
};

std::vector<uint8_t> recordOf(const CollectiveCall &call,
                              const std::vector<OperandPlaces> &places) {
  RecordWriter writer;
  writer.call(call, places);
  return {writer.bytes().begin(), writer.bytes().end()};
}

} // namespace

TEST(CallRecord, SaysWhatTheCallIs) {
  Example mine(0), theirs(1);
  std::vector<uint8_t> own = recordOf(mine.call, mine.places),
                       other = recordOf(theirs.call, theirs.places);
  ForeignCall foreign(std::make_unique<Group>(std::vector<uint32_t>{4, 2}, 1));
  ASSERT_TRUE(foreign.read(*RecordView::of(other), *RecordView::of(own), mine.call));
  EXPECT_EQ(foreign.get().collective, &mine.collective.desc) << "they agree";
  EXPECT_EQ(foreign.get().operands[0].gather, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(foreign.get().operands[0].scatter, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(difference(mine.call, foreign.get()), "");
  EXPECT_EQ(foreign.places()[0].out.segment, 2u);
  EXPECT_EQ(foreign.places()[0].out.offset, 128u);
  EXPECT_EQ(foreign.places()[1].out.segment, SharedPlace::none);
  EXPECT_EQ(foreign.get().operands[1].in, nullptr);
}

TEST(CallRecord, SaysHowCallsDiffer) {
  Example mine(0);
  std::vector<uint8_t> own = recordOf(mine.call, mine.places);
  auto differs = [&](const std::function<void(Example &)> &change) {
    Example theirs(1);
    change(theirs);
    std::vector<uint8_t> other = recordOf(theirs.call, theirs.places);
    ForeignCall foreign(std::make_unique<Group>(std::vector<uint32_t>{4, 2}, 1));
    EXPECT_TRUE(foreign.read(*RecordView::of(other), *RecordView::of(own), mine.call));
    return describe(*foreign.get().collective) + ": " + difference(mine.call, foreign.get());
  };
  EXPECT_EQ(differs([](Example &e) { e.call.run = 9; }),
            "all_to_all.1 (layer.0 (model.py:1)): run 3 and run 9 of the program");
  EXPECT_EQ(differs([](Example &e) {
              e.collective.desc.name = "all_to_all.2";
              e.collective.desc.location = "b (model.py:2)";
            }),
            "all_to_all.2 (b (model.py:2)): different collectives");
  EXPECT_EQ(
      differs([](Example &e) { e.collective.facts[1].scatter_dim = -1; }),
      "all_to_all.1 (layer.0 (model.py:1)): operand 1: different element types, ranks or dims");
  EXPECT_EQ(differs([](Example &e) { e.call.operands[1].extents[1] = 6; }),
            "all_to_all.1 (layer.0 (model.py:1)): operand 1: extents f32[4, 2] and f32[4, 6]");
  EXPECT_EQ(differs([](Example &e) { e.call.operands[1].gather = {2, 2}; }),
            "all_to_all.1 (layer.0 (model.py:1)): operand 1: different extents of members");
  EXPECT_EQ(differs([](Example &e) { e.call.operands[0].gather = {7, 1}; }),
            "all_to_all.1 (layer.0 (model.py:1)): operand 0: rank 4 gives rank 2 3 elements of the "
            "dim, which expects 7");
}

// A record that is damaged, or cut short, is refused or read within its bytes.
TEST(CallRecord, DamagedRecordsAreReadWithinTheirBytes) {
  Example mine(0);
  const std::vector<uint8_t> own = recordOf(mine.call, mine.places);
  std::mt19937 random(11);
  size_t refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    size_t length = trial % 2 ? own.size() : random() % own.size();
    // At the end of a page that nothing follows.
    static auto *pages = static_cast<uint8_t *>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    std::span<uint8_t> record(pages + 4096 - length, length);
    std::memcpy(record.data(), own.data(), length);
    for (int i = 0; i < 3 && length > 0; ++i)
      record[random() % length] = uint8_t(random());
    std::optional<RecordView> view = RecordView::of(record);
    ForeignCall foreign(std::make_unique<Group>(std::vector<uint32_t>{4, 2}, 1));
    if (!view || !foreign.read(*view, *RecordView::of(own), mine.call)) {
      ++refused;
      continue;
    }
    difference(mine.call, foreign.get());
    describe(*foreign.get().collective);
  }
  EXPECT_GT(refused, 10000u);
  EXPECT_LT(refused, 20000u);
}
