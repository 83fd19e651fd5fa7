// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/process/PluginCommunicator.h"

#include "runtime/comm/Agreement.h"
#include "runtime/comm/FlatTransport.h"
#include "runtime/process/ProcessCommunicator.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>

namespace shardc::rt {

namespace {

class PluginCommunicator final : public ProcessCommunicator, private FlatTransport {
public:
  PluginCommunicator(std::shared_ptr<ControlPlane> controlPlane, const LoadedPlugin &plugin,
                     Clock::time_point deadline)
      : ProcessCommunicator(std::move(controlPlane)), plugin(plugin), functions(*plugin.functions),
        address(plane->peers()[rank()].address) {
    world.struct_bytes = sizeof world;
    world.rank = int32_t(rank());
    world.world_size = int32_t(worldSize());
    world.address = address.c_str();
    world.host = this;
    world.exchange = exchangeBytes;
    world.must_stop = mustStop;
    try {
      setUp("the connection of ranks by " + std::string(functions.name), deadline,
            [&](char *message) {
              return functions.open(&world, &context, secondsUntil(deadline), message);
            });
    } catch (const Failure &) {
      detach();
      throw;
    }
  }
  ~PluginCommunicator() override {
    detach();
    functions.close(context, plane->givenUp());
  }

  void connect(std::span<const shardrt_group> groups, Clock::time_point deadline) override {
    std::vector<std::vector<int32_t>> sets;
    for (const shardrt_group &group : groups)
      for (uint32_t s = 0; s < group.n_sets; ++s) {
        std::vector<int32_t> members(group.ranks + group.set_begin[s],
                                     group.ranks + group.set_begin[s + 1]);
        if (members.size() > 1 && std::find(sets.begin(), sets.end(), members) == sets.end())
          sets.push_back(std::move(members));
      }
    std::vector<shardrt_transport_group> list;
    for (const std::vector<int32_t> &members : sets)
      list.push_back({members.data(), int32_t(members.size())});
    setUp("the connection of groups by " + std::string(functions.name), deadline,
          [&](char *message) {
            return functions.connect(context, list.data(), list.size(), secondsUntil(deadline),
                                     message);
          });
  }

  HostTransport *hostTransport() override { return this; }

private:
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override {
    if (call.group->size() == 1)
      return FlatTransport::run(call, deadline);
    Flight inFlight(*this, call, deadline);
    struct Current {
      Current(Flight *&place, Flight *now) : place(place) { place = now; }
      ~Current() { place = nullptr; }
      Flight *&place;
    } current(flight, &inFlight);
    Clock::time_point end = FlatTransport::run(call, deadline);
    inFlight.done();
    return end;
  }

  /// Engines do not notice that members are in different collectives, or only by wrong data.
  void meet(const CollectiveCall &call, uint64_t signature, Clock::time_point deadline) override {
    const uint32_t n = call.group->size();
    int64_t mine = int64_t(signature ^ call.run * 0x9e3779b97f4a7c15ull);
    std::vector<int64_t> all(n);
    gather(call, SHARDRT_I64, &mine, std::vector<int64_t>(n, 1), all.data(), 0, deadline);
    if (std::all_of(all.begin(), all.end(), [&](int64_t one) { return one == all[0]; }))
      return;
    // All members have seen that, and tell each other what they are in.
    std::string text = factsOf(call);
    int64_t length = int64_t(text.size());
    std::vector<int64_t> lengths(n);
    gather(call, SHARDRT_I64, &length, std::vector<int64_t>(n, 1), lengths.data(), 0, deadline);
    std::string texts(size_t(std::accumulate(lengths.begin(), lengths.end(), int64_t(0))), '\0');
    gather(call, SHARDRT_U8, text.data(), lengths, texts.data(), 0, deadline);
    std::vector<std::string> said;
    for (size_t q = 0, at = 0; q < n; at += size_t(lengths[q++]))
      said.push_back(texts.substr(at, size_t(lengths[q])));
    auto other =
        size_t(std::find_if(all.begin(), all.end(), [&](int64_t one) { return one != all[0]; }) -
               all.begin());
    const std::vector<uint32_t> &members = call.group->members;
    flight->disagree(factsDifference(members[0], said[0], members[other], said[other]));
  }

  bool offers(uint32_t kind, shardrt_type type, uint32_t reduction) override {
    return functions.supports &&
           functions.supports(context, int32_t(kind), type, int32_t(reduction)) != 0;
  }

  void transfer(const shardrt_transfer &transfer, Clock::time_point deadline) override {
    shardrt_transfer timed = transfer;
    timed.timeout_s = secondsUntil(deadline);
    Said said = call([&](char *message) { return functions.transfer(context, &timed, message); });
    if (said.status != SHARDRT_OK)
      flight->fail(said.status, functions.name + (": " + said.message));
  }

  void disagree(const shardrt_collective &, const std::string &how) override {
    flight->disagree(how);
  }

  struct Said {
    shardrt_status status;
    std::string message;
  };
  template <typename Function> static Said call(Function function) {
    char message[SHARDRT_MESSAGE_BYTES];
    message[0] = message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
    Said said{function(message), {}};
    message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
    said.message = message[0] ? message : "it gave no reason";
    if (said.status < SHARDRT_OK || said.status > SHARDRT_INTERNAL) {
      said.message += " (it returned " + std::to_string(said.status) + ", which is no status)";
      said.status = SHARDRT_INTERNAL;
    }
    return said;
  }

  /// Calls a function that all ranks call outside of collectives.
  template <typename Function>
  void setUp(const std::string &what, Clock::time_point deadline, Function function) {
    setUpDeadline = deadline;
    Said said = call(function);
    if (said.status == SHARDRT_OK)
      return;
    std::optional<Failure> given = plane->failure();
    if (!given && Clock::now() >= deadline) {
      std::string silent = whoIsSilent();
      said = {SHARDRT_TIMEOUT, "it did not complete in time" + silent};
      given = plane->failure(); // by another rank whose deadline has passed, say
    }
    std::string text =
        what + ": " + (given ? "given up because of " + given->message : said.message);
    plane->abort(said.status, text);
    throw Failure(given ? given->status : said.status, text);
  }

  static int32_t mustStop(void *host) {
    auto &self = *static_cast<PluginCommunicator *>(host);
    if (self.flight)
      return self.flight->mustStop();
    return self.plane->givenUp() || Clock::now() >= self.setUpDeadline;
  }

  static shardrt_status exchangeBytes(void *host, const shardrt_exchange *e, char *message) {
    auto &self = *static_cast<PluginCommunicator *>(host);
    try {
      std::vector<std::string> all =
          self.exchange({e->topic, e->run},
                        std::string_view(static_cast<const char *>(e->mine), size_t(e->bytes)),
                        deadlineAfter(e->timeout_s));
      auto *to = static_cast<char *>(e->all);
      for (const std::string &one : all) {
        if (one.size() != e->bytes)
          throw Failure(SHARDRT_MISMATCH, std::string(e->topic) + ": ranks have " +
                                              std::to_string(one.size()) + " and " +
                                              std::to_string(e->bytes) + " bytes for it");
        if (e->bytes > 0)
          std::memcpy(to, one.data(), one.size());
        to += e->bytes;
      }
      return SHARDRT_OK;
    } catch (const Failure &failure) {
      std::snprintf(message, SHARDRT_MESSAGE_BYTES, "%s", failure.what());
      return failure.status;
    }
  }

  const LoadedPlugin plugin;
  const shardrt_transport_plugin &functions;
  const std::string address;
  shardrt_transport_world world{};
  void *context = nullptr;
  Clock::time_point setUpDeadline;
  Flight *flight = nullptr; ///< of the thread that communicates
};

} // namespace

std::unique_ptr<Communicator> makePluginEnd(std::shared_ptr<ControlPlane> plane,
                                            const LoadedPlugin &plugin,
                                            Clock::time_point deadline) {
  return std::make_unique<PluginCommunicator>(std::move(plane), plugin, deadline);
}

} // namespace shardc::rt
