// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/world/Environment.h"

#include "runtime/control/TcpControlPlane.h"
#include "runtime/world/PluginKind.h"

#include <algorithm>
#include <sched.h>

namespace shardc::rt {

namespace {

RankFacts ownFacts(const Variables &variables) {
  RankFacts facts;
  facts.wish = variables("SHARDRT_COMMUNICATOR").value_or("auto");
  if (facts.wish.empty())
    facts.wish = "auto";
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return facts;
  facts.numProcessors = uint32_t(std::max(1, CPU_COUNT(&set)));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set))
      facts.processors += std::to_string(cpu) + ",";
  return facts;
}

} // namespace

World joinEnvironment(
    const Variables &variables, double timeout,
    const std::function<void(int32_t rank, int32_t level, const std::string &text)> &log) {
  std::optional<LaunchEnvironment> launch = LaunchEnvironment::read(variables);
  if (!launch) {
    World world;
    world.communicator = std::move(makeLocalWorld(1).front());
    world.description = "local, 1 process";
    world.threads = 0;
    log(0, SHARDRT_LOG_DEBUG, "communicator: local, a world of one: no launcher started more");
    return world;
  }
  Clock::time_point deadline = deadlineAfter(timeout);
  auto rank = int32_t(launch->rank);
  ControlOptions options = controlOptions(*launch, variables);
  options.timeoutSeconds = timeout;
  options.log = [=](int32_t level, const std::string &text) { log(rank, level, text); };
  // On one host ranks find each other by the name of the job.
  bool found = !options.address.empty() || (!options.job.empty() && options.oneHost == true);
  if (!found)
    meetByEngine(options, variables);
  std::shared_ptr<ControlPlane> plane = joinControlPlane(options);
  World world = chooseCommunicator(plane,
                                   {sharedMemoryKind(), pluginKind("mpi", variables, true),
                                    pluginKind("gloo", variables, false)},
                                   ownFacts(variables), deadline);
  log(rank, rank == 0 ? SHARDRT_LOG_INFO : SHARDRT_LOG_DEBUG,
      "communicator: " + world.description + ", started by " + launch->launcher + ": " +
          world.reason);
  return world;
}

} // namespace shardc::rt
