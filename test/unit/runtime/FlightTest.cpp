// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The records that failing ranks leave, and shard-run's report about them.
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/Command.h"

using namespace test;
using shardrt::view;

namespace {

void expectContains(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

class Flight : public ::testing::Test {
protected:
  Folder folder;
  std::string records = folder.file("records");
  Flight() { writeSafetensors(folder.file("w.safetensors"), parameterFile()); }

  Finished postmortem(const std::string &more = "") {
    return runCommand(folder, "'" SHARD_RUN "' --postmortem '" + records + "' " + more);
  }
  /// The entry `slow`, in which rank 3 sleeps for longer than rank 1 waits. Ranks 0 and 2 need
  /// neither, and wait in the barrier before the second step.
  Finished runSlow() {
    writeSafetensors(folder.file("rank"),
                     {{"rank", stored<int64_t>("I64", {1}, {sleeper(3, 6000)})}});
    return runCommand(folder,
                      "'" SHARD_RUN "' '" HAND_ARTIFACT "' --weights '" +
                          folder.file("w.safetensors") + "' --inputs '" + folder.file("rank") +
                          "' --entry slow --steps 2 --timeout 2 --flight-record '" + records + "'");
  }
};

} // namespace

TEST_F(Flight, ASlowRankIsSeenInTheRecords) {
  Finished done = runSlow();
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"it did not complete within 2 s"});
  for (int rank = 0; rank < world; ++rank)
    EXPECT_NE(contents(records + "/rank-" + std::to_string(rank) + ".json"), "") << rank;
  Finished text = postmortem();
  EXPECT_EQ(text.status, 0) << text.err;
  expectContains(text.out,
                 {"hand: a world of 4, with records of ranks 0 to 3", "first failure: rank ",
                  ", run 1, ", "rank 1 (pid ", "in all_reduce.1 (total (model.py:8)) for ",
                  "last seen in linear (fc (model.py:7))",
                  "rank 3 had begun 0 collectives of ranks 1 and 3, others 1: it had not "
                  "come to all_reduce.1 (total (model.py:8))"});
  EXPECT_EQ(text.out.find("\nmissing: "), std::string::npos) << text.out;
  Finished json = postmortem("--format json");
  EXPECT_EQ(json.status, 0);
  expectContains(json.out, {"\"world_size\": 4", "\"missing\": []", "\"first_failure\": ",
                            "\"disagreement\": null", "\"begun\": 0, \"most_begun\": 1"});
}

TEST_F(Flight, MissingCorruptAndForeignFiles) {
  EXPECT_EQ(runSlow().status, 1);
  std::filesystem::remove(records + "/rank-0.json");
  std::ofstream(records + "/rank-2.json") << "{\"format\": ";
  std::ofstream(records + "/other.json") << "[]";
  Finished done = postmortem();
  EXPECT_EQ(done.status, 1) << "some files could not be read";
  expectContains(done.err, {"rank-2.json: it is not JSON", "other.json: it is no flight record"});
  expectContains(done.out,
                 {"with records of ranks 1 and 3", "missing: ranks 0 and 2", "rank 3 had begun 0"});
  records = folder.file("nowhere");
  done = postmortem();
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"nowhere: cannot read"});
  records = folder.path.string();
  expectContains(postmortem().err, {"there is no flight record"});
}

TEST_F(Flight, WhatCannotBeWrittenIsAWarningBesideTheError) {
  records = "/dev/null/records";
  Finished done = runSlow();
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"warning: no flight record: /dev/null/records", "did not complete"});
}

TEST_F(Flight, ARunThatSucceedsLeavesNothing) {
  writeSafetensors(folder.file("in"), {{"x", stored<float>("F32", {7, depth}, inputRows(7))}});
  Finished done = runCommand(folder, "'" SHARD_RUN "' '" HAND_ARTIFACT "' --weights '" +
                                         folder.file("w.safetensors") + "' --inputs '" +
                                         folder.file("in") + "' --flight-record '" + records + "'");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_FALSE(std::filesystem::exists(records));
}
