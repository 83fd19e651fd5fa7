// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/world/PluginKind.h"

#include "runtime/control/Secret.h"
#include "runtime/control/Socket.h"
#include "runtime/process/PluginCommunicator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sstream>
#include <unistd.h>

namespace shardc::rt {

namespace {

/// The message that a function of a plugin left, behind its name.
std::string said(const LoadedPlugin &plugin, const char *message) {
  return std::string(plugin.functions->name) + ": " +
         (*message ? message : "it failed without a reason");
}

/// Joins the world of the engine's launcher. Returns why that is not possible, or nothing.
std::string joinLauncher(const LoadedPlugin &plugin, uint32_t rank, uint32_t worldSize) {
  if (!plugin.functions->launch)
    return std::string(plugin.functions->name) + " has no launcher";
  shardrt_transport_launch launch{};
  launch.struct_bytes = sizeof launch;
  char message[SHARDRT_MESSAGE_BYTES] = "";
  if (plugin.functions->launch(&launch, message) != SHARDRT_OK)
    return said(plugin, message);
  if (uint32_t(launch.rank) == rank && uint32_t(launch.world_size) == worldSize)
    return "";
  return std::string(plugin.functions->name) + " calls this process rank " +
         std::to_string(launch.rank) + " of " + std::to_string(launch.world_size) +
         ", its variables rank " + std::to_string(rank) + " of " + std::to_string(worldSize);
}

/// An address of this host at which others can reach it.
SocketAddress ownAddress(const std::string &interface) {
  std::string problem;
  if (!interface.empty()) {
    std::vector<SocketAddress> found = interfaceAddresses(interface, problem);
    if (found.empty())
      throw Failure(SHARDRT_INVALID_ARGUMENT, "SHARDRT_INTERFACE: " + problem);
    return found.front();
  }
  ifaddrs *list = nullptr;
  std::string name = "127.0.0.1";
  if (getifaddrs(&list) == 0) {
    for (ifaddrs *at = list; at; at = at->ifa_next) {
      bool usable = at->ifa_addr && at->ifa_addr->sa_family == AF_INET &&
                    (at->ifa_flags & IFF_UP) && !(at->ifa_flags & IFF_LOOPBACK);
      if (!usable)
        continue;
      SocketAddress address;
      address.length = sizeof(sockaddr_in);
      std::memcpy(&address.storage, at->ifa_addr, sizeof(sockaddr_in));
      name = address.host();
      break;
    }
    freeifaddrs(list);
  }
  return numericAddress(name, problem).at(0);
}

} // namespace

CommunicatorKind pluginKind(const std::string &name, const Variables &variables, bool launched) {
  auto plugin = std::make_shared<LoadedPlugin>();
  CommunicatorKind kind;
  kind.name = name;
  kind.prepare = [=](const ControlPlane &plane) -> std::string {
    try {
      *plugin = loadPlugin(name, variables);
    } catch (const Failure &failure) {
      return failure.message;
    }
    return launched ? joinLauncher(*plugin, plane.rank(), plane.worldSize()) : "";
  };
  kind.open = [=](std::shared_ptr<ControlPlane> plane, Clock::time_point deadline) {
    return makePluginEnd(std::move(plane), *plugin, deadline);
  };
  kind.details = [=] { return std::string(plugin->functions->details); };
  return kind;
}

void meetByEngine(ControlOptions &options, const Variables &variables) {
  LoadedPlugin plugin;
  std::string problem;
  try {
    plugin = loadPlugin("mpi", variables);
    problem = joinLauncher(plugin, options.rank, options.worldSize);
  } catch (const Failure &failure) {
    problem = failure.message;
  }
  if (problem.empty() && !plugin.functions->broadcast)
    problem = std::string(plugin.functions->name) + " cannot tell the ranks where rank 0 is";
  if (!problem.empty())
    throw Failure(SHARDRT_NOT_FOUND,
                  "the launcher does not say where rank 0 is, and MPI cannot be asked: set "
                  "MASTER_ADDR and MASTER_PORT for all ranks (" +
                      problem + ")");
  std::array<char, 512> note{};
  if (options.rank == 0) {
    SocketAddress address = options.oneHost == true ? numericAddress("127.0.0.1", problem).at(0)
                                                    : ownAddress(options.interface);
    Descriptor socket = listenAt(address);
    if (!socket)
      throw Failure(SHARDRT_INVALID_ARGUMENT,
                    "rank 0 cannot listen at " + address.host() + ": " + systemError(errno));
    options.listenFd = dup(socket.get());
    std::string text = address.host() + " " + std::to_string(localAddress(socket).port()) + " " +
                       (options.secret.empty() ? makeSecret() : options.secret);
    if (options.listenFd < 0 || text.size() >= note.size())
      throw Failure(SHARDRT_INTERNAL, "rank 0 cannot say where it is");
    std::copy(text.begin(), text.end(), note.begin());
  }
  char message[SHARDRT_MESSAGE_BYTES] = "";
  if (shardrt_status status =
          plugin.functions->broadcast(note.data(), note.size(), options.timeoutSeconds, message))
    throw Failure(status, said(plugin, message));
  note.back() = '\0';
  std::istringstream words(note.data());
  unsigned port = 0;
  if (!(words >> options.address >> port >> options.secret) || port == 0 || port > 65535)
    throw Failure(SHARDRT_MISMATCH, "what rank 0 said about where it is cannot be read");
  options.ports = {uint16_t(port)};
}

} // namespace shardc::rt
