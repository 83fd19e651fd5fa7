// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libshardrt_mpi.so: data of collectives by MPI 3.1. What differs from other transports is in
// docs/processes.md.
#include "runtime/plugins/mpi/Collectives.h"
#include "runtime/plugins/mpi/Operations.h"
#include "runtime/plugins/mpi/Process.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

using namespace shardc::plugin;

namespace {

using Clock = std::chrono::steady_clock;

/// What users may choose, the same on all ranks.
struct Settings {
  /// Elements of one operation of MPI (SHARDRT_MPI_PIECE; smaller than the default for tests).
  int64_t piece = 1 << 30;
  /// SHARDRT_MPI_REDUCE=runtime: MPI moves blocks only, so that sums have the bits of threads.
  int64_t runtimeReduces = 0;

  static Settings read() {
    Settings settings;
    if (const char *text = std::getenv("SHARDRT_MPI_PIECE")) {
      char *end = nullptr;
      long long wanted = std::strtoll(text, &end, 10);
      if (end == text || *end || wanted < 1 || wanted > settings.piece)
        throw Failure{SHARDRT_INVALID_ARGUMENT,
                      std::string("SHARDRT_MPI_PIECE is '") + text +
                          "': expected a number of elements from 1 to 2^30"};
      settings.piece = wanted;
    }
    if (const char *text = std::getenv("SHARDRT_MPI_REDUCE")) {
      settings.runtimeReduces = text == std::string("runtime");
      if (!settings.runtimeReduces && text != std::string("mpi"))
        throw Failure{SHARDRT_INVALID_ARGUMENT, std::string("SHARDRT_MPI_REDUCE is '") + text +
                                                    "': expected 'mpi' or 'runtime'"};
    }
    return settings;
  }
  bool operator==(const Settings &) const = default;
};

/// Variables of the environment of which each launcher sets one.
bool wasLaunched() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD"})
    if (std::getenv(name))
      return true;
  return false;
}

std::function<bool()> until(double seconds) {
  auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(std::min(seconds, 1e9)));
  return [deadline] { return Clock::now() >= deadline; };
}

class End {
public:
  End(const shardrt_transport_world &runtime, double timeout) : runtime(runtime) {
    beginMpi();
    limitEnd(timeout);
    int size = 0, rank = 0;
    check(MPI_Comm_size(world(), &size), "MPI_Comm_size");
    check(MPI_Comm_rank(world(), &rank), "MPI_Comm_rank");
    if (size != runtime.world_size || rank != runtime.rank)
      throw Failure{
          SHARDRT_MISMATCH,
          "this is rank " + std::to_string(runtime.rank) + " of " +
              std::to_string(runtime.world_size) + ", and rank " + std::to_string(rank) + " of " +
              std::to_string(size) + " to " + libraryVersion() +
              (size == 1 ? " (was the process started by the launcher of another MPI?)" : "")};
    settings = Settings::read();
    std::vector<Settings> all(size_t(runtime.world_size));
    shardrt_exchange exchange{"MPI's settings", 0, &settings, all.data(), sizeof settings, timeout};
    char message[SHARDRT_MESSAGE_BYTES] = "";
    if (shardrt_status status = runtime.exchange(runtime.host, &exchange, message))
      throw Failure{status, message};
    for (size_t other = 0; other < all.size(); ++other)
      if (all[other] != settings)
        throw Failure{SHARDRT_MISMATCH, "SHARDRT_MPI_REDUCE or SHARDRT_MPI_PIECE differs between "
                                        "rank " +
                                            std::to_string(runtime.rank) + " and rank " +
                                            std::to_string(other)};
  }

  void connect(const shardrt_transport_group *list, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      std::vector<int32_t> members(list[i].members, list[i].members + list[i].n_members);
      if (std::find(members.begin(), members.end(), runtime.rank) == members.end() ||
          groups.contains(members))
        continue;
      MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
      check(MPI_Comm_group(world(), &all), "MPI_Comm_group");
      int code = MPI_Group_incl(all, int(members.size()), members.data(), &some);
      MPI_Group_free(&all);
      check(code, "MPI_Group_incl");
      auto made = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
      callBlocking(
          [made, some] {
            check(MPI_Comm_create_group(world(), some, 0, made.get()), "MPI_Comm_create_group");
            check(MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
          },
          stop());
      MPI_Group_free(&some);
      groups[members] = *made;
    }
  }

  void transfer(const shardrt_transfer &t) {
    auto group = groups.find({t.members, t.members + t.n_members});
    if (group == groups.end())
      throw Failure{SHARDRT_INTERNAL, "the group was not connected"};
    try {
      Transfer(t, group->second, stop(), settings.piece).run();
    } catch (...) {
      giveUpMpi(); // the operands may be in use as long as MPI is
      throw;
    }
  }

  bool supports(int32_t kind, shardrt_type type, int32_t reduction) const {
    bool reduces = kind == SHARDRT_ALL_REDUCE || kind == SHARDRT_REDUCE_SCATTER;
    return !reduces || (!settings.runtimeReduces && operationOf(type, reduction).offered());
  }

  void close(bool failed) {
    if (failed)
      return giveUpMpi();
    for (auto &[members, group] : groups)
      MPI_Comm_free(&group);
  }

private:
  std::function<bool()> stop() {
    return [this] { return runtime.must_stop(runtime.host) != 0; };
  }

  const shardrt_transport_world &runtime;
  Settings settings;
  std::map<std::vector<int32_t>, MPI_Comm> groups; ///< by members
};

shardrt_status launch(shardrt_transport_launch *launch, char *message) {
  return guarded(message, [&] {
    if (!wasLaunched())
      throw Failure{SHARDRT_NOT_FOUND, "no launcher of MPI has started this process"};
    beginMpi();
    int size = 0, rank = 0;
    check(MPI_Comm_size(world(), &size), "MPI_Comm_size");
    check(MPI_Comm_rank(world(), &rank), "MPI_Comm_rank");
    launch->world_size = size;
    launch->rank = rank;
  });
}

shardrt_status broadcast(void *data, uint64_t bytes, double timeout, char *message) {
  return guarded(message, [&] {
    limitEnd(timeout);
    constexpr uint64_t piece = 1 << 30;
    auto stop = until(timeout);
    for (uint64_t done = 0; done < bytes; done += piece) {
      std::vector<MPI_Request> requests(1, MPI_REQUEST_NULL);
      check(MPI_Ibcast(static_cast<char *>(data) + done, int(std::min(piece, bytes - done)),
                       MPI_BYTE, 0, world(), requests.data()),
            "MPI_Ibcast");
      waitFor(requests, int64_t(bytes), stop, "MPI_Ibcast");
    }
  });
}

} // namespace

extern "C" __attribute__((visibility("default"))) const shardrt_transport_plugin *
shardrt_transport_query() {
  static const shardrt_transport_plugin plugin = [] {
    shardrt_transport_plugin functions = pluginOf<End>("mpi", libraryVersion());
    functions.launch = launch;
    functions.broadcast = broadcast;
    return functions;
  }();
  return &plugin;
}
