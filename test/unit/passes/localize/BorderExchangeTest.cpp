// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/BorderExchange.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>
#include <set>

using namespace shardc;

namespace {

struct Sliding {
  int64_t size, count, origin, stride, extent;
  std::vector<int64_t> elementShards, positionShards;

  bool covers(int64_t position, int64_t element) const {
    int64_t begin = origin + position * stride;
    return begin <= element && element < begin + extent;
  }
};

/// The rank of each index of shards in a row.
std::vector<int64_t> ownersOf(const std::vector<int64_t> &shards) {
  std::vector<int64_t> owners;
  for (size_t rank = 0; rank < shards.size(); ++rank)
    owners.insert(owners.end(), static_cast<size_t>(shards[rank]), static_cast<int64_t>(rank));
  return owners;
}

Run hull(const std::set<int64_t> &indices) {
  return indices.empty() ? Run{} : Run{*indices.begin(), *indices.rbegin() + 1};
}

/// What a rank has, covers and touches, element by element.
std::vector<BorderRank> ranksOf(const Sliding &sliding) {
  std::vector<int64_t> elements = ownersOf(sliding.elementShards),
                       positions = ownersOf(sliding.positionShards);
  std::vector<BorderRank> ranks;
  for (int64_t rank = 0; rank < static_cast<int64_t>(sliding.elementShards.size()); ++rank) {
    std::set<int64_t> ownElements, ownPositions, covered, touched;
    for (int64_t p = 0; p < sliding.count; ++p)
      for (int64_t e = 0; e < sliding.size; ++e) {
        if (positions[p] == rank)
          ownPositions.insert(p);
        if (elements[e] == rank)
          ownElements.insert(e);
        if (sliding.covers(p, e) && positions[p] == rank)
          covered.insert(e);
        if (sliding.covers(p, e) && elements[e] == rank)
          touched.insert(p);
      }
    ranks.push_back({hull(ownElements), hull(ownPositions), hull(covered), hull(touched)});
  }
  return ranks;
}

std::vector<int64_t> randomShards(std::mt19937 &random, int64_t size, size_t ranks) {
  std::vector<int64_t> shards(ranks);
  for (int64_t i = 0; i < size; ++i)
    ++shards[random() % ranks];
  return shards;
}

Sliding randomSliding(std::mt19937 &random) {
  auto number = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  size_t ranks = static_cast<size_t>(number(2, 5));
  Sliding sliding{number(1, 20), number(1, 12), -number(0, 3), number(1, 3), number(1, 7), {}, {}};
  sliding.elementShards = randomShards(random, sliding.size, ranks);
  sliding.positionShards = randomShards(random, sliding.count, ranks);
  return sliding;
}

/// All ranks in one group.
std::vector<BorderNeed> needsOf(const std::vector<BorderRank> &ranks) {
  std::vector<int64_t> all;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    all.push_back(static_cast<int64_t>(rank));
  return borderNeeds(ranks, std::vector<std::vector<int64_t>>{all});
}

/// A random exchange between ranks that are all in one group.
struct Trial {
  explicit Trial(std::mt19937 &random)
      : sliding(randomSliding(random)), ranks(ranksOf(sliding)), needs(needsOf(ranks)) {}

  Sliding sliding;
  std::vector<BorderRank> ranks;
  std::vector<BorderNeed> needs;
};

/// Whatever sides send sums: each element under a position is added once, by its owner's sum or by
/// the owner of the position, which has it or fetches it.
TEST(BorderExchange, EveryElementUnderAPositionCountsOnce) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    auto [sliding, ranks, needs] = Trial(random);
    std::vector<BorderSums> sums;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      sums.push_back({random() % 2 == 0, random() % 2 == 0});
    std::vector<int64_t> elements = ownersOf(sliding.elementShards),
                         positions = ownersOf(sliding.positionShards);
    auto isIn = [](struct Run run, int64_t index) { return run.begin <= index && index < run.end; };
    for (int64_t p = 0; p < sliding.count; ++p)
      for (int64_t e = 0; e < sliding.size; ++e) {
        if (!sliding.covers(p, e))
          continue;
        int64_t source = elements[e], owner = positions[p];
        int counted = source == owner;
        for (const BorderNeed &need : needs)
          if (need.source == source && need.owner == owner && !sums[source].covers(need))
            counted += isIn(ranks[owner].covered, e);
        counted += sums[source].before && isIn(ranks[source].before(), p);
        counted += sums[source].behind && isIn(ranks[source].behind(), p);
        ASSERT_EQ(counted, 1) << "position " << p << ", element " << e << ", trial " << trial;
      }
  }
}

TEST(BorderExchange, TrafficIsWhatRanksGetAndGive) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 1000; ++trial) {
    auto [sliding, ranks, needs] = Trial(random);
    std::vector<double> three(ranks.size(), 3), two(ranks.size(), 2);
    std::vector<BorderSums> sums = cheapestSums(needs, three, two);
    std::vector<double> got(ranks.size()), given(ranks.size());
    for (size_t source = 0; source < ranks.size(); ++source)
      for (bool isBehind : {false, true}) {
        double fetched = 0, summed = 0;
        std::vector<std::pair<size_t, std::pair<double, double>>> of;
        for (size_t owner = 0; owner < ranks.size(); ++owner) {
          const BorderRank &to = ranks[owner], &from = ranks[source];
          bool behind = to.positions.begin >= from.positions.end;
          if (owner == source || to.positions.size() == 0 || behind != isBehind)
            continue;
          double elements = 0, positions = 0;
          for (int64_t e = from.elements.begin; e < from.elements.end; ++e)
            elements += to.covered.begin <= e && e < to.covered.end;
          for (int64_t p = to.positions.begin; p < to.positions.end; ++p)
            positions += from.touched.begin <= p && p < from.touched.end;
          fetched += 3 * elements;
          summed += 2 * positions;
          of.push_back({owner, {3 * elements, 2 * positions}});
        }
        bool isSum = summed < fetched;
        ASSERT_EQ(isBehind ? sums[source].behind : sums[source].before, isSum);
        for (auto &[owner, numbers] : of) {
          got[owner] += isSum ? numbers.second : numbers.first;
          given[source] += isSum ? numbers.second : numbers.first;
        }
      }
    BorderTraffic traffic(ranks.size());
    traffic.addElements(needs, sums, three);
    traffic.addSums(needs, sums, two);
    EXPECT_EQ(traffic.most(), std::max(*std::max_element(got.begin(), got.end()),
                                       *std::max_element(given.begin(), given.end())));
  }
}

TEST(BorderExchange, OnlyRanksOfAGroupNeedSomething) {
  // Two groups of two ranks, each with halves of 8 elements under windows of 3.
  BorderRank first{{0, 4}, {0, 4}, {0, 5}, {0, 5}}, second{{4, 8}, {4, 8}, {3, 8}, {3, 8}};
  std::vector<BorderNeed> needs = borderNeeds(std::vector<BorderRank>{first, second, first, second},
                                              std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}});
  ASSERT_EQ(needs.size(), 4U);
  for (const BorderNeed &need : needs) {
    EXPECT_EQ(need.source / 2, need.owner / 2);
    EXPECT_EQ(need.elements, 1);
    EXPECT_EQ(need.positions, 1);
    EXPECT_EQ(need.isBehind, need.owner > need.source);
  }
}

} // namespace
