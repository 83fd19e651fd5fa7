// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of rank 0 against the layout's definition of where an element is, and what ranks say
// about them.
#include "runtime/model/RootTensors.h"
#include "runtime/host/HostExecutor.h"
#include "test/unit/runtime/Ranks.h"
#include "test/unit/runtime/TableWorld.h"

#include <numeric>
#include <random>

using namespace shardc::rt;
using shardc::Layout;
using shardc::Mesh;

namespace {

std::vector<std::unique_ptr<Communicator>> makeWorld(uint32_t size, bool table) {
  if (!table)
    return makeLocalWorld(size);
  auto toy = std::make_shared<test::ToyWorld>(size);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (uint32_t rank = 0; rank < size; ++rank)
    ends.push_back(makeTableCommunicator(test::TableEnd::functions(),
                                         new test::TableEnd{toy, rank, size % 2 == 0, nullptr},
                                         int32_t(rank), int32_t(size)));
  return ends;
}

struct Transfer {
  Layout layout;
  std::vector<int64_t> extents, strides; ///< of the whole tensor on rank 0
  size_t memory = 1;                     ///< elements of rank 0's buffer
  int64_t roundBytes = 1;
  uint32_t world = 1;
};

/// Global offsets of the elements that a rank holds, in local order; by Layout alone.
std::vector<size_t> offsetsOf(const Transfer &t, int64_t rank) {
  std::vector<size_t> out;
  auto coordinate = t.layout.mesh.coordinateOf(rank);
  if (!coordinate)
    return out;
  std::vector<int64_t> local = t.layout.localShape(t.extents, *coordinate), index(local.size(), 0);
  int64_t count = std::accumulate(local.begin(), local.end(), int64_t(1), std::multiplies<>());
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t d = local.size(); d-- > 0; rest /= local[d])
      index[d] = rest % local[d];
    std::vector<int64_t> at = t.layout.globalIndex(t.extents, *coordinate, index);
    out.push_back(size_t(std::inner_product(at.begin(), at.end(), t.strides.begin(), int64_t(0))));
  }
  return out;
}

/// Scatters numbers to all ranks and gathers others back.
void check(const Transfer &t, bool table) {
  std::vector<int32_t> whole(t.memory), back(t.memory, -1), wanted(t.memory, -1);
  std::iota(whole.begin(), whole.end(), 1000);
  std::vector<std::optional<Slice>> holders, writers;
  for (uint32_t rank = 0; rank < t.world; ++rank) {
    auto where = t.layout.mesh.coordinateOf(rank);
    holders.push_back(Slice::make(t.layout, t.extents, where));
    writers.push_back(writesPart(t.layout, where) ? holders.back() : std::nullopt);
    // Rank 0 puts its own part in place itself.
    for (size_t offset : offsetsOf(t, rank))
      if (rank != 0 && writers.back())
        wanted[offset] = int32_t(offset) * 3;
  }
  std::vector<uint32_t> all(t.world);
  std::iota(all.begin(), all.end(), 0u);
  auto outcomes = test::runRanks(makeWorld(t.world, table), [&](Communicator &end) {
    uint32_t rank = end.rank();
    HostMemory memory{Allocator{}};
    Buffer packed;
    size_t largest = 0;
    RootMover mover(
        rank, memory, packed,
        [&](const shardrt_collective &collective, const shardrt_collective_tensor &operand) {
          CollectiveCall call;
          ASSERT_EQ(call.assign(collective, end.group(all), 1, &operand), "");
          end.hostTransport()->run(call, deadlineAfter(20));
          largest = std::max(largest, packed.size());
        },
        t.roundBytes);
    shardrt_tensor tensor{};
    tensor.rank = int32_t(t.extents.size());
    tensor.extents = t.extents.data();
    tensor.strides = t.strides.data();
    std::vector<size_t> offsets = offsetsOf(t, rank);
    std::vector<int32_t> mine(size_t(holders[rank]->elements()), -7);
    // On rank 0 the own part is there before.
    for (size_t i = 0; rank == 0 && i < offsets.size(); ++i)
      mine[i] = whole[offsets[i]];
    if (rank == 0 && offsets.empty() && t.extents.empty())
      mine[0] = whole[0]; // a scalar has its element outside of the mesh too
    tensor.data = whole.data();
    mover.scatter(holders, mine.data(), rank == 0 ? &tensor : nullptr, 4);
    for (size_t i = 0; i < offsets.size(); ++i)
      ASSERT_EQ(mine[i], whole[offsets[i]]) << t.layout.str() << " rank " << rank;
    for (size_t i = 0; i < offsets.size(); ++i)
      mine[i] = int32_t(offsets[i]) * 3;
    tensor.data = back.data();
    mover.gather(writers, mine.data(), rank == 0 ? &tensor : nullptr, 4);
    // An element of each rank is the least that a round can have.
    EXPECT_LE(largest, std::max<size_t>(size_t(t.roundBytes), 4 * t.world));
    if (rank != 0) {
      EXPECT_EQ(packed.size(), 0u);
    }
  });
  for (auto &outcome : outcomes)
    ASSERT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
  EXPECT_EQ(back, wanted) << t.layout.str();
}

Transfer transfer(const Mesh &mesh, const std::string &text, std::vector<int64_t> extents,
                  uint32_t world, int64_t roundBytes) {
  auto parsed = shardc::parseLayout(mesh, text);
  EXPECT_TRUE(parsed) << parsed.error;
  Transfer t{*parsed.value, extents, {}, 1, roundBytes, world};
  t.strides.resize(extents.size());
  // First dim fastest, with a hole behind each row.
  int64_t at = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    t.strides[d] = at;
    at = at * std::max<int64_t>(extents[d], 1) + 1;
  }
  t.memory = size_t(at);
  return t;
}

} // namespace

TEST(RootTensors, EveryRankGetsItsPartAndGivesItBack) {
  Mesh grid({{"dp", 2}, {"tp", 3}}), listed({{"a", 2}, {"b", 2}}, {2, 0, 3, 1}),
      behind({{"a", 2}}, {1, 2});
  for (bool table : {false, true})
    for (int64_t roundBytes : {1, 40, 1 << 20}) {
      for (const char *text :
           {"[R, R]", "[S(0), R]", "[R, S(1)]", "[S(0), S(1)]", "[S(1), S(0)]", "[S(0), S(0)]",
            "[R, S(1, blocks = 3)]", "[S(0), S(1, blocks = 3)]", "[R, S(0, sizes = [4, 0, 1])]"})
        check(transfer(grid, text, {5, 9, 2}, 6, roundBytes), table);
      check(transfer(grid, "[S(0), S(0)]", {1}, 6, roundBytes), table);
      check(transfer(grid, "[S(0), R]", {0, 3}, 6, roundBytes), table);
      check(transfer(grid, "[R, R]", {}, 6, roundBytes), table);
      check(transfer(listed, "[S(0), S(1)]", {5, 3}, 4, roundBytes), table);
      // Ranks 0 and 3 are outside of the mesh.
      check(transfer(behind, "[S(0)]", {5, 3}, 4, roundBytes), table);
      check(transfer(behind, "[R]", {5, 3}, 4, roundBytes), table);
      check(transfer(behind, "[R]", {}, 4, roundBytes), table);
      check(transfer(Mesh({{"a", 1}}), "[S(0)]", {5, 3}, 1, roundBytes), table);
    }
}

TEST(RootTensors, RandomLayoutsAndSizes) {
  std::mt19937 random(12);
  auto upTo = [&](int64_t most) { return int64_t(random() % uint32_t(most + 1)); };
  for (int trial = 0; trial < 150; ++trial) {
    Mesh mesh({{"a", 1 + upTo(2)}, {"b", 1 + upTo(2)}});
    std::vector<int64_t> extents(size_t(1 + upTo(2)));
    for (int64_t &extent : extents)
      extent = upTo(7);
    std::string text = "[";
    for (int axis = 0; axis < 2; ++axis) {
      int64_t dim = upTo(int64_t(extents.size())) - 1;
      text += (axis ? ", " : "") + (dim < 0 ? std::string("R") : "S(" + std::to_string(dim) + ")");
    }
    auto world = uint32_t(mesh.numDevices() + upTo(1));
    SCOPED_TRACE(trial);
    check(transfer(mesh, text + "]", extents, world, 1 + upTo(200)), trial % 2 == 1);
  }
}

TEST(RootTensors, StatementsTravelAndDamagedOnesAreErrors) {
  RootStatement said{"forward", "input 0", SHARDRT_NOT_FOUND, "no such entry", {{4, 6}, {}, {0}}};
  std::string text = said.encode();
  RootStatement got = RootStatement::decode(text, 3);
  EXPECT_EQ(got.entry, said.entry);
  EXPECT_EQ(got.tensors, said.tensors);
  EXPECT_EQ(got.status, said.status);
  EXPECT_EQ(got.reason, said.reason);
  EXPECT_EQ(got.extents, said.extents);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(RootStatement::decode(std::string_view(text).substr(0, length), 3), Failure);
  EXPECT_THROW(RootStatement::decode(text + "x", 3), Failure);
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = text;
    damaged[random() % damaged.size()] = char(random());
    try {
      RootStatement::decode(damaged, 3);
    } catch (const Failure &failure) {
      EXPECT_NE(failure.message.find("rank 3"), std::string::npos);
    }
  }
}

TEST(RootTensors, DifferencesNameRanks) {
  RootStatement a{"forward", "input 0", SHARDRT_OK, "", {}}, b = a, c = a;
  EXPECT_EQ(rootDifferences(std::vector{a, b, c}), "");
  b.tensors = "none";
  EXPECT_EQ(rootDifferences(std::vector{a, b, c}),
            "ranks differ in tensors of SHARDRT_ROOT: input 0 on ranks 0 and 2, none on rank 1");
  c.entry = "columns";
  EXPECT_EQ(rootDifferences(std::vector{a, b, c}),
            "ranks differ in the entry that they run: columns on rank 2, forward on ranks 0 and 1; "
            "tensors of SHARDRT_ROOT: input 0 on ranks 0 and 2, none on rank 1");
}
