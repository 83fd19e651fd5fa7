// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks do over peer access, done here in memory of the host, against what ranks on the host
// do.
#include "runtime/device/PeerPlan.h"
#include "runtime/comm/Reduce.h"
#include "runtime/comm/Share.h"
#include "runtime/support/Types.h"
#include "test/unit/runtime/Ranks.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

using namespace shardc::rt;

namespace {

void copy(const shardrt_peer_copy &c) {
  for (uint64_t slab = 0; slab < c.slabs; ++slab)
    for (uint64_t row = 0; row < c.rows; ++row)
      std::memcpy(static_cast<char *>(c.to) + slab * c.to_slab + row * c.to_pitch,
                  static_cast<const char *>(c.from) + slab * c.from_slab + row * c.from_pitch,
                  c.bytes);
}

void reduce(const shardrt_peer_reduction &r) {
  for (uint64_t row = 0; row < r.rows; ++row) {
    std::vector<const void *> sources;
    std::vector<void *> results;
    for (uint32_t q = 0; q < r.n_sources; ++q)
      sources.push_back(static_cast<const char *>(r.sources[q]) + row * r.source_pitch);
    for (uint32_t q = 0; q < r.n_results; ++q)
      results.push_back(static_cast<char *>(r.results[q]) + row * r.result_pitch);
    reduceFunction(shardrt_type(r.type), r.reduction)(sources, results, r.count);
  }
}

/// Random sizes of the parts of a dim, some of them 0.
std::vector<int64_t> parts(uint32_t n, std::mt19937 &random) {
  std::vector<int64_t> all(n);
  for (int64_t &one : all)
    one = int64_t(random() % 4);
  return all;
}

struct Member {
  Group group;
  std::vector<uint8_t> in, out, expected;
  CollectiveCall call, reference;
  std::vector<int64_t> extents, gather, scatter;
  Member(std::vector<uint32_t> members, uint32_t position) : group(std::move(members), position) {}
};

} // namespace

// Random collectives of all kinds over up to four dims.
TEST(PeerPlan, MovesWhatRanksOnTheHostMove) {
  std::mt19937 random(20);
  for (int round = 0; round < 3000; ++round) {
    const uint32_t n = 1 + random() % 4, kind = SHARDRT_ALL_GATHER + random() % 6;
    const auto rank = int32_t(1 + random() % 4);
    const bool gathers = kind == SHARDRT_ALL_GATHER || kind == SHARDRT_ALL_TO_ALL;
    const bool scatters = kind == SHARDRT_REDUCE_SCATTER || kind == SHARDRT_ALL_TO_ALL;
    const bool reduces = kind == SHARDRT_REDUCE_SCATTER || kind == SHARDRT_ALL_REDUCE;
    const shardrt_type type = random() % 2 ? SHARDRT_BF16 : SHARDRT_I32;
    const int32_t gatherDim = gathers ? int32_t(random() % uint32_t(rank)) : -1;
    const int32_t scatterDim = scatters ? int32_t(random() % uint32_t(rank)) : -1;
    const bool exchange = gathers && gatherDim == scatterDim;
    test::Collective collective(kind, reduces ? SHARDRT_SUM : SHARDRT_REDUCE_NONE,
                                {{type, rank, gatherDim, scatterDim}});
    collective.desc.root = random() % n;
    if (kind == SHARDRT_PERMUTE && n > 1)
      collective.permute({0, n - 1});
    std::vector<int64_t> extents(static_cast<size_t>(rank));
    for (int64_t &extent : extents)
      extent = int64_t(random() % 4);
    const std::vector<int64_t> gather = parts(n, random), scatter = parts(n, random);
    auto sum = [](const std::vector<int64_t> &all) {
      return std::accumulate(all.begin(), all.end(), int64_t(0));
    };
    if (gathers && !exchange)
      extents[size_t(gatherDim)] = sum(gather);
    if (scatters && !exchange)
      extents[size_t(scatterDim)] = sum(scatter);
    std::vector<std::vector<int64_t>> counts; // from, to
    for (uint32_t q = 0; q < n; ++q)
      counts.push_back(parts(n, random));
    std::vector<uint32_t> ranks(n);
    std::iota(ranks.begin(), ranks.end(), 0u);
    std::vector<std::unique_ptr<Member>> members;
    for (uint32_t q = 0; q < n; ++q) {
      members.push_back(std::make_unique<Member>(ranks, q));
      Member &m = *members.back();
      m.extents = extents;
      m.gather = gather;
      m.scatter = scatter;
      if (exchange) {
        m.scatter = counts[q];
        m.extents[size_t(gatherDim)] = sum(counts[q]);
        for (uint32_t p = 0; p < n; ++p)
          m.gather[p] = counts[p][q];
      }
      uint8_t unused = 0;
      shardrt_collective_tensor tensor{&unused, &unused, m.extents.data(),
                                       gathers ? m.gather.data() : nullptr,
                                       scatters ? m.scatter.data() : nullptr};
      ASSERT_EQ(m.call.assign(collective.desc, m.group, 1, &tensor), "") << round;
      m.reference = m.call;
      const CallOperand &o = m.call.operands[0];
      const auto width = size_t(o.elementBytes);
      m.in.resize(size_t(o.inElements(q)) * width + 1);
      for (uint8_t &byte : m.in)
        byte = uint8_t(random() % 120); // no NaN
      m.out.assign(size_t(o.outElements(q, collective.desc)) * width + 1, 0xee);
      m.expected = m.out;
      m.call.operands[0].in = m.reference.operands[0].in = m.in.data();
      m.call.operands[0].out = m.out.data();
      m.reference.operands[0].out = m.expected.data();
    }
    std::vector<const CollectiveCall *> calls, references;
    for (const auto &member : members) {
      calls.push_back(&member->call);
      references.push_back(&member->reference);
    }
    for (uint32_t q = 0; q < n; ++q) {
      performShare(references, q);
      PeerPlan plan = planPeerShare(calls, q);
      for (const shardrt_peer_copy &one : plan.copies)
        copy(one);
      for (const shardrt_peer_reduction &one : plan.reductions)
        reduce(one);
      for (const PeerPlan::Zeros &zeros : plan.zeros)
        std::memset(zeros.to, 0, zeros.bytes);
    }
    for (uint32_t q = 0; q < n; ++q)
      ASSERT_EQ(members[q]->out, members[q]->expected)
          << "round " << round << ", kind " << kind << ", member " << q << " of " << n;
  }
}

// A shard of an all-gather that lies where it goes is not copied.
TEST(PeerPlan, WhatIsAtItsPlaceStays) {
  test::Collective collective(SHARDRT_ALL_GATHER, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 1, 0, -1}});
  std::vector<float> data[2] = {{1, 2}, {3, 4}};
  CollectiveCall calls[2];
  Group groups[2] = {{{0, 1}, 0}, {{0, 1}, 1}};
  const int64_t extent = 2;
  for (uint32_t q = 0; q < 2; ++q) {
    shardrt_collective_tensor tensor{&data[q][q], data[q].data(), &extent, nullptr, nullptr};
    ASSERT_EQ(calls[q].assign(collective.desc, groups[q], 1, &tensor), "");
  }
  const CollectiveCall *both[] = {&calls[0], &calls[1]};
  EXPECT_EQ(planPeerShare(both, 0).copies.size(), 1u);
  EXPECT_EQ(planPeerShare(both, 0).copies[0].from, &data[1][1]);
}
