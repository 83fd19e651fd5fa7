// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/launch/LaunchEnvironment.h"

#include "runtime/launch/SlurmLists.h"
#include "runtime/support/Failure.h"

#include <charconv>
#include <cstdlib>

namespace shardc::rt {

namespace {

/// No launcher starts more; a number beyond it is a mistake.
constexpr uint32_t largestWorld = 1 << 20;
/// Ports beside the one that was named, in case that something else has it.
constexpr uint32_t morePorts = 16;

/// The variables in which a launcher says the four numbers; null: it does not.
struct Names {
  const char *launcher;
  const char *rank, *size, *localRank, *localSize;
};

// From the inside to the outside: a launcher may have been started by one that comes later.
constexpr Names shardRun = {"shard-run", "SHARDRT_RANK", "SHARDRT_WORLD_SIZE", "SHARDRT_LOCAL_RANK",
                            "SHARDRT_LOCAL_SIZE"};
constexpr Names torchrun = {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names openMpi = {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names hydra = {"mpirun (MPICH)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
                         "MPI_LOCALNRANKS"};
constexpr Names slurm = {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr};

std::string shown(const std::string &text) {
  return "'" + (text.size() > 64 ? text.substr(0, 64) + "..." : text) + "'";
}

class Parser {
public:
  explicit Parser(const Variables &variables) : variables(variables) {}

  std::string text(const char *name) const { return variables(name).value_or(""); }
  bool has(const char *name) const { return !text(name).empty(); }

  std::optional<uint32_t> number(const char *name, uint32_t smallest, uint32_t largest) {
    std::string value = name ? text(name) : "";
    if (value.empty())
      return std::nullopt;
    uint32_t out = 0;
    const char *end = value.data() + value.size();
    auto [stop, error] = std::from_chars(value.data(), end, out);
    if (error == std::errc() && stop == end && out >= smallest && out <= largest)
      return out;
    problems.add(std::string(name) + " is " + shown(value) + ", which is no number from " +
                 std::to_string(smallest) + " to " + std::to_string(largest));
    return std::nullopt;
  }

  const Variables &variables;
  Problems problems;
};

struct Claim {
  Names names{};
  std::optional<uint32_t> rank, size, localRank, localSize;
};

/// What a launcher says; nothing if it was not there.
std::optional<Claim> readClaim(Parser &parser, Names names) {
  if (!parser.has(names.rank) && !parser.has(names.size))
    return std::nullopt;
  Claim claim;
  claim.names = names;
  for (auto [wanted, other] : {std::pair(names.rank, names.size), {names.size, names.rank}})
    if (!parser.has(wanted))
      parser.problems.add(std::string(other) + " is set, but " + wanted + " is not");
  claim.rank = parser.number(names.rank, 0, largestWorld - 1);
  claim.size = parser.number(names.size, 1, largestWorld);
  claim.localRank = parser.number(names.localRank, 0, largestWorld - 1);
  claim.localSize = parser.number(names.localSize, 1, largestWorld);
  auto outside = [&](const char *low, std::optional<uint32_t> a, const char *high,
                     std::optional<uint32_t> b, bool mayBeEqual) {
    if (a && b && (mayBeEqual ? *a > *b : *a >= *b))
      parser.problems.add(std::string(low) + " is " + std::to_string(*a) + ", but " + high +
                          " is " + std::to_string(*b));
  };
  outside(names.rank, claim.rank, names.size, claim.size, false);
  outside(names.localRank, claim.localRank, names.localSize, claim.localSize, false);
  outside(names.localSize, claim.localSize, names.size, claim.size, true);
  return claim;
}

/// Slurm sets its variables also for the script of a job, which is no rank.
std::optional<Claim> readSlurm(Parser &parser) {
  if (!parser.has("SLURM_STEP_ID") || !parser.has("SLURM_PROCID"))
    return std::nullopt;
  Names names = slurm;
  if (!parser.has(names.size))
    names.size = "SLURM_NTASKS";
  return readClaim(parser, names);
}

void compare(Parser &parser, const Claim &one, const Claim &other) {
  auto differ = [&](const char *a, std::optional<uint32_t> x, const char *b,
                    std::optional<uint32_t> y) {
    if (x && y && *x != *y)
      parser.problems.add(std::string(a) + " is " + std::to_string(*x) + ", but " + b + " is " +
                          std::to_string(*y) +
                          ": unset those of the launcher that did not start "
                          "this process");
  };
  differ(one.names.rank, one.rank, other.names.rank, other.rank);
  differ(one.names.size, one.size, other.names.size, other.size);
}

std::vector<uint16_t> portsFrom(uint32_t first, uint32_t last) {
  std::vector<uint16_t> out;
  for (uint32_t port = first; port <= last && port <= 65535; ++port)
    out.push_back(uint16_t(port));
  return out;
}

/// MASTER_ADDR and MASTER_PORT, which users set for other launchers too.
void readMaster(Parser &parser, bool needed, LaunchEnvironment &out) {
  out.masterAddress = parser.text("MASTER_ADDR");
  bool hasPort = parser.has("MASTER_PORT");
  if (!needed && (out.masterAddress.empty() || !hasPort)) {
    out.masterAddress.clear();
    return;
  }
  if (out.masterAddress.empty())
    parser.problems.add("MASTER_ADDR is not set: it is the host of rank 0");
  if (!hasPort)
    parser.problems.add("MASTER_PORT is not set: it is the port at which rank 0 listens");
  uint32_t port = parser.number("MASTER_PORT", 1, 65535).value_or(0);
  // torchrun itself listens at the port then.
  bool taken = parser.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  out.masterPorts = portsFrom(port + (taken ? 1 : 0), port + morePorts);
  if (port != 0 && out.masterPorts.empty())
    parser.problems.add("MASTER_PORT is 65535, and torchrun listens there: no port is left for "
                        "rank 0");
}

void describeTorchrun(Parser &parser, LaunchEnvironment &out) {
  readMaster(parser, true, out);
  out.job = "torchrun " + parser.text("TORCHELASTIC_RUN_ID") + " " +
            parser.text("TORCHELASTIC_RESTART_COUNT") + " " + out.masterAddress + " " +
            parser.text("MASTER_PORT");
}

void describeShardRun(Parser &parser, LaunchEnvironment &out) {
  out.job = parser.text("SHARDRT_JOB");
  if (parser.has("SHARDRT_ADDRESS") || parser.has("SHARDRT_PORT")) {
    out.masterAddress = parser.text("SHARDRT_ADDRESS");
    if (std::optional<uint32_t> port = parser.number("SHARDRT_PORT", 1, 65535))
      out.masterPorts = {uint16_t(*port)};
    if (out.masterAddress.empty() || !parser.has("SHARDRT_PORT"))
      parser.problems.add("one of SHARDRT_ADDRESS and SHARDRT_PORT is set without the other");
  } else if (out.job.empty()) {
    parser.problems.add("SHARDRT_RANK is set, but SHARDRT_JOB is not");
  }
}

void describeMpi(Parser &parser, LaunchEnvironment &out) {
  readMaster(parser, false, out);
  for (const char *name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"})
    if (out.job.empty() && parser.has(name))
      out.job = "mpirun " + parser.text(name);
  if (out.job.empty() && !out.masterAddress.empty())
    out.job = "mpirun " + out.masterAddress + " " + parser.text("MASTER_PORT");
}

void describeSlurm(Parser &parser, LaunchEnvironment &out) {
  readMaster(parser, false, out);
  std::string jobId = parser.text(parser.has("SLURM_JOB_ID") ? "SLURM_JOB_ID" : "SLURM_JOBID");
  out.job = "srun " + jobId + "." + parser.text("SLURM_STEP_ID");
  auto either = [&](const char *step, const char *job) { return parser.has(step) ? step : job; };
  std::optional<uint32_t> nodes =
      parser.number(either("SLURM_STEP_NUM_NODES", "SLURM_NNODES"), 1, largestWorld);
  if (nodes == 1) {
    out.localSize = out.worldSize;
  } else if (std::optional<uint32_t> node = parser.number("SLURM_NODEID", 0, largestWorld - 1)) {
    const char *name = either("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
    out.localSize = tasksOfNode(parser.text(name), *node);
  }
  if (nodes == 1 || !out.masterAddress.empty())
    return; // on one host the ranks meet by the job
  const char *name = either("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  std::string list = parser.text(name);
  std::optional<std::string> first = firstHost(list);
  if (!first) {
    parser.problems.add(list.empty() ? std::string("neither SLURM_STEP_NODELIST nor MASTER_ADDR "
                                                   "is set: they say where rank 0 is")
                                     : std::string(name) + " is " + shown(list) +
                                           ", which is no list of hosts");
    return;
  }
  // Steps that run on a host at the same time get different ports, below those that the system
  // gives to connections.
  constexpr uint32_t firstPort = 10000, slots = 1300;
  uint32_t slot = 0;
  for (char c : out.job)
    slot = (slot * 31 + uint8_t(c)) % slots;
  out.masterAddress = *first;
  out.masterPorts = portsFrom(firstPort + slot * morePorts, firstPort + slot * morePorts + 15);
}

} // namespace

Variables processEnvironment() {
  return [](const char *name) -> std::optional<std::string> {
    const char *value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<LaunchEnvironment> LaunchEnvironment::read(const Variables &variables) {
  Parser parser(variables);
  std::vector<std::pair<Claim, void (*)(Parser &, LaunchEnvironment &)>> claims;
  auto add = [&](std::optional<Claim> claim, void (*describe)(Parser &, LaunchEnvironment &)) {
    if (claim)
      claims.emplace_back(*claim, describe);
  };
  add(readClaim(parser, shardRun), describeShardRun);
  // Who starts ranks says everything itself; what started it counts no more. So does torchrun,
  // which mpirun or srun may have started once on each host.
  bool innermost = !claims.empty();
  if (!innermost) {
    add(readClaim(parser, torchrun), describeTorchrun);
    innermost = !claims.empty() && parser.has("TORCHELASTIC_RUN_ID");
  }
  if (!innermost) {
    add(readClaim(parser, openMpi), describeMpi);
    add(readClaim(parser, hydra), describeMpi);
    for (size_t i = 1; i < claims.size(); ++i)
      compare(parser, claims[0].first, claims[i].first);
    std::optional<uint32_t> pmix = parser.number("PMIX_RANK", 0, largestWorld - 1);
    if (pmix && !claims.empty())
      compare(parser, claims[0].first, Claim{{"", "PMIX_RANK", "", "", ""}, pmix, {}, {}, {}});
    // mpirun starts its own processes by srun, which have Slurm's numbers of another step.
    if (claims.empty())
      add(readSlurm(parser), describeSlurm);
    if (pmix && claims.empty())
      parser.problems.add("PMIX_RANK is set, but no variable says how many ranks there are; set "
                          "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
  }
  LaunchEnvironment out;
  if (!claims.empty()) {
    const auto &[claim, describe] = claims.front();
    // Launchers of Kubernetes set torchrun's variables as well.
    bool alike = std::string(claim.names.rank) == torchrun.rank;
    out.launcher = alike && !parser.has("TORCHELASTIC_RUN_ID") ? "a launcher that sets RANK"
                                                               : claim.names.launcher;
    out.rank = claim.rank.value_or(0);
    out.worldSize = claim.size.value_or(1);
    out.localRank = claim.localRank;
    out.localSize = claim.localSize;
    // A world of one needs nobody.
    if (claim.size != 1)
      describe(parser, out);
  }
  parser.problems.raise(SHARDRT_INVALID_ARGUMENT,
                        "what the launcher says about this process cannot be right");
  if (claims.empty() || out.worldSize == 1)
    return std::nullopt;
  return out;
}

} // namespace shardc::rt
