// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/launch/LaunchEnvironment.h"

#include "runtime/launch/SlurmLists.h"
#include "runtime/support/Failure.h"

#include <gtest/gtest.h>
#include <map>

using namespace shardc::rt;

namespace {

using Set = std::map<std::string, std::string>;

std::optional<LaunchEnvironment> read(const Set &set) {
  return LaunchEnvironment::read([&](const char *name) {
    auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}

/// The message of the error that it must be.
std::string problemsOf(const Set &set) {
  try {
    read(set);
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_INVALID_ARGUMENT);
    return failure.message;
  }
  return "no error";
}

Set with(Set base, const Set &more) {
  for (auto &[name, value] : more)
    base[name] = value;
  return base;
}

const Set torchrun = {{"RANK", "3"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "node0"},
                      {"MASTER_PORT", "29500"},
                      {"TORCHELASTIC_RUN_ID", "none"},
                      {"TORCHELASTIC_RESTART_COUNT", "0"},
                      {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Set openMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                     {"PMIX_RANK", "2"},
                     {"PMIX_NAMESPACE", "1234@1"}};
const Set slurm = {{"SLURM_PROCID", "5"},
                   {"SLURM_NTASKS", "9"},
                   {"SLURM_STEP_NUM_TASKS", "7"},
                   {"SLURM_LOCALID", "2"},
                   {"SLURM_NODEID", "1"},
                   {"SLURM_JOB_ID", "77"},
                   {"SLURM_STEP_ID", "0"},
                   {"SLURM_STEP_NUM_NODES", "3"},
                   {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
                   {"SLURM_STEP_NODELIST", "node[03-04,9]"},
                   {"SLURM_JOB_NODELIST", "node[01-09]"}};

} // namespace

TEST(LaunchEnvironment, NothingWithoutALauncher) {
  EXPECT_FALSE(read({}));
  EXPECT_FALSE(read({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}}));
  EXPECT_FALSE(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}})) << "one process is no world";
  EXPECT_FALSE(read({{"RANK", ""}, {"WORLD_SIZE", ""}})) << "empty is unset";
  // The script of a job is no task of it.
  EXPECT_FALSE(read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "1"}}));
}

TEST(LaunchEnvironment, Torchrun) {
  auto launch = read(torchrun);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "torchrun");
  EXPECT_EQ(launch->rank, 3u);
  EXPECT_EQ(launch->worldSize, 8u);
  EXPECT_EQ(launch->localRank, 1u);
  EXPECT_EQ(launch->localSize, 2u);
  EXPECT_EQ(launch->masterAddress, "node0");
  ASSERT_EQ(launch->masterPorts.size(), 16u) << "its own store has the port";
  EXPECT_EQ(launch->masterPorts.front(), 29501);
  EXPECT_EQ(launch->masterPorts.back(), 29516);
  EXPECT_NE(launch->job, read(with(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}}))->job);
  EXPECT_NE(launch->job, read(with(torchrun, {{"MASTER_PORT", "29400"}}))->job);
  auto last = read(with(torchrun, {{"MASTER_PORT", "65534"}}));
  EXPECT_EQ(last->masterPorts, std::vector<uint16_t>{65535});
  // Whoever started torchrun counts no more.
  EXPECT_EQ(read(with(with(slurm, openMpi), torchrun))->rank, 3u);
}

TEST(LaunchEnvironment, KubernetesLaunchers) {
  Set set = torchrun;
  for (const char *name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                           "TORCHELASTIC_USE_AGENT_STORE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"})
    set.erase(name);
  auto launch = read(set);
  ASSERT_TRUE(launch);
  EXPECT_NE(launch->launcher, "torchrun");
  EXPECT_FALSE(launch->localRank || launch->localSize);
  EXPECT_EQ(launch->masterPorts.front(), 29500);
  EXPECT_EQ(launch->masterPorts.size(), 17u);
}

TEST(LaunchEnvironment, OpenMpi) {
  auto launch = read(openMpi);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "mpirun (Open MPI)");
  EXPECT_EQ(launch->rank, 2u);
  EXPECT_EQ(launch->worldSize, 4u);
  EXPECT_EQ(launch->localSize, 2u);
  EXPECT_EQ(launch->masterAddress, "");
  EXPECT_TRUE(launch->masterPorts.empty());
  EXPECT_NE(launch->job, read(with(openMpi, {{"PMIX_NAMESPACE", "1234@2"}}))->job);
  // mpirun starts its own processes by srun, with other numbers.
  EXPECT_EQ(read(with(slurm, openMpi))->rank, 2u);
  auto told = read(with(openMpi, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "4000"}}));
  EXPECT_EQ(told->masterAddress, "10.0.0.1");
  EXPECT_EQ(told->masterPorts.front(), 4000);
}

TEST(LaunchEnvironment, Mpich) {
  auto launch = read(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "mpirun (MPICH)");
  EXPECT_EQ(launch->rank, 1u);
  EXPECT_EQ(launch->localSize, 2u);
  EXPECT_EQ(launch->job, "") << "its own broadcast must tell";
}

TEST(LaunchEnvironment, Slurm) {
  auto launch = read(slurm);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "srun");
  EXPECT_EQ(launch->rank, 5u);
  EXPECT_EQ(launch->worldSize, 7u) << "of the step, not of the job";
  EXPECT_EQ(launch->localRank, 2u);
  EXPECT_EQ(launch->localSize, 3u);
  EXPECT_EQ(launch->masterAddress, "node03");
  EXPECT_EQ(launch->masterPorts.size(), 16u);
  for (uint16_t port : launch->masterPorts) {
    EXPECT_GE(port, 10000);
    EXPECT_LT(port, 32768) << "the system gives these to connections";
  }
  EXPECT_EQ(read(with(slurm, {{"SLURM_PROCID", "0"}}))->masterPorts, launch->masterPorts);
  EXPECT_NE(read(with(slurm, {{"SLURM_STEP_ID", "1"}}))->masterPorts, launch->masterPorts);
  EXPECT_EQ(read(with(slurm, {{"SLURM_NODEID", "2"}, {"SLURM_LOCALID", "0"}}))->localSize, 1u);
  auto oneNode = read(with(slurm, {{"SLURM_STEP_NUM_NODES", "1"}}));
  EXPECT_EQ(oneNode->masterAddress, "") << "ranks of one host meet by the job";
  EXPECT_EQ(oneNode->localSize, 7u);
  EXPECT_EQ(oneNode->job, "srun 77.0");
  auto told = read(with(slurm, {{"MASTER_ADDR", "node04"}, {"MASTER_PORT", "1234"}}));
  EXPECT_EQ(told->masterAddress, "node04");
  EXPECT_EQ(told->masterPorts.front(), 1234);
}

TEST(LaunchEnvironment, ShardRun) {
  Set set = {{"SHARDRT_RANK", "1"},
             {"SHARDRT_WORLD_SIZE", "4"},
             {"SHARDRT_LOCAL_RANK", "1"},
             {"SHARDRT_LOCAL_SIZE", "4"},
             {"SHARDRT_JOB", "4711"}};
  auto launch = read(with(with(torchrun, openMpi), set));
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "shard-run");
  EXPECT_EQ(launch->rank, 1u);
  EXPECT_EQ(launch->job, "4711");
  EXPECT_EQ(launch->masterAddress, "");
  auto told = read(with(set, {{"SHARDRT_ADDRESS", "10.0.0.1"}, {"SHARDRT_PORT", "5000"}}));
  EXPECT_EQ(told->masterAddress, "10.0.0.1");
  EXPECT_EQ(told->masterPorts, std::vector<uint16_t>{5000});
}

TEST(LaunchEnvironment, AllMistakesAtOnce) {
  std::string text = problemsOf({{"RANK", "9"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_RANK", "x"},
                                 {"LOCAL_WORLD_SIZE", "12"},
                                 {"MASTER_PORT", "70000"}});
  for (const char *part : {"RANK is 9, but WORLD_SIZE is 8", "LOCAL_RANK is 'x'",
                           "LOCAL_WORLD_SIZE is 12, but WORLD_SIZE is 8", "MASTER_ADDR is not set",
                           "MASTER_PORT is '70000', which is no number from 1 to 65535"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(LaunchEnvironment, HostileNumbers) {
  for (const char *value : {"-1", "+1", " 1", "1 ", "0x1", "1e3", "4294967296", "4294967295",
                            "99999999999999999999999", "1048577", "\xff", "1\n", "0"})
    EXPECT_NE(problemsOf(with(torchrun, {{"WORLD_SIZE", value}})).find("WORLD_SIZE is"),
              std::string::npos)
        << value;
  std::string text = problemsOf(with(torchrun, {{"RANK", std::string(100000, '7')}}));
  EXPECT_LT(text.size(), 400u);
  EXPECT_NE(problemsOf(with(torchrun, {{"MASTER_PORT", "65535"}})).find("no port is left"),
            std::string::npos);
  for (const char *port : {"0", "-5", "65536", "http"})
    EXPECT_NE(problemsOf(with(torchrun, {{"MASTER_PORT", port}})).find("MASTER_PORT is"),
              std::string::npos)
        << port;
}

TEST(LaunchEnvironment, HalfOfAPlace) {
  EXPECT_NE(problemsOf({{"RANK", "1"}}).find("RANK is set, but WORLD_SIZE is not"),
            std::string::npos);
  EXPECT_NE(problemsOf({{"OMPI_COMM_WORLD_SIZE", "4"}})
                .find("OMPI_COMM_WORLD_SIZE is set, but OMPI_COMM_WORLD_RANK is not"),
            std::string::npos);
  EXPECT_NE(problemsOf({{"PMIX_RANK", "1"}}).find("no variable says how many"), std::string::npos);
  EXPECT_NE(problemsOf({{"SHARDRT_RANK", "1"}, {"SHARDRT_WORLD_SIZE", "2"}}).find("SHARDRT_JOB"),
            std::string::npos);
}

TEST(LaunchEnvironment, ContradictionsAreNamed) {
  Set set = with(openMpi,
                 {{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
  std::string text = problemsOf(set);
  EXPECT_NE(text.find("RANK is 1, but OMPI_COMM_WORLD_RANK is 2"), std::string::npos) << text;
  EXPECT_NE(text.find("RANK is 1, but PMIX_RANK is 2"), std::string::npos) << text;
  set["RANK"] = "2";
  EXPECT_EQ(read(set)->rank, 2u);
  set["WORLD_SIZE"] = "3";
  text = problemsOf(set);
  EXPECT_NE(text.find("WORLD_SIZE is 3, but OMPI_COMM_WORLD_SIZE is 4"), std::string::npos);
}

TEST(SlurmLists, FirstHosts) {
  for (auto [list, first] : std::map<std::string, std::string>{{"node3", "node3"},
                                                               {"node[3-7,9]", "node3"},
                                                               {"node[007-010],x", "node007"},
                                                               {"a-b.c,node[1-2]", "a-b.c"},
                                                               {"n[4]", "n4"},
                                                               {"r[2-3]n[05,7]-ib", "r2n05-ib"}})
    EXPECT_EQ(firstHost(list), first) << list;
  for (const char *list :
       {"", ",", "node[", "node[]", "node[x]", "node[1", "a b", "$(reboot)", "n[1;2]", "n]1["})
    EXPECT_EQ(firstHost(list), std::nullopt) << list;
  EXPECT_EQ(firstHost(std::string(300, 'a')), std::nullopt);
  EXPECT_NE(problemsOf(with(slurm, {{"SLURM_STEP_NODELIST", "node["}})).find("no list of hosts"),
            std::string::npos);
}

TEST(SlurmLists, TasksOfNodes) {
  EXPECT_EQ(tasksOfNode("2(x3),1", 0), 2u);
  EXPECT_EQ(tasksOfNode("2(x3),1", 2), 2u);
  EXPECT_EQ(tasksOfNode("2(x3),1", 3), 1u);
  EXPECT_EQ(tasksOfNode("2(x3),1", 4), std::nullopt);
  for (const char *list : {"", "x", "2(x", "2(x3", "-1", "2(x99999999999)", "0"})
    EXPECT_EQ(tasksOfNode(list, 1), std::nullopt) << list;
}
