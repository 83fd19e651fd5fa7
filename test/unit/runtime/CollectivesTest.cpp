// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every collective, element type, reduction, and kind of shape against a reference that computes
// each element of the output by itself.
#include "test/unit/runtime/CollectiveReference.h"
#include "test/unit/runtime/Ranks.h"

using namespace shardc::rt;
using namespace test;

namespace {

/// Runs all cases, one after the other, in each of the sets (position lists of ranks) at once.
void runCases(const WorldKind &kind, uint32_t world, const std::vector<std::vector<uint32_t>> &sets,
              const std::vector<Case> &cases) {
  std::vector<std::unique_ptr<test::Collective>> collectives;
  // memory[case][set][operand]
  std::vector<std::vector<std::vector<Memory>>> memory(cases.size());
  for (size_t c = 0; c < cases.size(); ++c) {
    std::vector<shardrt_collective_operand> facts;
    for (const OperandCase &o : cases[c].operands)
      facts.push_back({cases[c].type, int32_t(o.extents.size()), o.gatherDim, o.scatterDim});
    collectives.push_back(
        std::make_unique<test::Collective>(cases[c].kind, cases[c].reduction, facts));
    collectives.back()->permute(cases[c].pairs);
    collectives.back()->desc.root = cases[c].root;
    for (size_t s = 0; s < sets.size(); ++s) {
      auto &operands = memory[c].emplace_back(cases[c].operands.size());
      for (size_t o = 0; o < operands.size(); ++o)
        fill({cases[c], cases[c].operands[o], sets[s].size()}, operands[o],
             unsigned(c * 131 + s * 17 + o));
    }
  }
  auto before = memory;
  auto outcomes = kind.run(world, [&](Communicator &end) {
    connectGroups(end, sets);
    for (size_t s = 0; s < sets.size(); ++s) {
      auto found = std::find(sets[s].begin(), sets[s].end(), end.rank());
      if (found == sets[s].end())
        continue;
      auto p = size_t(found - sets[s].begin());
      Group &group = end.group(sets[s]);
      for (size_t c = 0; c < cases.size(); ++c) {
        std::vector<shardrt_collective_tensor> tensors;
        std::vector<std::array<Table, 3>> own(cases[c].operands.size()); // of exchanges
        for (size_t o = 0; o < cases[c].operands.size(); ++o) {
          const OperandCase &operand = cases[c].operands[o];
          Memory &m = memory[c][s][o];
          void *out = m.out[p].data();
          if (cases[c].inPlace) {
            out = m.in[p].data();
          }
          if (operand.isExchange()) {
            Reference reference{cases[c], operand, sets[s].size()};
            own[o] = {reference.inShape(p), reference.arriving(p), reference.leaving(p)};
            bool equal = operand.counts.empty();
            tensors.push_back({m.in[p].data(), out, own[o][0].data(),
                               equal ? nullptr : own[o][1].data(),
                               equal ? nullptr : own[o][2].data()});
            continue;
          }
          tensors.push_back({m.in[p].data(), out, operand.extents.data(),
                             operand.gather.empty() ? nullptr : operand.gather.data(),
                             operand.scatter.empty() ? nullptr : operand.scatter.data()});
        }
        CollectiveCall call;
        std::string problem = call.assign(collectives[c]->desc, group, 1, tensors.data());
        if (!problem.empty())
          throw Failure(SHARDRT_INTERNAL, problem);
        runCollective(end, call, 60);
      }
    }
  });
  for (const test::Outcome &outcome : outcomes)
    ASSERT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
  for (size_t c = 0; c < cases.size(); ++c)
    for (size_t s = 0; s < sets.size(); ++s)
      for (size_t o = 0; o < cases[c].operands.size(); ++o) {
        Memory &result = memory[c][s][o];
        if (cases[c].inPlace)
          result.out = result.in;
        result.in = before[c][s][o].in;
        std::optional<size_t> only;
        if (elsewhere) {
          auto here = std::find(sets[s].begin(), sets[s].end(), elsewhere->own);
          if (here == sets[s].end())
            continue;
          only = size_t(here - sets[s].begin());
        }
        check({cases[c], cases[c].operands[o], sets[s].size()}, result,
              text(cases[c]) + ", set " + std::to_string(s), only);
      }
}

/// Shapes with even, uneven and empty shards for any number of members up to four.
std::vector<Case> movingCases(shardrt_type type, size_t n) {
  auto unevenTable = [&](Table t) {
    t.resize(n, 0);
    return t;
  };
  Table sizes = unevenTable({5, 0, 3, 1});
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  std::vector<Case> cases;
  for (auto [extents, dim] : std::vector<std::pair<Table, int32_t>>{{{8, 3}, 0},
                                                                    {{3, 8}, 1},
                                                                    {{2, 12, 3}, 1},
                                                                    {{7}, 0},
                                                                    {{2, 5, 3}, 1},
                                                                    {{1, 2}, 0},
                                                                    {{0, 4}, 0},
                                                                    {{4, 0}, 0}})
    cases.push_back({SHARDRT_ALL_GATHER, 0, type, {{extents, dim, -1, {}, {}}}});
  cases.push_back({SHARDRT_ALL_GATHER, 0, type, {{{total, 2}, 0, -1, sizes, {}}}});
  cases.push_back(
      {SHARDRT_ALL_GATHER,
       0,
       type,
       {{{3, total}, 1, -1, sizes, {}}, {{6, 2}, 0, -1, {}, {}}, {{5}, 0, -1, {}, {}}}});
  for (auto [extents, g, s] : std::vector<std::tuple<Table, int32_t, int32_t>>{
           {{8, 8}, 0, 1}, {{8, 8}, 1, 0}, {{5, 2, 7}, 0, 2}, {{5, 2, 7}, 2, 0}, {{3, 2, 1}, 1, 2}})
    cases.push_back({SHARDRT_ALL_TO_ALL, 0, type, {{extents, g, s, {}, {}}}});
  cases.push_back(
      {SHARDRT_ALL_TO_ALL, 0, type, {{{total, 3, total}, 2, 0, sizes, unevenTable(sizes)}}});
  // Within one dim: equal pieces, pieces of every size, nothing at all, some of which stay behind.
  Table counts, none(n * n, 0);
  for (size_t i = 0; i < n * n; ++i)
    counts.push_back(int64_t(i * 5 % 4));
  int64_t even = int64_t(n) * 2;
  cases.push_back({SHARDRT_ALL_TO_ALL, 0, type, {{{even}, 0, 0}, {{2, even, 3}, 1, 1}}});
  cases.push_back({SHARDRT_ALL_TO_ALL, 0, type, {{{0}, 0, 0, {}, {}, counts}}});
  cases.push_back({SHARDRT_ALL_TO_ALL,
                   0,
                   type,
                   {{{3, 0, 2}, 1, 1, {}, {}, counts, 2},
                    {{5, 2, 7}, 0, 2, {}, {}},
                    {{0, 4}, 0, 0, {}, {}, counts, 1},
                    {{0, 4}, 0, 0, {}, {}, none, 1},
                    {{2, 0}, 1, 1, {}, {}, none}}});
  cases.push_back({SHARDRT_BROADCAST, 0, type, {{{3, 5}}, {{}}}, uint32_t(n - 1)});
  cases.push_back({SHARDRT_BROADCAST, 0, type, {{{0}}}, 0});
  std::vector<uint32_t> ring;
  for (uint32_t p = 0; p < n; ++p)
    ring.insert(ring.end(), {p, uint32_t((p + 1) % n)});
  cases.push_back({SHARDRT_PERMUTE, 0, type, {{{3, 5}}}, 0, ring});
  cases.push_back({SHARDRT_PERMUTE, 0, type, {{{3, total}, 1, -1, sizes, {}}}, 0, ring});
  cases.push_back({SHARDRT_PERMUTE, 0, type, {{{4}}}, 0, {0, uint32_t(n - 1)}});
  cases.push_back({SHARDRT_ALL_GATHER, 0, type, {}});
  return cases;
}

std::vector<Case> reducingCases(shardrt_type type, size_t n) {
  Table sizes = {2, 0, 4, 1};
  sizes.resize(n, 0);
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  std::vector<Case> cases;
  for (uint32_t reduction = SHARDRT_SUM; reduction <= SHARDRT_PROD; ++reduction) {
    if (type == SHARDRT_BOOL && reduction == SHARDRT_AVG)
      continue;
    cases.push_back({SHARDRT_ALL_REDUCE, reduction, type, {{{7, 5}}, {{}}, {{0, 3}}, {{1000}}}});
    cases.push_back({SHARDRT_ALL_REDUCE, reduction, type, {{{9, 70}}}});
    cases.back().inPlace = true;
    cases.push_back({SHARDRT_REDUCE_SCATTER, reduction, type, {{{8, 3}, -1, 0, {}, {}}}});
    cases.push_back(
        {SHARDRT_REDUCE_SCATTER,
         reduction,
         type,
         {{{3, 5, 2}, -1, 1, {}, {}}, {{total, 3}, -1, 0, {}, sizes}, {{1}, -1, 0, {}, {}}}});
  }
  return cases;
}

void everything(const WorldKind &kind, uint32_t world,
                const std::vector<std::vector<uint32_t>> &sets) {
  const std::vector<shardrt_type> some = {SHARDRT_F32, SHARDRT_BF16, SHARDRT_I64, SHARDRT_BOOL};
  size_t n = sets.front().size();
  for (shardrt_type type : kind.slow &&n != 4 ? some : test::allTypes()) {
    std::vector<Case> cases = movingCases(type, n), reducing = reducingCases(type, n);
    cases.insert(cases.end(), reducing.begin(), reducing.end());
    runCases(kind, world, sets, cases);
  }
}

} // namespace

TEST_P(Collectives, WorldOfFour) { everything(GetParam(), 4, {{0, 1, 2, 3}}); }
TEST_P(Collectives, TwoAxes) { everything(GetParam(), 4, {{0, 1}, {2, 3}}); }
TEST_P(Collectives, IrregularGroups) { everything(GetParam(), 6, {{4, 0, 2}, {1, 5, 3}}); }
TEST_P(Collectives, SomeRanksOutside) { everything(GetParam(), 5, {{3, 1}}); }
TEST_P(Collectives, GroupsOfOne) { everything(GetParam(), 2, {{0}, {1}}); }
TEST_P(Collectives, ARankInTwoGroupsInTurn) {
  runCases(GetParam(), 4, {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {0, 1, 2, 3}},
           {{SHARDRT_ALL_REDUCE, SHARDRT_SUM, SHARDRT_F32, {{{33}}}}});
}

TEST_P(Collectives, LargeBuffersAreWholeAndExact) {
  runCases(GetParam(), 3, {{0, 1, 2}},
           {{SHARDRT_ALL_REDUCE, SHARDRT_SUM, SHARDRT_BF16, {{{301, 257}}}},
            {SHARDRT_REDUCE_SCATTER, SHARDRT_MAX, SHARDRT_F32, {{{77, 303}, -1, 1, {}, {}}}},
            {SHARDRT_ALL_TO_ALL, 0, SHARDRT_I32, {{{65, 7, 65}, 0, 2, {}, {}}}}});
}
