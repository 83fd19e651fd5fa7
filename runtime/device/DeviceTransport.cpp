// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceTransport.h"

#include "runtime/comm/Agreement.h"
#include "runtime/device/PeerTransport.h"
#include "runtime/device/Tell.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

namespace shardc::rt {

namespace {

/// A rank that has left, or another's failure, may be heard of before data that was on its way has
/// arrived.
constexpr std::chrono::milliseconds grace(1000);
/// A rank whose library has failed says so only after the others have given up on it.
constexpr std::chrono::seconds connectTime(60);
constexpr std::chrono::milliseconds connectTimePerRank(10);

/// For what is on its way when a rank leaves.
constexpr std::chrono::seconds closeTime(2);

constexpr Topic choiceTopic{"the choice of how devices communicate"};
constexpr char separator = '\x1f';
constexpr size_t factsBytes = 2048;

struct Said {
  shardrt_status status;
  std::string message;
};
/// Calls a function of the plugin, which writes a message.
template <typename Function> Said ask(Function function) {
  char message[SHARDRT_MESSAGE_BYTES];
  message[0] = '\0';
  Said said{function(message), {}};
  message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
  said.message = message[0] ? message : "it gave no reason";
  return said;
}

class DeviceTransport final : public StreamTransport {
public:
  DeviceTransport(Communicator &communicator, const shardrt_device_plugin &plugin, void *device,
                  std::string library)
      : communicator(communicator), functions(*plugin.communication), kind(plugin.name),
        library(std::move(library)), device_(device) {}
  ~DeviceTransport() override {
    waitsUntil = Clock::now() + closeTime;
    if (context)
      functions.close(context);
  }

  /// Returns what went wrong on this rank.
  std::string open(const std::string &id, Clock::time_point until) {
    world.struct_bytes = sizeof world;
    world.rank = int32_t(communicator.rank());
    world.world_size = int32_t(communicator.worldSize());
    world.host = this;
    world.must_stop = [](void *host) {
      auto &self = *static_cast<DeviceTransport *>(host);
      return int32_t(self.communicator.givenUp() || Clock::now() >= self.waitsUntil);
    };
    std::copy_n(id.begin(), std::min(id.size(), sizeof world.id), world.id);
    waitsUntil = until;
    Said said =
        ask([&](char *message) { return functions.open(device_, &world, &context, message); });
    return said.status == SHARDRT_OK ? "" : said.message;
  }

  std::string connect(std::span<const shardrt_group> groups, Clock::time_point until) {
    std::vector<shardrt_device_comm_group> sets;
    for (const shardrt_group &group : groups)
      for (uint32_t s = 0; s < group.n_sets; ++s) {
        std::span<const uint32_t> members(group.ranks + group.set_begin[s],
                                          group.ranks + group.set_begin[s + 1]);
        bool known = std::ranges::any_of(sets, [&](const shardrt_device_comm_group &set) {
          return std::ranges::equal(std::span(set.members, set.n_members), members);
        });
        if (!known)
          sets.push_back({members.data(), uint32_t(members.size()), 0});
      }
    waitsUntil = until;
    Said said = ask([&](char *message) {
      return functions.connect(context, sets.data(), sets.size(), message);
    });
    return said.status == SHARDRT_OK ? "" : said.message;
  }

  std::string_view device() const override { return kind; }
  std::string way() const override { return library; }
  bool takes(const shardrt_collective &collective, uint32_t members) const override {
    return functions.supports(context, &collective, members) != 0;
  }
  /// Shards of an inner dimension are packed and unpacked, with a copy for each member.
  size_t pieces(const CollectiveCall &call) const override {
    constexpr size_t ofOperand = 4, besides = 2;
    size_t all = besides;
    for (const CallOperand &o : call.operands)
      all += ofOperand +
             (std::max(o.facts->gather_dim, o.facts->scatter_dim) > 0 ? 2 * call.group->size() : 0);
    return all;
  }
  void remember(void *memory, size_t bytes) override {
    if (!ended)
      functions.remember(context, memory, bytes);
  }
  void forget(void *memory) override {
    if (!ended)
      functions.forget(context, memory);
  }
  void giveUp() noexcept override {
    if (context && !ended)
      functions.abort(context);
    ended = true;
  }

  void enqueue(const CollectiveCall &call, void *stream, Clock::time_point deadline) override {
    if (call.group->size() > 1) {
      if (ended || communicator.givenUp())
        explain(call, false);
      try {
        agree(call, deadline);
      } catch (const Failure &) {
        giveUp();
        throw;
      }
    }
    std::vector<shardrt_collective_tensor> tensors;
    for (const CallOperand &o : call.operands)
      tensors.push_back({o.in, o.out, o.extents.data(), o.gather.data(), o.scatter.data()});
    waitsUntil = deadline;
    shardrt_device_collective made{call.collective, tensors.data(), call.group->members.data(),
                                   call.group->size(), call.group->position};
    Said said =
        ask([&](char *message) { return functions.enqueue(context, &made, stream, message); });
    if (said.status == SHARDRT_ABORTED)
      failLater(call, said.message);
    if (said.status != SHARDRT_OK)
      fail(said.status, call, said.message);
    late = nullptr;
  }

  void poll(const CollectiveCall &oldest, Clock::time_point deadline) override {
    if (ended)
      throw Failure(SHARDRT_ABORTED, describe(*oldest.collective) + ": it was given up");
    if (oldest.group->size() == 1)
      return;
    Said said = ask([&](char *message) { return functions.poll(context, message); });
    if (said.status != SHARDRT_OK)
      failLater(oldest, said.message);
    if (communicator.givenUp())
      explain(oldest, false);
    Clock::time_point now = Clock::now();
    if (communicator.absent(*oldest.group, oldest.run).empty()) {
      late = nullptr;
    } else if (late != oldest.collective) {
      late = oldest.collective;
      absentSince = now;
    } else if (now - absentSince >= grace) {
      explain(oldest, false);
    }
    if (now >= deadline)
      explain(oldest, true);
  }

private:
  /// Members of a group do its collectives in the same order, so that a number says which is meant.
  struct GroupState {
    uint64_t run = 0;
    uint64_t enqueued = 0;     ///< in this run: one that replays a graph enqueues nothing
    std::set<uint64_t> agreed; ///< signatures that all members have
  };

  [[noreturn]] void fail(shardrt_status status, const CollectiveCall &call,
                         const std::string &reason) {
    std::string text = describe(*call.collective) + ": " + reason;
    communicator.abort(status == SHARDRT_MISMATCH ? status : SHARDRT_ABORTED, text);
    giveUp();
    throw Failure(status, text);
  }

  /// The library may notice that a rank has gone before anybody else does.
  [[noreturn]] void failLater(const CollectiveCall &call, const std::string &reason) {
    for (Clock::time_point until = Clock::now() + lateTime; Clock::now() < until;) {
      if (communicator.givenUp() || !communicator.absent(*call.group, call.run).empty())
        explain(call, false);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    fail(SHARDRT_ABORTED, call, reason);
  }

  [[noreturn]] void explain(const CollectiveCall &call, bool atDeadline) {
    try {
      explainLate(communicator, call, atDeadline);
    } catch (const Failure &) {
      giveUp();
      throw;
    }
  }

  /// The members compare what they mean: once for everything that is always the same, and every
  /// time where the program has counts of its own. No library finds out what does not fit.
  void agree(const CollectiveCall &call, Clock::time_point deadline) {
    GroupState &group = groups[call.group];
    Signature signature(call);
    std::vector<int64_t> counts;
    for (const CallOperand &o : call.operands)
      if (o.ownCounts)
        for (uint32_t q = 0; q < call.group->size(); ++q)
          counts.insert(counts.end(), {o.scatter[q], o.gather[q]});
    if (group.run != call.run)
      group.run = call.run, group.enqueued = 0;
    ++group.enqueued;
    if (counts.empty() && group.agreed.contains(signature.value()))
      return;
    const uint64_t seen = signature.value();
    signature.add(call.run);
    signature.add(group.enqueued);
    std::string mine(sizeof(uint64_t), '\0');
    const uint64_t value = signature.value();
    std::memcpy(mine.data(), &value, sizeof value);
    compare(call, tellMembers(communicator, call, mine, mine.size(), deadline), deadline);
    if (!counts.empty())
      compareCounts(call, counts, deadline);
    group.agreed.insert(seen);
  }

  void compare(const CollectiveCall &call, const std::vector<std::string> &signatures,
               Clock::time_point deadline) {
    auto other =
        std::ranges::find_if(signatures, [&](const auto &one) { return one != signatures[0]; });
    if (other == signatures.end())
      return;
    // All members have seen that, and tell each other what they are in.
    std::vector<std::string> facts =
        tellMembers(communicator, call, factsOf(call), factsBytes, deadline);
    for (std::string &text : facts)
      text.resize(std::strlen(text.c_str()));
    auto q = size_t(other - signatures.begin());
    const std::vector<uint32_t> &members = call.group->members;
    fail(SHARDRT_MISMATCH, call,
         "ranks disagree: " + factsDifference(members[0], facts[0], members[q], facts[q]));
  }

  void compareCounts(const CollectiveCall &call, const std::vector<int64_t> &counts,
                     Clock::time_point deadline) {
    const Group &group = *call.group;
    const uint32_t n = group.size();
    const size_t bytes = counts.size() * sizeof(int64_t);
    std::vector<std::string> all = tellMembers(
        communicator, call, std::string(reinterpret_cast<const char *>(counts.data()), bytes),
        bytes, deadline);
    // Of each member: for each operand and each other member what it gives and what it expects.
    auto at = [&](uint32_t member, size_t operand, uint32_t other, size_t which) {
      int64_t count = 0;
      std::memcpy(&count, all[member].data() + 8 * ((operand * n + other) * 2 + which), 8);
      return count;
    };
    size_t number = 0;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      if (!call.operands[i].ownCounts)
        continue;
      for (uint32_t from = 0; from < n; ++from)
        for (uint32_t to = 0; to < n; ++to)
          if (std::string problem = countDifference(i, group.members[from], at(from, number, to, 0),
                                                    group.members[to], at(to, number, from, 1));
              !problem.empty())
            fail(SHARDRT_MISMATCH, call, problem);
      ++number;
    }
  }

  Communicator &communicator;
  const shardrt_device_communication &functions;
  const std::string kind, library;
  void *const device_;
  shardrt_device_comm_world world{};
  void *context = nullptr;
  bool ended = false;
  Clock::time_point waitsUntil;
  std::map<const Group *, GroupState> groups;
  const shardrt_collective *late = nullptr; ///< of which a member is absent
  Clock::time_point absentSince;
};

std::string wishedFor() {
  const char *text = std::getenv("SHARDRT_DEVICE_COLLECTIVES");
  std::string wish = text && *text ? text : "auto";
  if (wish != "auto" && wish != "peers" && wish != "device" && wish != "host")
    throw Failure(SHARDRT_INVALID_ARGUMENT, "SHARDRT_DEVICE_COLLECTIVES is '" + wish +
                                                "': expected 'auto', 'peers', 'device' or 'host'");
  return wish;
}

/// Whether ranks are tried as threads that reach each other's devices.
bool wantsPeers(const Communicator &communicator, const std::string &wish) {
  return wish == "peers" || (wish == "auto" && !communicator.betweenProcesses());
}

/// Whether this rank could: "y" with the library, or "n" with why not; and of rank 0 the id.
std::string ability(const Communicator &communicator, const shardrt_device_plugin &plugin,
                    void *device, const std::string &wish) {
  const shardrt_device_communication *functions = plugin.communication;
  auto no = [&](const std::string &why) { return "n" + why + separator; };
  if (wish == "host")
    return no("SHARDRT_DEVICE_COLLECTIVES asks for it");
  if (wantsPeers(communicator, wish)) {
    if (communicator.betweenProcesses())
      return no("ranks are processes");
    try {
      return "y" + peersOf(plugin) + separator;
    } catch (const Failure &failure) {
      return no(failure.message);
    }
  }
  if (!functions)
    return no(std::string("the plugin ") + plugin.name + " has no collectives");
  if (functions->struct_bytes != sizeof *functions ||
      functions->version != SHARDRT_DEVICE_COMM_VERSION)
    return no(std::string("the collectives of plugin ") + plugin.name + " have version " +
              std::to_string(functions->version) + ", the runtime has version " +
              std::to_string(SHARDRT_DEVICE_COMM_VERSION));
  shardrt_device_comm_facts facts{};
  facts.struct_bytes = sizeof facts;
  Said said = ask([&](char *message) { return functions->probe(device, &facts, message); });
  if (said.status != SHARDRT_OK)
    return no(said.message);
  uint8_t id[SHARDRT_DEVICE_COMM_ID_BYTES] = {};
  if (communicator.rank() == 0) {
    said = ask([&](char *message) { return functions->make_id(device, id, message); });
    if (said.status != SHARDRT_OK)
      return no(said.message);
  }
  return std::string("y") + facts.library + separator +
         std::string(reinterpret_cast<const char *>(id), sizeof id);
}

} // namespace

std::unique_ptr<StreamTransport> connectDevices(Communicator &communicator,
                                                const shardrt_device_plugin &plugin, void *device,
                                                std::span<const shardrt_group> groups,
                                                Clock::time_point deadline, std::string &whyNot) {
  const std::string wish = wishedFor();
  if (!communicator.hostTransport()) { // the same on all ranks
    whyNot = "the communicator has no transport of the host, by which ranks compare their calls";
    return nullptr;
  }
  std::vector<std::string> reasons, libraries, wishes, ids;
  for (const std::string &text : communicator.exchange(
           choiceTopic, wish + separator + ability(communicator, plugin, device, wish), deadline)) {
    size_t first = text.find(separator), second = text.find(separator, first + 1);
    wishes.push_back(text.substr(0, first));
    std::string said = text.substr(first + 1, second - first - 1);
    reasons.push_back(said.starts_with('n') ? said.substr(1) : "");
    libraries.push_back(said.starts_with('y') ? said.substr(1) : "");
    ids.push_back(text.substr(second + 1));
  }
  for (uint32_t rank = 1; rank < wishes.size(); ++rank)
    if (wishes[rank] != wishes[0])
      throw Failure(SHARDRT_MISMATCH, "ranks differ in SHARDRT_DEVICE_COLLECTIVES: rank 0 has '" +
                                          wishes[0] + "', rank " + std::to_string(rank) + " '" +
                                          wishes[rank] + "'");
  auto refused = [&](const std::string &why) {
    if (wish == "device" || wish == "peers")
      throw Failure(SHARDRT_NOT_FOUND,
                    "SHARDRT_DEVICE_COLLECTIVES asks for collectives between devices: " + why);
    whyNot = why;
    return nullptr;
  };
  if (std::string why = reasonsOf(reasons); !why.empty())
    return refused(why);
  for (uint32_t rank = 1; rank < libraries.size(); ++rank)
    if (libraries[rank] != libraries[0])
      return refused("rank 0 has " + libraries[0] + ", rank " + std::to_string(rank) + " has " +
                     libraries[rank]);
  if (wantsPeers(communicator, wish)) {
    std::string problem;
    if (auto made = connectPeers(communicator, plugin, device, deadline, problem))
      return made;
    return refused(problem);
  }
  auto made = std::make_unique<DeviceTransport>(communicator, plugin, device, libraries[0]);
  Clock::time_point until = std::min(deadline, Clock::now() + connectTime +
                                                   communicator.worldSize() * connectTimePerRank);
  std::string problem = made->open(ids[0], until);
  reasons = communicator.exchange(choiceTopic, problem, deadline);
  if (std::string why = reasonsOf(reasons); why.empty()) {
    problem = made->connect(groups, until);
    reasons = communicator.exchange(choiceTopic, problem, deadline);
  }
  if (std::string why = reasonsOf(reasons); !why.empty()) {
    made->giveUp(); // others may not be able to end it together
    return refused(why);
  }
  return made;
}

} // namespace shardc::rt
