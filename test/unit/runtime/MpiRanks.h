// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests whose ranks are processes that a launcher of MPI starts. A test that asks for a world runs
// its own binary under the launcher, for itself alone: each process is one rank of that world and
// runs the same test, which ends here as soon as they have.
#ifndef SHARDC_TEST_UNIT_RUNTIME_MPIRANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_MPIRANKS_H

#include "runtime/control/TcpControlPlane.h"
#include "runtime/process/PluginCommunicator.h"
#include "test/unit/runtime/Command.h"
#include "test/unit/runtime/Ranks.h"

namespace test {

/// A launcher, and the plugin of its MPI.
struct Mpi {
  std::string name;     ///< of the tests
  std::string plugin;   ///< "openmpi"
  std::string launcher; ///< its program
  std::string options;
  std::string
      recovery; ///< the option that leaves the others alone when a rank dies; empty: none does
  std::string library; ///< folder of the MPI that ranks use; empty: the one of the system
};

/// Of the process that a launcher started for a test.
class MpiRank {
public:
  /// Nothing in the process that was started by a person or a script.
  static std::optional<uint32_t> own() {
    for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"})
      if (const char *value = std::getenv(name); value && std::getenv("SHARDRT_TEST_FOLDER"))
        return uint32_t(std::atoi(value));
    return std::nullopt;
  }

  static shardc::rt::LoadedPlugin plugin(const std::string &name) {
    return shardc::rt::loadPlugin(name, [](const char *variable) {
      return variable == std::string("SHARDRT_PLUGIN_PATH") ? std::optional<std::string>(PLUGINS)
                                                            : std::nullopt;
    });
  }

  /// The ends of a world, of which one is in this process.
  static std::vector<std::unique_ptr<shardc::rt::Communicator>> ends(const Mpi &mpi,
                                                                     uint32_t world) {
    static int worlds = 0, outcomes = 0;
    uint32_t rank = *own();
    shardc::rt::ControlOptions options;
    options.rank = rank;
    options.worldSize = world;
    options.job = std::string(std::getenv("SHARDRT_TEST_JOB")) + "-" + std::to_string(++worlds);
    options.timeoutSeconds = 60;
    elsewhere = {rank, [rank](std::vector<Outcome> &all) { share(rank, ++outcomes, all); }};
    std::vector<std::unique_ptr<shardc::rt::Communicator>> ends(world);
    ends[rank] = shardc::rt::makePluginEnd(shardc::rt::joinControlPlane(options),
                                           plugin(mpi.plugin), shardc::rt::deadlineAfter(60));
    return ends;
  }

  /// A file of all ranks of the test.
  static std::string file(const std::string &name, uint32_t rank) {
    return std::string(std::getenv("SHARDRT_TEST_FOLDER")) + "/" + name + "." +
           std::to_string(rank);
  }
  static void write(const std::string &name, uint32_t rank, const std::string &text) {
    std::string path = file(name, rank), temporary = path + ".new";
    std::ofstream(temporary, std::ios::binary) << text;
    std::filesystem::rename(temporary, path);
  }
  /// Waits for a file of each rank.
  static std::vector<std::string> readAll(const std::string &name, size_t world) {
    std::vector<std::string> texts;
    for (uint32_t rank = 0; rank < world; ++rank) {
      for (int i = 0; i < 6000 && !std::filesystem::exists(file(name, rank)); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      texts.push_back(contents(file(name, rank)));
    }
    return texts;
  }

  /// Tells the process that started the ranks how the test went here, and ends this one when all
  /// have: ranks of a world that failed cannot end MPI.
  class Ending : public ::testing::Environment {
    void TearDown() override {
      if (!elsewhere)
        return;
      bool failed = ::testing::UnitTest::GetInstance()->Failed();
      write("ended", elsewhere->own, failed ? "failed" : "passed");
      if (std::getenv("SHARDRT_TEST_OWN_END"))
        return;
      readAll("ended", worldSize());
      if (!worldFailed)
        return;
      std::fflush(nullptr);
      std::_Exit(failed);
    }
  };

private:
  static inline bool worldFailed = false;

  static size_t worldSize() { return size_t(std::atoi(std::getenv("SHARDRT_TEST_WORLD"))); }

  static void share(uint32_t own, int number, std::vector<Outcome> &all) {
    std::string name = "outcome" + std::to_string(number);
    write(name, own, std::to_string(all[own].status) + "\n" + all[own].message);
    std::vector<std::string> texts = readAll(name, all.size());
    for (const std::string &text : texts)
      worldFailed |= text.rfind("0\n", 0) != 0;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      size_t line = texts[rank].find('\n');
      if (line == std::string::npos)
        all[rank] = {SHARDRT_INTERNAL, "the process of the rank said nothing"};
      else
        all[rank] = {std::atoi(texts[rank].c_str()), texts[rank].substr(line + 1)};
    }
  }
};

/// Runs the current test under the launcher, for ranks that see the variables too.
inline void runUnder(const Mpi &mpi, uint32_t world, const std::string &options = "",
                     const std::string &variables = "") {
  static int launches = 0;
  const ::testing::TestInfo &test = *::testing::UnitTest::GetInstance()->current_test_info();
  Folder folder;
  folder.path += "-" + std::to_string(++launches);
  std::filesystem::create_directories(folder.path);
  std::string self = std::filesystem::read_symlink("/proc/self/exe");
  std::string job = folder.path.filename().string();
  // A time limit of its own: a launcher may wait for ever for ranks that do not end.
  std::string command = "timeout -k 5 150 env SHARDRT_TEST_FOLDER='" + folder.path.string() +
                        "' SHARDRT_TEST_JOB='" + job +
                        "' SHARDRT_TEST_WORLD=" + std::to_string(world) + " " + variables;
  if (!mpi.library.empty())
    command += " LD_LIBRARY_PATH='" + mpi.library + "'";
  command += " '" + mpi.launcher + "' " + mpi.options + " " + options + " -n " +
             std::to_string(world) + " '" + self + "' --gtest_brief=1 --gtest_filter='" +
             test.test_suite_name() + "." + test.name() + "'";
  Finished finished = runCommand(folder, command);
  for (uint32_t rank = 0; rank < world; ++rank)
    EXPECT_EQ(contents(folder.file("ended." + std::to_string(rank))), "passed")
        << "rank " << rank << " of " << world << "; " << mpi.launcher << " ended with "
        << finished.status << ":\n"
        << finished.out << finished.err;
  std::filesystem::remove_all(folder.path);
}

/// Ends the current test here, without a failure of its own.
[[noreturn]] inline void endTestHere() {
  throw ::testing::AssertionException(
      ::testing::TestPartResult(::testing::TestPartResult::kSuccess, nullptr, 0, ""));
}

inline bool launcherExists(const Mpi &mpi) {
  return std::system(("command -v '" + mpi.launcher + "' >/dev/null").c_str()) == 0;
}

inline WorldKind mpiWorlds(const Mpi &mpi) {
  WorldKind kind{mpi.name, [mpi](uint32_t world) {
                   if (MpiRank::own())
                     return MpiRank::ends(mpi, world);
                   if (!launcherExists(mpi))
                     [&] { GTEST_SKIP() << "there is no " << mpi.launcher; }();
                   else
                     runUnder(mpi, world);
                   endTestHere();
                 }};
  kind.slow = true;
  return kind;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_MPIRANKS_H
