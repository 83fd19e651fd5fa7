// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flight records as files, and what those of all ranks say together.
#include "runtime/flight/Postmortem.h"
#include "test/unit/runtime/Files.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;

namespace {

constexpr int64_t failedUs = 1800000000000000;

/// A collective of run 7 whose times are in ms from the failure.
FlightCollective collective(const std::string &name, FlightMembers members, uint64_t sequence,
                            int64_t begin, std::optional<int64_t> end) {
  FlightCollective c;
  c.name = name;
  c.location = "layer (model.py:1)";
  c.kind = name.substr(0, name.find('.'));
  c.members = std::move(members);
  c.sequence = sequence;
  c.run = 7;
  c.bytes = 64;
  c.beginUs = failedUs + begin * 1000;
  if (end)
    c.endUs = failedUs + *end * 1000;
  c.status = end ? "ok" : "";
  return c;
}

FlightRecord record(uint32_t rank, const std::string &status, int64_t writtenMs,
                    std::vector<FlightCollective> collectives) {
  FlightRecord r;
  r.rank = rank;
  r.worldSize = 4;
  r.host = "node" + std::to_string(rank / 2);
  r.pid = 100 + rank;
  r.world = "w1";
  r.artifact = "mlp";
  r.artifactHash = "h";
  r.run = 7;
  r.writtenUs = failedUs + writtenMs * 1000;
  r.status = status;
  r.message = "because of \"this\"\nand that";
  for (const FlightCollective &c : collectives) {
    auto group = std::ranges::find(r.groups, c.members, &FlightGroup::members);
    if (group == r.groups.end())
      r.groups.push_back({c.members, c.sequence});
    else
      group->begun = c.sequence;
  }
  r.collectives = std::move(collectives);
  return r;
}

std::optional<Postmortem> merge(std::vector<FlightRecord> records,
                                std::vector<std::string> *problems = nullptr) {
  std::vector<NamedRecord> named;
  for (FlightRecord &r : records)
    named.push_back({"f" + std::to_string(named.size()), std::move(r)});
  std::vector<std::string> own;
  return mergeRecords(std::move(named), problems ? *problems : own);
}

const FlightMembers all{0, 1, 2, 3}, left{0, 1}, right{2, 3};

} // namespace

TEST(FlightRecord, TextReadsBack) {
  FlightRecord r = record(3, "timeout", 0,
                          {collective("all_reduce.0", all, 4, -20, -10),
                           collective("all_gather.1", right, 9, -5, std::nullopt)});
  r.op = "linear\t";
  r.opLocation = "a\\b";
  std::string problem;
  std::optional<FlightRecord> got = FlightRecord::parse(r.json(), problem);
  ASSERT_TRUE(got) << problem;
  EXPECT_EQ(*got, r);
}

TEST(FlightRecord, DamagedTextsAreNamedErrors) {
  std::string text = record(3, "timeout", 0, {collective("all_reduce.0", all, 4, -20, -10)}).json(),
              problem;
  for (size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_FALSE(FlightRecord::parse(text.substr(0, length), problem)) << length;
    EXPECT_FALSE(problem.empty());
  }
  std::pair<std::string, std::string> changes[] = {
      {"\"rank\": 3", "\"rank\": 4"},
      {"\"rank\": 3", "\"rank\": \"3\""},
      {"\"world_size\": 4", "\"world_size\": 99999999"},
      {"\"ranks\": [0, 1, 2, 3]", "\"ranks\": [0, 1, 2, 9]"},
      {"\"collectives\": [", "\"others\": ["},
      {"\"version\": 1", "\"version\": 2"},
      {"flight record", "something else"}};
  for (auto &[from, to] : changes) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    EXPECT_FALSE(FlightRecord::parse(changed, problem)) << to;
    EXPECT_FALSE(problem.empty());
  }
  std::mt19937 random(3);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string changed = text;
    changed[random() % changed.size()] = char(random());
    if (auto got = FlightRecord::parse(changed, problem))
      merge({*got}); // whatever it says, nothing breaks
  }
}

TEST(FlightRecord, FilesAreWrittenAndReadAndOthersAreNamed) {
  test::Folder folder;
  std::string records = folder.file("records");
  FlightRecord a = record(0, "timeout", 0, {}), b = record(2, "aborted", 1, {});
  EXPECT_EQ(a.write(records), "");
  EXPECT_EQ(b.write(records), "");
  std::ofstream(records + "/notes.txt") << "not looked at";
  std::ofstream(records + "/cut.json") << a.json().substr(0, 50);
  std::ofstream(records + "/other.json") << "{\"a\": 1}";
  std::vector<std::string> problems;
  std::vector<NamedRecord> read = readRecords(records, problems);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].record, a);
  EXPECT_EQ(read[1].record, b);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("cut.json: it is not JSON"), std::string::npos) << problems[0];
  EXPECT_NE(problems[1].find("other.json: it is no flight record"), std::string::npos);
  problems.clear();
  EXPECT_TRUE(readRecords(folder.file("nowhere"), problems).empty());
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("nowhere: cannot read"), std::string::npos);
  // What cannot be written says why, and leaves nothing behind.
  std::string problem = a.write(folder.file("no/folder"));
  EXPECT_NE(problem.find("cannot make the folder"), std::string::npos) << problem;
  problem = a.write(records + "/notes.txt");
  EXPECT_NE(problem.find("cannot create"), std::string::npos) << problem;
}

TEST(FlightRecord, AFullDiskIsAnError) {
  // Of any size: the write, or the close, fails.
  test::Folder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("rank-0.json.tmp100"));
  FlightRecord r = record(0, "timeout", 0, {});
  std::string problem = r.write(folder.path.string());
  EXPECT_NE(problem.find("cannot write: No space left"), std::string::npos) << problem;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path)) << "the temporary file is gone";
}

TEST(Postmortem, TellsWhoWasWhereAndWhoIsBehind) {
  // Rank 2 computes for long; rank 3 was killed. Rank 2 comes to the collective when all is over.
  FlightRecord slow = record(
      2, "aborted", 500,
      {collective("all_reduce.0", all, 4, -90, -80), collective("all_reduce.1", all, 5, 499, 500)});
  slow.collectives.back().status = "aborted";
  slow.op = "softmax";
  FlightRecord told = record(
      1, "aborted", -1,
      {collective("all_reduce.0", all, 4, -90, -80), collective("all_reduce.1", all, 5, -60, -1)});
  told.collectives.back().status = "aborted";
  FlightRecord first = record(0, "timeout", 0,
                              {collective("all_gather.2", left, 1, -95, -93),
                               collective("all_reduce.0", all, 4, -92, -80),
                               collective("all_reduce.1", all, 5, -70, std::nullopt)});
  auto merged = merge({slow, told, first});
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->missing, (std::vector<uint32_t>{3}));
  EXPECT_EQ(merged->records[merged->first].rank, 0u) << "rank 1's clock is a little behind";
  EXPECT_EQ(merged->whereabouts(*merged->of(0)),
            "in all_reduce.1 (layer (model.py:1)) for 0.070 s");
  EXPECT_EQ(merged->whereabouts(*merged->of(2)),
            "last seen in softmax, after all_reduce.0 (layer (model.py:1)) of run 7; it came to "
            "all_reduce.1 (layer (model.py:1)) 0.499 s after the failure");
  ASSERT_EQ(merged->behind.size(), 2u);
  EXPECT_EQ(merged->behind[0].rank, 1u);
  EXPECT_EQ(merged->behind[0].members, left);
  EXPECT_EQ(merged->behind[0].begun, 0u);
  EXPECT_EQ(merged->behind[1].rank, 2u);
  EXPECT_EQ(merged->behind[1].begun, 4u);
  EXPECT_EQ(merged->behind[1].mostBegun, 5u);
  EXPECT_EQ(merged->behind[1].next, "all_reduce.1 (layer (model.py:1))");
  EXPECT_FALSE(merged->disagreement);
  ASSERT_EQ(merged->calls.size(), 3u);
  EXPECT_EQ(merged->calls[0].text(), "all_gather.2 (layer (model.py:1))");
  EXPECT_EQ(merged->calls[2].ranks.size(), 3u);
}

TEST(Postmortem, FindsTheFirstDisagreement) {
  auto merged = merge({record(0, "mismatch", 0,
                              {collective("all_reduce.0", left, 1, -9, -8),
                               collective("all_reduce.1", left, 2, -7, -6),
                               collective("all_reduce.2", left, 3, -5, -4)}),
                       record(1, "mismatch", 0,
                              {collective("all_reduce.0", left, 1, -9, -8),
                               collective("all_gather.5", left, 2, -7, -6),
                               collective("all_reduce.9", left, 3, -5, -4)})});
  ASSERT_TRUE(merged && merged->disagreement);
  EXPECT_EQ(merged->calls[*merged->disagreement].sequence, 2u);
  EXPECT_TRUE(merged->behind.empty());
}

TEST(Postmortem, LeavesOutOldLaunchesAndSecondRecords) {
  FlightRecord old = record(1, "timeout", -5000, {}), newest = record(0, "timeout", 0, {}),
               twice = record(0, "timeout", -1, {}), larger = record(2, "timeout", 0, {});
  old.world = "w0";
  larger.worldSize = 8;
  std::vector<std::string> problems;
  auto merged = merge({old, newest, twice, larger}, &problems);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->records.size(), 1u);
  EXPECT_EQ(merged->records[0], newest);
  EXPECT_EQ(merged->missing, (std::vector<uint32_t>{1, 2, 3}));
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0], "f2: rank 0 has another record, which is newer");
  EXPECT_EQ(problems[1], "f0: rank 1 of another launch, which is left out");
  EXPECT_EQ(problems[2], "f3: rank 2 is of a world of 8 ranks, others are of 4");
  EXPECT_FALSE(merge({}));
}
